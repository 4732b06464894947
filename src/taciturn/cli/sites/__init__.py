"""`taciturn site ...`: one real site of a real network, its keys, and a network to try."""

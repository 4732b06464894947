"""`taciturn site ...`: commands that run one real site, make its keys, and start a network to try."""

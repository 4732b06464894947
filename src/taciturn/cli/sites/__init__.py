"""`taciturn site ...`: commands that run one real site, make its keys, and start a trial network."""

"""The sections of the comparison: work, privacy, faults and solving, for the peers and for taciturn."""

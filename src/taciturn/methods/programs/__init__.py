"""Programs: the sums over all records that a run asks for, and what every site computes from the totals."""

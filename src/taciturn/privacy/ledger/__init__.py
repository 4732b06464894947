"""Ledgers, in memory or on disk, that record the cost of each release before it is made; and budgets."""

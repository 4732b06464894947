"""Ledgers, in memory or on disk, that record each release before it is made, and budgets for several runs."""

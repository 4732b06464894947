"""Privacy accounting: noise, the cost of each release, ledgers, budgets and certificates."""

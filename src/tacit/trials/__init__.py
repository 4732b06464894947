"""Questions answered by running many simulations: planning, auditing, attacking."""

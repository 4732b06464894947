"""Every combination of some settings, and its Pareto front."""

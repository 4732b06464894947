"""Parameter sweeps: run every combination of some settings, and find the Pareto front of loss and epsilon."""

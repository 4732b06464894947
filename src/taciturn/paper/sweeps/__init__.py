"""Parameter sweeps: run every combination of some settings; find the best trade-offs of loss and epsilon."""

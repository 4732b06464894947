"""The paper's figures as data, and the runner."""

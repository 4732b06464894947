"""The paper's algorithms."""

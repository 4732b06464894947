"""What one site minimises."""

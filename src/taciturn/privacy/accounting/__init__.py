"""Every bound, on plain numbers."""

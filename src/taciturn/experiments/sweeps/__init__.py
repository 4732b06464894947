"""Every combination of some settings, and which of them nobody beats."""

"""From a budget to schedules and noise whose certificate stays within it."""

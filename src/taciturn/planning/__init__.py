"""Planning: from a privacy budget to a method, schedules and noise whose certificate is within the budget."""

"""Planning: choose a method, schedules and noise so that the certificate is within a privacy budget."""

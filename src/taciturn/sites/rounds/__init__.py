"""One site from its first round to its last, resumed wherever it was stopped."""

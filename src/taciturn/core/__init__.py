"""The ground floor: errors, checks, formats and files that every room may use."""

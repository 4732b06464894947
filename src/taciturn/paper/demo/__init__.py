"""What `taciturn demo` runs."""

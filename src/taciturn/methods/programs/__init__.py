"""What every site computes in the same way from public totals; nothing here is private, nothing is sent."""

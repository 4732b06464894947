"""Programs: what every site computes in the same way from public totals. Nothing here is private."""

"""The public data sets: found, fetched, verified, encoded."""

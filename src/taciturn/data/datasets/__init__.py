"""The public data sets: finds, downloads, verifies and encodes them."""

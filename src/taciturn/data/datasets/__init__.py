"""Find, download, verify and encode the public data sets."""

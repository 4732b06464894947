"""The questions that come with the library: each its keys, its tables and what its totals say."""

"""The questions that come with the library: their keys, tables and answers."""

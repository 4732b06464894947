"""The kinds of questions that come with the library: their keys in a job file, their sums, their answers."""

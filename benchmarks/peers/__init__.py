"""Compare taciturn with other packages on the same work; each package has its own virtual environment."""

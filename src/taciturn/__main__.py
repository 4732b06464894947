"""`python -m taciturn` runs the command `taciturn`."""

from .cli import main

main()

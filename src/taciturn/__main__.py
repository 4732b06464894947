"""`python -m taciturn`: the same as `taciturn`."""

from .cli import main

main()

"""`python -m tacit`: the same as `tacit`."""

from .cli import main

main()

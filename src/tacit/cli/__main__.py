"""`python -m tacit.cli`: the same as `tacit`."""

from .app import main

main()

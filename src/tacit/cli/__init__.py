"""The command line: parse, call, print. One file per command."""

from .app import main

__all__ = ["main"]

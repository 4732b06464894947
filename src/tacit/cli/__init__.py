"""The command line: parse, call, print. One file per command."""

from . import data
from .app import main

__all__ = ["data", "main"]

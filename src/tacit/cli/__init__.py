"""The command line: parse, call, print. One file per command; importing it adds the command."""

from . import certify, data
from .app import main

__all__ = ["certify", "data", "main"]

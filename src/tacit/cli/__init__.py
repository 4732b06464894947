"""The command line: parse, call, print. One file per command; importing it adds the command."""

from . import certify, data, demo
from .app import main

__all__ = ["certify", "data", "demo", "main"]

"""The command line: parse, call, print. One file per command; importing it adds the command."""

from . import attack, audit, certify, data, demo, plan, site, site_keys, site_up
from .app import main

__all__ = ["attack", "audit", "certify", "data", "demo", "main", "plan", "site", "site_keys", "site_up"]

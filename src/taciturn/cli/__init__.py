"""The command line: parse, call, print. One file per command; importing it adds the command."""

from . import budget, certify, data, demo, plan, verify
from .app import main
from .jobs import check, init, predict, statistics, train
from .research import attack, audit, reproduce, sweep
from .sites import approve as site_approve
from .sites import keys as site_keys
from .sites import kit as site_kit
from .sites import run as site
from .sites import unit as site_unit
from .sites import up as site_up

__all__ = [
    "attack",
    "audit",
    "budget",
    "certify",
    "check",
    "data",
    "demo",
    "init",
    "main",
    "plan",
    "predict",
    "reproduce",
    "site",
    "site_approve",
    "site_keys",
    "site_kit",
    "site_unit",
    "site_up",
    "statistics",
    "sweep",
    "train",
    "verify",
]

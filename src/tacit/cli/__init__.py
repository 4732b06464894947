"""The command line: parse, call, print. One file per command; importing it adds the command."""

from . import (
    attack,
    audit,
    certify,
    data,
    demo,
    init,
    plan,
    predict,
    reproduce,
    site,
    site_keys,
    site_up,
    sweep,
    train,
)
from .app import main

__all__ = [
    "attack",
    "audit",
    "certify",
    "data",
    "demo",
    "init",
    "main",
    "plan",
    "predict",
    "reproduce",
    "site",
    "site_keys",
    "site_up",
    "sweep",
    "train",
]

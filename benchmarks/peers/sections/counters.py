"""Section 3, counters: the epsilon that a package reports after its process was killed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .. import federations
from ..pins import Environment
from ..running.sandbox import run
from .work import fresh, last_words

FOLDERS = {"flwr": "flower", "nvflare": "nvflare", "appfl": "appfl"}
NAMES = {"flwr": ("counter", "kept")}  # Flower's state can be saved by the author of the server


def measure(peer: str, env: Environment, base: Path) -> dict[str, Any]:
    """Count epsilon over four rounds twice: with kill -9 and a restart after the second, and undisturbed."""
    found: dict[str, Any] = {}
    for name in NAMES.get(peer, ("counter",)):
        folder = fresh(base / f"budget-{peer}-{name}")
        measured = run(federations.counter(env, FOLDERS[peer], name), folder)
        if not measured["ended"]:
            raise RuntimeError(last_words(folder))
        says = {part: json.loads((folder / f"{part}.json").read_text()) for part in (name, "whole")}
        found |= says
    return found

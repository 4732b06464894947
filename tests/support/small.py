"""A figure small enough for tests: breast-cancer rows, four rounds."""

from __future__ import annotations

from pathlib import Path

SMALL = """
name = "small"
title = "Two methods on little data"
layout = "tradeoff"

[data]
name = "breast-cancer"
limit = 200
sites = 3
deal = "evenly"
seed = 1

[graph]
kind = "ring"

[problem]
C = 20.0
regularization = 0.1

[run]
rounds = 4
repeats = 2
seed = 0
start = "random"
tol = 1e-8
delta = 1e-5

[quick.run]
rounds = 2

[[curves]]
name = "DVP"
label = "DVP"
method = "dual"
penalty = 0.5
noise = { kind = "norm", rate = 3.0 }
colour = "#000000"
marker = "o"

[[curves]]
name = "PP"
label = "PP, $q_1 = 1.1$"
method = "penalty"
penalty = { kind = "geometric", start = 0.5, ratio = 1.1 }
dual_step = 0.5
noise = { kind = "norm", rate = { kind = "geometric", start = 3.0, ratio = 1.05 } }
colour = "#0072B2"

[[curves]]
name = "PVP"
label = "PVP"
method = "primal"
penalty = 0.5
noise = { kind = "gaussian", std = 0.3 }
colour = "#009E73"
fit = false
"""


def write_small(folder: Path, **changes: str) -> Path:
    """The file, with some of its lines replaced: key is the old text, value the new."""
    text = SMALL
    for old, new in changes.items():
        if old not in text:
            raise KeyError(old)
        text = text.replace(old, new)
    path = folder / "small.toml"
    path.write_text(text, "utf-8")
    return path

"""The run of the paper's experiments, as facts."""

from __future__ import annotations

import math
from typing import Any

from taciturn.privacy.certificate.certificate import Certificate
from taciturn.privacy.facts import Charge, RunFacts, SiteFacts
from taciturn.privacy.ledger.memory import MemoryLedger
from taciturn.privacy.loss_facts import LossFacts

DELTA = 1e-5
SIGMA = math.sqrt(105) / 3
LOGISTIC = LossFacts("logistic", 1.0, 0.25)


def run_facts(sites: int = 3, rounds: int = 4, **changes: Any) -> RunFacts:
    fields: dict[str, Any] = {
        "method": "penalty",
        "noise": "norm",
        "loss": LOGISTIC,
        "dimension": 105,
        "C": 1750.0,
        "regularization": 0.0,
    }
    return RunFacts(sites=sites, rounds=rounds, **(fields | changes))


def site_facts(sites: int = 3, **changes: Any) -> list[SiteFacts]:
    fields: dict[str, Any] = {"samples": 9044, "degree": 2, "dual_step": (0.5,)}
    return [SiteFacts(i, **(fields | changes)) for i in range(sites)]


def charges(sites: int, rounds: int, eta: float = 0.5, scale: float = 3.0, **changes: Any) -> list[Charge]:
    return [Charge(i, t, eta, scale, **changes) for t in range(1, rounds + 1) for i in range(sites)]


def ledger(
    sites: int = 2, rounds: int = 3, scale: float = 3.0, planned: int | None = None, **run: Any
) -> MemoryLedger:
    network = max(sites, 3)  # every site has two neighbours
    output = {"output_scale": 1e6} if run.get("output_noise") else {}
    schedules = {"eta": (0.5,), "scale": (scale,) if scale else (), "output_scale": tuple(output.values())}
    book = MemoryLedger(run_facts(network, planned or rounds, **run), site_facts(sites, **schedules))
    for charge in charges(sites, rounds, scale=scale, **output):
        book.charge(charge)
    return book


def certificate(**settings: Any) -> Certificate:
    return Certificate.from_ledger(ledger(**settings), delta=DELTA)

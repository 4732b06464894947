"""Real runs on a few rows, and the cost of their releases, recomputed by formulas of this file."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import taciturn as tt
from support.problems import make_sites
from taciturn.privacy.facts import Charge, RunFacts, SiteFacts
from taciturn.privacy.ledger import disk
from taciturn.privacy.ledger.memory import MemoryLedger

ROWS = make_sites(3, rows=12, d=2)
PROBLEM = tt.Problem(ROWS, loss=tt.Logistic(), C=12.0, regularization=0.5)
ETA, ROUNDS = 2.0, 3


class Crash(Exception):  # noqa: N818
    """Stands for a process that dies."""


class Coin:
    """A classifier of two classes whose score is the first entry of a row."""

    classes_ = np.array([-1.0, 1.0])

    def decision_function(self, X: Any) -> Any:
        return X[:, 0]


def start_run(kind: str, epsilon: float) -> Any:
    """A real run, or a real score, that costs about epsilon by itself."""
    if kind == "score":
        X, y = (np.concatenate(part) for part in zip(*ROWS, strict=True))
        return tt.private_score(Coin(), X, y, epsilon=epsilon, sites=3, colluding=1, public=True)
    if kind == "masked":
        method: Any = tt.MaskedDescent(epsilon=epsilon, delta=1e-5, colluding=1)
    else:
        noise = tt.GaussianNoise(1.7 / epsilon) if kind == "gaussian" else tt.NormNoise(epsilon / 4)
        method = tt.PrimalPerturbation(penalty=ETA, dual_step=0.5, noise=noise)
    return tt.train(PROBLEM, "complete", method, rounds=ROUNDS, threads=1)


def squared_mu(run: RunFacts, site: SiteFacts, charge: Charge) -> float:
    """mu^2 of one release: how far one record moves it, over the noise that hides it."""
    if run.masked:
        entry = run.sums[charge.t - 1]
        move = (entry.sensitivity + 2 * entry.stray) / entry.grid + math.sqrt(entry.length)
        return (move / entry.std) ** 2 / (run.sites - (run.colluding or 0))
    convexity = run.regularization / run.sites + 2 * charge.eta * site.degree
    move = 2 * run.C / (site.samples * convexity) + 2 * run.tol + run.grid * math.sqrt(run.dimension)
    return (move / charge.scale) ** 2


def delta_of(mu: float, epsilon: float) -> float:
    """The delta of mu-GDP at epsilon."""
    if mu == 0:
        return 0.0
    return float(norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2))


def mu_of(released: Iterable[tuple[Any, int, float]]) -> float:
    """mu of all that was released, (run, site, mu^2): of each run what its worst site shows."""
    sites: dict[Any, float] = defaultdict(float)
    for run, site, square in released:
        sites[run, site] += square
    runs: dict[Any, float] = defaultdict(float)
    for (run, _), square in sites.items():
        runs[run] = max(runs[run], square)
    return math.sqrt(sum(runs.values()))


@contextmanager
def watch_releases(
    released: list[tuple[Any, int, float]], crash_after: int | None, end: Any = None
) -> Iterator[None]:
    """Note every release of the runs inside; after so many of them `end` is called, or `Crash` raised."""

    class Watch(MemoryLedger):
        count = 0

        def __init__(self, *facts: Any) -> None:
            super().__init__(*facts)
            self.number = len(released), id(self)
            self._step()

        def charge(self, charge: Charge) -> None:
            super().charge(charge)
            site = next(site for site in self.sites if site.site == charge.site)
            released.append((self.number, charge.site, squared_mu(self.run, site, charge)))
            self._step()

        def charge_round(self, charges: Any) -> None:
            for charge in charges.each():
                self.charge(charge)

        def _step(self) -> None:
            if Watch.count == crash_after:
                if end is not None:
                    end()
                raise Crash
            Watch.count += 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disk, "MemoryLedger", Watch)
        yield


class Noted(list[tuple[Any, int, float]]):
    """Releases; the first makes a file."""

    def __init__(self, begun: Path) -> None:
        self._begun = begun

    def append(self, entry: tuple[Any, int, float]) -> None:
        super().append(entry)
        self._begun.touch()


def _child(path: str, log: str, kind: str, epsilon: float, crash_after: int) -> None:
    """Runs until the budget refuses one, or until the process dies; every release goes to the log first.

    Who is to die has released something before the others begin: they would leave nothing to a late one.
    """
    begun = Path(f"{log}.begun")
    released = Noted(begun)
    while crash_after < 0 and not begun.exists():
        time.sleep(0.001)

    def write() -> None:
        with open(log, "a") as file:
            file.writelines(json.dumps([[os.getpid(), *run], site, mu]) + "\n" for run, site, mu in released)
            file.flush()
            os.fsync(file.fileno())
        released.clear()

    def die() -> None:
        write()
        os._exit(9)

    with tt.Budget(path), watch_releases(released, crash_after if crash_after >= 0 else None, die):
        for _ in range(30):  # far more than there is room for
            try:
                start_run(kind, epsilon)
            except tt.errors.BudgetExceeded:
                break
    write()


if __name__ == "__main__":
    _child(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]), int(sys.argv[5]))

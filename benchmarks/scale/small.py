"""Small sites: compare a kernel for all sites with one Python node per site; and measure many small sites."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any
from unittest import mock

import numpy as np

import taciturn as tt
from taciturn.methods.loop import charged, loop
from taciturn.objective.solver import many
from taciturn.privacy.ledger.memory import MemoryLedger
from taciturn.runtime.setup import Setup, prepare

from ..memory import peak

TOTAL_ROWS, FEATURES, DEGREE = 2_000_000, 10, 4


@dataclass(frozen=True)
class Line:
    """For one number of sites: CPU seconds per round and of the set-up, in one thread; the peak memory."""

    sites: int
    rows: int
    rounds: int
    seconds: float
    setup: float
    peak: float


@dataclass(frozen=True)
class Race:
    """The same rounds in two ways: CPU seconds per site and round, the least of several alternating tries."""

    sites: int
    rows: int
    features: int
    together: float
    one_by_one: float

    @property
    def ratio(self) -> float:
        """The time of the second way divided by the time of the first."""
        return self.one_by_one / self.together


def race(sites: int, rows: int, features: int, *, tries: int) -> Race:
    """Compare `simulate` with single nodes and the general solver: whole rounds, without the set-up."""
    setup = setup_of(sites, rows, features, rounds=11)
    simulate(setup, rounds=1)  # compiles
    together, alone = [], []
    for _ in range(tries):
        together.append((_cpu(simulate, setup) - _cpu(simulate, setup, 1)) / 10)
        alone.append(one_by_one(setup, rounds=2))
    return Race(sites, rows, features, min(together) / sites, min(alone) / sites)


def by_sites(counts: tuple[int, ...], rounds: int) -> list[Line]:
    """Distribute the same rows over more and more sites; every point runs in a new process."""
    found = []
    for sites in counts:
        command = [sys.executable, "-m", "benchmarks.scale", "--line", str(sites), str(rounds)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        found.append(Line(**json.loads(done.stdout)))
        print(found[-1], flush=True)
    return found


def line(sites: int, rounds: int) -> str:
    """One point, as JSON. The set-up is the additional time of a run's first round."""
    rows = TOTAL_ROWS // sites
    setup = setup_of(sites, rows, FEATURES, rounds=rounds)
    simulate(setup_of(10, min(rows, 20), FEATURES, rounds=1))  # compiles
    first, whole = _cpu(simulate, setup, 1), _cpu(simulate, setup)
    each = (whole - first) / (rounds - 1)
    return json.dumps(asdict(Line(sites, rows, rounds, each, first - each, peak())))


def setup_of(sites: int, rows: int, features: int, *, rounds: int) -> Setup:
    """Penalty perturbation on a random 4-regular graph, one repeat."""
    rng = np.random.default_rng(0)
    hands = []
    for _ in range(sites):
        X = rng.standard_normal((rows, features))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        hands.append((X, np.where(X[:, 0] + 0.1 * rng.standard_normal(rows) > 0, 1.0, -1.0)))
    return prepare(
        tt.Problem(hands, C=rows / 2, regularization=0.1),
        tt.Graph.random_regular(sites, DEGREE, seed=0),
        tt.PenaltyPerturbation(tt.Geometric(0.5, 1.02), 0.5, tt.NormNoise(tt.Geometric(3.0, 1.01))),
        rounds=rounds,
        repeats=1,
        seed=0,
        tol=1e-8,
        start="zeros",
        strict=True,
        history=False,
    )


def simulate(setup: Setup, rounds: int | None = None) -> None:
    """Run the setup as `taciturn.simulate` does, in one thread."""
    settings = {"rounds": rounds or setup.rounds, "threads": 1, "progress": False}
    tt.simulate(setup.problem, setup.graph, setup.method, **settings)


def one_by_one(setup: Setup, rounds: int) -> float:
    """CPU seconds per round with one node per site, one after the other, including charges and metrics."""
    ledger = MemoryLedger(setup.run_facts(), setup.site_facts())
    n, adjacency = setup.graph.n, setup.graph.sparse_adjacency
    heard, loops = np.zeros((n, 1, setup.problem.dimension)), []
    with mock.patch.object(many, "small_form", lambda objective: None):  # the general solver, as at a site
        for i in range(n):
            part = setup.prepared.part(range(i, i + 1))
            (node,) = part.nodes([setup.problem.site(i)], [range(1)], seed=setup.seed, repeats=1)
            loops.append(charged(loop(node, node.start(None, None)), ledger))
    clock = time.process_time()
    for t in range(rounds):
        sent = [steps.send(heard[i : i + 1] if t else None) for i, steps in enumerate(loops)]
        f = np.concatenate([one.message for one in sent])
        for i, vector in enumerate(f):
            setup.problem.site(i).metrics(vector)
        heard = np.asarray(adjacency @ f.reshape(n, -1)).reshape(f.shape)
    return (time.process_time() - clock) / rounds


def _cpu(work: Callable[..., None], *arguments: Any) -> float:
    clock = time.process_time()
    work(*arguments)
    return time.process_time() - clock

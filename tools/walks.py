"""`python -m tools.walks` traces real calls, and lists the functions that they enter in docs/architecture.md.

    python -m tools.walks                 write the walks again
    python -m tools.walks --trace NAME    print each function that a call enters, in the order of first entry

A walk is a list of places that a reader should see. A place is `file: function`, or only a file: then the
page shows the first public function of the file that is entered. The trace puts the places in order. If the
call does not enter a place, the page leaves the place out, and the command names it on stderr. Then choose
another place from the trace.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "taciturn"
PAGE = ROOT / "docs" / "architecture.md"
sys.path.insert(0, str(ROOT / "tests"))  # `site` uses a network that the tests provide


class Trace:
    """Records the functions of the package that a `with` block enters, each once, as `file: function`."""

    def __init__(self) -> None:
        self._entered: dict[str, None] = {}

    def __enter__(self) -> Trace:
        threading.setprofile(self._enter)
        sys.setprofile(self._enter)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _enter(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        is_function = event == "call" and code.co_flags & inspect.CO_OPTIMIZED  # not the body of a class
        if is_function and code.co_filename.startswith(str(SOURCE)) and "<" not in code.co_qualname:
            name = code.co_qualname.removesuffix(".__init__")
            self._entered.setdefault(f"{Path(code.co_filename).relative_to(SOURCE).as_posix()}: {name}")

    @property
    def entered(self) -> list[str]:
        """The functions, in the order of first entry."""
        return list(self._entered)

    def stops(self, places: tuple[str, ...]) -> list[str]:
        """The places in the order in which they were entered; places that were not entered are left out."""
        found = {self.find(place) for place in places}
        return [stop for stop in self.entered if stop in found]

    def find(self, place: str) -> str | None:
        """The stop (`file: function`) for a place; for a file, its first public function that was entered."""
        if ": " in place:
            return place if place in self._entered else None
        inside = [stop for stop in self.entered if stop.startswith(f"{place}: ")]
        return next((stop for stop in inside if not stop.split(": ")[1].split(".")[-1].startswith("_")), None)


# -- the calls --------------------------------------------------------------------------------------


def _rows(count: int = 60) -> tuple[Any, Any]:
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (count, 3))
    return X, np.where(X[:, 0] > 0, 1.0, -1.0)


def _simulation() -> Callable[[], Any]:
    import taciturn as tt

    X, y = _rows()
    problem = tt.Problem([(X[i::3], y[i::3]) for i in range(3)], C=5.0, regularization=0.1)
    method = tt.PenaltyPerturbation(penalty=0.5, dual_step=0.5, noise=tt.NormNoise(rate=3.0))
    return lambda: tt.simulate(problem, tt.Graph.ring(3), method, rounds=2, seed=0, progress=False)


def simulate(folder: Path) -> Trace:
    """Trace a simulation."""
    run = _simulation()
    with Trace() as trace:
        run()
    return trace


def fit(folder: Path) -> Trace:
    """Trace a private fit."""
    import taciturn as tt

    X, y = _rows(300)
    model = tt.PrivateLogisticRegression(epsilon=2.0, sites=3, data_norm=1.0, effort="quick", max_rounds=3)
    with Trace() as trace:
        model.fit(X, y)
    return trace


def train(folder: Path) -> Trace:
    """Trace the training job that `taciturn init` writes."""
    _command("init", str(folder / "job"))
    with Trace() as trace:
        _command("train", str(folder / "job" / "job.toml"))
    return trace


def certify(folder: Path) -> Trace:
    """Trace how the certificate of a run is written and verified."""
    run, path = _simulation()(), folder / "certificate.json"
    with Trace() as trace:
        path.write_text(run.certificate(1e-5).to_json())
        _command("verify", str(path))
    return trace


def site(folder: Path) -> Trace:
    """Trace one of two sites in a rehearsal; the other site is another process."""
    from support.sitework import network, shards

    ours, theirs = network(folder / "net", [(0, 1)], job={"rounds": 2}, data=shards(2))
    command = [sys.executable, "-m", "taciturn", "site", "run", str(theirs)]
    other = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with Trace() as trace:
            _command("site", "run", str(ours))
    finally:
        other.wait(60)
    return trace


def _command(*words: str) -> None:
    from taciturn.cli.app import run

    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = run(list(words))
    if code:
        raise RuntimeError(f"taciturn {' '.join(words)} ended with {code}: {said.getvalue()}")


# -- the page ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Walk:
    """A call, its title on the page, and the places that a reader should see."""

    title: str
    call: Callable[[Path], Trace]
    places: tuple[str, ...]

    def trace(self) -> Trace:
        """The functions that the call enters."""
        with tempfile.TemporaryDirectory() as folder:
            return self.call(Path(folder))


WALKS = {
    "simulate": Walk(
        "`tt.simulate(problem, graph, method, ...)`",
        simulate,
        (
            "runtime/simulate.py: simulate",
            "runtime/setup.py: prepare",
            "runtime/local.py: run_local",
            "methods/admm/node.py: Node.primal",
            "methods/admm/updates.py: linear_term",
            "objective/solver/many.py: ManySites.minimise",
            "privacy/ledger/memory.py: MemoryLedger.charge_round",
            "methods/run.py: Recorder.record",
        ),
    ),
    "fit": Walk(
        "`tt.PrivateLogisticRegression(...).fit(X, y)`",
        fit,
        (
            "estimators/classifiers.py: PrivateLinearClassifier.fit",
            "planning/request.py: PlanRequest.checked",
            "planning/penalty.py: plan_penalty",
            "data/tables/unit_ball.py: UnitBallScaling.rows",
            "estimators/fitting.py: fit_setups",
            "runtime/local.py: run_local",
            "methods/admm/updates.py: network_average",
            "privacy/certificate/certificate.py: Certificate.of",
        ),
    ),
    "site": Walk(
        "`taciturn site run site.toml`",
        site,
        (
            "cli/sites/run.py: run",
            "sites/files/site.py: load_site",
            "sites/rounds/prepare.py: make_ready",
            "sites/rounds/driver.py: run_site",
            "sites/transport/zenoh.py: ZenohLinks",
            "sites/protocol/machine.py: SiteProtocol.handle",
            "sites/rounds/store.py: SiteStore.write",
            "sites/rounds/results.py: write_results",
        ),
    ),
    "train": Walk(
        "`taciturn train job.toml`",
        train,
        (
            "cli/jobs/train.py: train",
            "jobs/train_job.py: prepare_job",
            "jobs/training_job.py: read_job",
            "jobs/train_job.py: gather",
            "data/tables/encoder.py: BoundedEncoder.lazy_rows",
            "jobs/train_job.py: fit",
            "privacy/ledger/disk.py: SqliteLedger._store",
            "jobs/run_folder.py: write_results",
        ),
    ),
    "certify": Walk(
        "A certificate, from the ledger to its verification",
        certify,
        (
            "methods/run.py: Run.certificate",
            "privacy/ledger/memory.py: Book.columns",
            "privacy/certificate/claims.py: Claims.from_facts",
            "privacy/costs.py: renyi_totals",
            "privacy/accounting/totals.py",
            "privacy/certificate/document.py: document",
            "cli/verify.py: verify",
            "privacy/certificate/document.py: compare",
        ),
    ),
}


def stops_on_the_page(walk: Walk) -> list[str]:
    """The stops of a walk as the page lists them."""
    _, _, after = PAGE.read_text(encoding="utf-8").partition(f"**{walk.title}**")
    return re.findall(r"^\d+\. `(\S+\.py: [\w.]+)`$", re.split(r"^(?:\*\*|## )", after, flags=re.M)[0], re.M)


def write_page() -> None:
    """Replace the walks in docs/architecture.md."""
    text = PAGE.read_text(encoding="utf-8")
    head, tail = (
        text.index(f"**{next(iter(WALKS.values())).title}**"),
        text.index("## Where to add something"),
    )
    parts = []
    for walk in WALKS.values():
        trace = walk.trace()
        for place in walk.places:
            if trace.find(place) is None:
                print(f"{walk.title} does not enter {place}", file=sys.stderr)
        lines = [f"{k}. `{stop}`" for k, stop in enumerate(trace.stops(walk.places), 1)]
        parts.append(f"**{walk.title}**\n\n" + "\n".join(lines) + "\n\n")
    PAGE.write_text(text[:head] + "".join(parts) + text[tail:], encoding="utf-8")


if __name__ == "__main__":
    match sys.argv[1:]:
        case []:
            write_page()
        case ["--trace", name] if name in WALKS:
            print(*WALKS[name].trace().entered, sep="\n")
        case _:
            sys.exit(f"usage: python -m tools.walks [--trace {'|'.join(WALKS)}]")

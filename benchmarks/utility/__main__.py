"""`python -m benchmarks.utility`: run every contender on every case, and write docs/utility.md.

Results are kept in build/utility.jsonl, so that an interrupted run can continue.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

from taciturn.objective import one_blas_thread

from .anchors import ALONE_FREE, BOOSTING, EBM, WHITE_CENTRE, anchors
from .contest import (
    ALONE,
    CENTRE,
    CURVES,
    MAPPED,
    MASKED,
    PENALTY,
    PLAIN,
    WHITE_PENALTY,
    Result,
    anchored,
    contend,
    masked,
    trusting_nobody,
)
from .gossip import decor
from .made_up import KINDS, make
from .packaged import PACKAGED, load_packaged
from .rivals import NO_PRIVACY, POOLED, Rival, rivals
from .tasks import SPLITS, Case, Task, load

DELTA = 1e-5
RIVALRY = ("adult", "credit", "support", "fair", "insurance")
DATA = (*PACKAGED, "support", "adult", "credit")
SIZES = (5, 20, 100)
BUDGETS = (1.0, 10.0, 0.3, 3.0, 0.1)  # the most interesting first
HOME = 16  # the number of sites in the experiments of DECOR's authors
TOPOLOGIES = ("ring", "torus", "complete")
_ROOT = Path(__file__).parents[2]


class Contest:
    """Measures everything that is not yet in the file of results, and adds it to the file."""

    def __init__(self, path: Path, seeds: int, python: str | None, *, quick: bool) -> None:
        self.path, self.seeds, self.quick = path, seeds, quick
        self.rivals = list(rivals(python, quick=quick))
        self.anchors = {anchor.name: anchor for anchor in anchors(quick=quick)}
        self.results = _read(path)
        self.start = time.perf_counter()

    def need(self, key: tuple[object, ...], make_result: Callable[[], Result | None]) -> None:
        """Measure and store a result, unless there is a result with this key (see `Result.key`)."""
        if any(result.key == key for result in self.results):
            return
        result = make_result()
        if result is None:
            return
        self.results.append(result)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(result.to_dict()) + "\n")
        print(f"{time.perf_counter() - self.start:7.0f} s", _line(result), flush=True)

    def masked(self, case: Case, colluding: int, split: str, name: str = MASKED) -> None:
        key = (case.task.name, case.sites, case.epsilon, name, split, colluding, "complete")
        self.need(key, lambda: masked(case, colluding, split, self.seeds, name))

    def centre(self, task: Task, epsilon: float) -> None:
        """Measure with all rows in one place. These results do not depend on the number of sites."""
        case = Case(task, 1, epsilon, DELTA)
        for rival in self.rivals:
            if not rival.decentralised:
                self.rival(case, rival)
        self.masked(Case(task, 2, epsilon, DELTA), 0, "even", CENTRE)

    def rival(self, case: Case, rival: Rival) -> None:
        key = (case.task.name, case.sites, case.epsilon, rival.name, "even", None, case.topology)
        seeds = 1 if rival.name.startswith("no privacy") else self.seeds
        self.need(key, lambda: contend(case, rival, seeds))

    def anchor(self, case: Case, name: str, seeds: int) -> None:
        key = (case.task.name, case.sites, case.epsilon, name, "even", None, "complete")
        self.need(key, lambda: anchored(case, self.anchors[name], seeds))

    def nobody(self, case: Case, name: str = ALONE) -> None:
        key = (case.task.name, case.sites, case.epsilon, name, "even", None, "complete")
        self.need(key, lambda: trusting_nobody(case, min(self.seeds, 3), name))

    def free(self, task: Task) -> None:
        """Measure without privacy: all rows together, and each site alone."""
        for rival in self.rivals:
            if rival.name == NO_PRIVACY:
                self.rival(Case(task, 1, 1.0, DELTA), rival)
        self.anchor(Case(task, 1, 1.0, DELTA), BOOSTING, 1)
        for sites in SIZES:
            self.anchor(Case(task, sites, 1.0, DELTA), ALONE_FREE, 1)

    def budget(self, task: Task, epsilon: float) -> None:
        """Measure with twenty sites, and with the whitened centre."""
        for name in (MASKED, MAPPED, PLAIN):
            self.masked(Case(task, 20, epsilon, DELTA), 1, "even", name)
        self.anchor(Case(task, 1, epsilon, DELTA), WHITE_CENTRE, min(self.seeds, 3))

    def more_sites(self, task: Task, epsilon: float) -> None:
        """Measure with five sites and with a hundred sites."""
        for sites, name in product((5, 100), (MAPPED, MASKED)):
            self.masked(Case(task, sites, epsilon, DELTA), 1, "even", name)

    def trees(self, task: Task, epsilon: float) -> None:
        """DP-EBM."""
        self.anchor(Case(task, 1, epsilon, DELTA), EBM, min(self.seeds, 3))

    def field(self, case: Case, names: tuple[str, ...] | None = None) -> None:
        """Measure all decentralised contenders, with evenly distributed rows; or only those in `names`."""
        for rival in self.rivals:
            if rival.decentralised and (names is None or rival.name in names):
                self.rival(case, rival)

    def check(self, task: Task) -> None:
        """Measure the default rule on a made-up table, and a trusted centre to compare it with."""
        for rival in self.rivals:
            if rival.name in (NO_PRIVACY, POOLED):
                self.rival(Case(task, 1, 1.0, DELTA), rival)
        for name in (MASKED, PLAIN):
            self.masked(Case(task, 20, 1.0, DELTA), 1, "even", name)

    def home_of_decor(self, task: Task) -> None:
        """Measure DECOR in the setting of its authors. The split of its noise is tuned, too."""
        many, sizes = ((10.0,), (4.0, 16.0)) if self.quick else ((50.0, 150.0, 400.0), (8.0, 16.0, 32.0))
        grid = tuple(product(many, sizes, (0.5, 1.0), (0.0, 1.0, 3.0, 10.0, 100.0), (0.0, 0.5)))
        self.masked(Case(task, HOME, 1.0, DELTA), 1, "even")
        for topology in TOPOLOGIES:
            case = Case(task, HOME, 1.0, DELTA, topology)
            self.rival(case, Rival("DECOR", grid, decor(None)))
            own = "DECOR, its own accounting"
            best = [r.setting for r in self.results if r.contender == "DECOR" and r.topology == topology]
            self.rival(case, Rival(own, tuple(best), decor(None, own_accounting=True)))


def main() -> None:
    """Parse the options, run the contest, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.utility", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only the table support; writes no page")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--diffprivlib", metavar="PYTHON", help="an interpreter that has diffprivlib")
    parser.add_argument(
        "--results", type=Path, default=_ROOT / "build" / "utility.jsonl", help="finished results"
    )
    parser.add_argument("--out", type=Path, default=_ROOT / "docs", help="where to write the page")
    parser.add_argument("--page", action="store_true", help="only write the page, from the results so far")
    options = parser.parse_args()
    if options.quick:
        options.seeds, options.results = 2, _ROOT / "build" / "utility-quick.jsonl"
    contest = Contest(options.results, options.seeds, options.diffprivlib, quick=options.quick)
    if not options.page:
        with one_blas_thread():
            run(contest)
    if not options.quick:
        from .page import write_page

        print(write_page(contest.results, options.out))


def run(contest: Contest) -> None:
    """Measure everything, the most important results first."""
    if contest.quick:
        task = load("support")
        contest.free(task)
        contest.budget(task, 1.0)
        contest.trees(task, 1.0)
        contest.field(Case(task, 5, 1.0, DELTA))
        return
    for name in DATA:
        contest.free(_load(name))
    for epsilon, name in product(BUDGETS, DATA):
        contest.budget(_load(name), epsilon)
        if epsilon == 1.0:
            contest.trees(_load(name), epsilon)
    for sites in SIZES:
        contest.nobody(Case(load("adult"), sites, 1.0, DELTA))
    for epsilon, name, who in product(BUDGETS, DATA, (ALONE, PENALTY, WHITE_PENALTY)):
        contest.nobody(Case(_load(name), 20, epsilon, DELTA), who)
    for epsilon, name in product(BUDGETS, DATA):
        contest.more_sites(_load(name), epsilon)
    for epsilon, name in product(BUDGETS, DATA):
        contest.trees(_load(name), epsilon)
    for name in DATA:
        contest.masked(Case(_load(name), 20, 1.0, DELTA), 1, "even", CURVES)
    for split in SPLITS:
        contest.masked(Case(load("adult"), 20, 1.0, DELTA), 1, split)
    for kind in KINDS:
        contest.check(make(kind))
    for name in RIVALRY:
        contest.centre(_load(name), 1.0)
        for sites in SIZES:
            contest.field(Case(_load(name), sites, 1.0, DELTA))
    contest.home_of_decor(load("adult"))


def _load(name: str) -> Task:
    return load_packaged(name) if name in PACKAGED else load(name)


def _read(path: Path) -> list[Result]:
    if not path.exists():
        return []
    entries = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [Result(**{**entry, "setting": tuple(entry["setting"])}) for entry in entries]


def _line(result: Result) -> str:
    return (
        f"{result.data:8} {result.sites:3} sites, {result.split}, epsilon {result.epsilon:4g}  "
        f"{result.contender:34} {result.topology} loss {result.loss:.4f} +- {result.loss_std:.4f}  "
        f"accuracy {result.accuracy:.4f}  {result.setting or result.colluding}"
    )


if __name__ == "__main__":
    main()

"""Compare the seconds per round of `simulate` with alternatives on the same tasks."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import taciturn as tt

from .contenders import by_bare_products, by_newton, by_scipy
from .timing import Contender, over_threads, race, timed
from .workload import REPEATS, SITES, Task, adult_shaped, recorded, run

SETTINGS = {(1, 1): "1 thread", (2, 1): "2 site threads", (1, 2): "2 BLAS threads"}
SOLVERS: dict[str, Callable[[Task], float]] = {
    "L-BFGS-B, until it stops": by_scipy,
    "L-BFGS-B, to the same accuracy": partial(by_scipy, to_the_end=True),
    "Newton": by_newton,
    "bare products": by_bare_products,
}


@dataclass(frozen=True)
class Row:
    """One line of the table; `distance` is the largest distance from a minimiser."""

    name: str
    seconds: float
    setting: str
    distance: float | None


@dataclass(frozen=True)
class Contest:
    """The table, and facts about the contest."""

    data: str
    cpu: bool
    rounds: int
    passes: float
    rebuilds: float
    rows: tuple[Row, ...]

    def ratio(self, name: str) -> float:
        """The time of the named row divided by the time of `simulate`."""
        seconds = {row.name: row.seconds for row in self.rows}
        return seconds[name] / seconds["simulate"]


def contest(*, rounds: int, tries: int, cpu: bool) -> Contest:
    """Time all contenders on the same recorded tasks; with `cpu`, in CPU seconds on one thread."""
    clock = time.process_time if cpu else time.perf_counter
    X, y, data = adult_shaped()
    problem, tasks = recorded(X, y, rounds=rounds)
    every = [task for tasks_of_round in tasks for task in tasks_of_round]
    typical = tasks[rounds // 2]
    for task in typical:
        _ = task.Z  # computed before the clock starts
    racers = [_simulation(problem, rounds, threads) for threads in ((1,) if cpu else (1, 2))]
    for name, solve in SOLVERS.items():
        on, share = (every, rounds) if name == "bare products" else (typical, 1)
        settings = [(1, 1)] if cpu else _worth_trying(solve, on[0])
        racers += [
            Contender(name, SETTINGS[key], partial(over_threads, solve, on, key[0]), blas=key[1], share=share)
            for key in settings
        ]
    race(racers, tries, clock)
    reached = max(float(task.solution.distance.max()) for task in every)
    return Contest(
        data=data,
        cpu=cpu,
        rounds=rounds,
        passes=sum(task.solution.passes for task in every) / len(every),
        rebuilds=sum(task.solution.rebuilds for task in every) / len(every),
        rows=tuple(_best(racers, name, reached) for name in ("simulate", *SOLVERS)),
    )


def _simulation(problem: tt.Problem, rounds: int, threads: int) -> Contender:
    graph = tt.Graph.ring(SITES)
    work = partial(run, problem, graph, rounds=rounds, repeats=REPEATS, threads=threads)
    return Contender("simulate", SETTINGS[threads, 1], work, share=rounds)


def _worth_trying(solve: Callable[[Task], float], task: Task) -> list[tuple[int, int]]:
    """The thread settings to time; BLAS threads only if they do not slow down one site."""
    _, alone = timed(partial(solve, task), time.perf_counter, blas=1)
    _, helped = timed(partial(solve, task), time.perf_counter, blas=2)
    return [key for key in SETTINGS if key[1] == 1 or helped < 1.2 * alone]


def _best(racers: list[Contender], name: str, reached: float) -> Row:
    winner = min((racer for racer in racers if racer.name == name), key=lambda racer: racer.best)
    distance = {"simulate": reached, "bare products": None}.get(name, winner.result)
    return Row(name, winner.best, winner.setting, distance)

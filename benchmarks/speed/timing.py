"""Measure seconds as the least of several tries. Contenders alternate, so that other work slows them all."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from threadpoolctl import threadpool_limits

Clock = Callable[[], float]

_HOPELESS = 3.0  # a setting this many times slower than the best for its work is not tried again


@dataclass
class Contender:
    """Work to be timed under one thread setting; `share` is the number of rounds in one call."""

    name: str
    setting: str
    work: Callable[[], Any]
    blas: int = 1
    share: int = 1
    seconds: list[float] = field(default_factory=list)
    result: Any = None

    @property
    def best(self) -> float:
        """Seconds per round."""
        return min(self.seconds)


def race(contenders: list[Contender], tries: int, clock: Clock) -> None:
    """Time every contender `tries` times, in turn."""
    for _ in range(tries):
        for contender in contenders:
            rivals = [c.best for c in contenders if c.name == contender.name and c.seconds]
            if contender.seconds and contender.best > _HOPELESS * min(rivals):
                continue
            contender.result, seconds = timed(contender.work, clock, blas=contender.blas)
            contender.seconds.append(seconds / contender.share)


def timed(work: Callable[[], Any], clock: Clock, *, blas: int) -> tuple[Any, float]:
    """(result, seconds) with this many BLAS threads."""
    with threadpool_limits(blas, user_api="blas"):
        start = clock()
        result = work()
        return result, clock() - start


def over_threads(solve: Callable[[Any], float], tasks: list[Any], threads: int) -> float:
    """All tasks, `threads` at a time; the largest result."""
    if threads == 1:
        return max(map(solve, tasks))
    with ThreadPoolExecutor(threads) as pool:
        return max(pool.map(solve, tasks))

"""Fits of the gradient rivals: all settings and seeds with the same number of rounds run together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from .descents import Course, descend, even_noise, exposure, renyi_mu
from .tasks import Array, Case, Fit, Setting, graph

_WIDE = 40  # courses at a time, so that their margins fit into the cache
Make = Callable[[Case, Setting, int], Course]


def together(make: Make, case: Case, settings: Sequence[Setting], seeds: Sequence[int]) -> list[Array | None]:
    """For each setting, one model per seed, (seeds, d). Settings that differ only in the tail share runs."""
    jobs = {(_base(setting), seed): make(case, setting, seed) for setting in settings for seed in seeds}
    tails = {job: set[int]() for job in jobs}
    for setting in settings:
        for seed in seeds:
            tails[_base(setting), seed].add(_tail(setting))
    done: dict[tuple[Setting, int, int], Array] = {}
    for rounds in sorted({len(course.steps) for course in jobs.values()}):
        alike = [job for job, course in jobs.items() if len(course.steps) == rounds]
        for first in range(0, len(alike), _WIDE):
            part = alike[first : first + _WIDE]
            runs = descend(case.task.hands(case.sites), case.graph, [jobs[job] for job in part])
            for job, released in zip(part, runs, strict=True):
                done |= {(*job, tail): released[-tail:].mean(axis=0) for tail in tails[job]}
    return [np.stack([done[_base(s), seed, _tail(s)] for seed in seeds]) for s in settings]


def _base(setting: Setting) -> Setting:
    """A setting (rounds, step, ..., tail) without its tail."""
    return setting[:-1]


def _tail(setting: Setting) -> int:
    """The number of last rounds whose released vectors are averaged."""
    return max(1, int(setting[0] * setting[-1]))


def sgd(case: Case, settings: Sequence[Setting], seeds: Sequence[int]) -> list[Array | None]:
    """Decentralised DP-SGD with gossip: (rounds, step, clip, tail)."""
    return together(lambda case, s, seed: _plain(case, s, seed, 0.0), case, settings, seeds)


def decor(ratio: float | None, *, own_accounting: bool = False) -> Fit:
    """DECOR: DP-SGD with pair noise of `ratio` times a site's own noise; None tunes the ratio.

    Its guarantee holds against one curious site that follows the protocol, and against all outsiders. With
    `own_accounting` the cost is computed by Renyi divergence, as published; else exactly, with less noise.
    """

    def make(case: Case, setting: Setting, seed: int) -> Course:
        return _plain(case, setting, seed, setting[3] if ratio is None else ratio, own_accounting)

    return lambda case, settings, seeds: together(make, case, settings, seeds)


def _plain(case: Case, setting: Setting, seed: int, correlated: float, renyi: bool = False) -> Course:
    rounds, step, clip = int(setting[0]), setting[1], setting[2]
    moved = 2 * clip / case.least * _exposure(case.sites, case.topology, correlated) ** 0.5
    noise = even_noise(case.epsilon, case.delta, moved, np.ones(rounds))
    if renyi:
        noise = np.full(rounds, moved * rounds**0.5 / renyi_mu(case.epsilon, case.delta))
    return Course(np.full(rounds, step), noise, seed, clip, correlated)


@lru_cache(maxsize=64)
def _exposure(sites: int, topology: str, ratio: float) -> float:
    return exposure(graph(sites, topology), ratio) if ratio else 1.0


def subgradient(case: Case, settings: Sequence[Setting], seeds: Sequence[int]) -> list[Array | None]:
    """huang2015, (rounds, c, q, p/q, tail): step c q^t, and noise c p^t on the messages, Gaussian here."""

    def make(case: Case, setting: Setting, seed: int) -> Course:
        rounds, c, q, ratio = int(setting[0]), *setting[1:4]
        t = np.arange(rounds)
        noise = even_noise(case.epsilon, case.delta, 2 / case.least, ratio**t)
        return Course(c * q**t, noise, seed)

    return together(make, case, settings, seeds)

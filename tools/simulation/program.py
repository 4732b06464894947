"""What simulated sites compute: a program of a few masked sums, or the paper's method on a few rows."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from taciturn.methods.admm.attempt import ADMMSite
from taciturn.methods.admm.perturbations import PenaltyPerturbation
from taciturn.methods.base import Network, RunOptions
from taciturn.methods.sums.attempt import SumsSite
from taciturn.methods.sums.program import SumPlan, SumTables, fix_sums, pair_graph
from taciturn.objective.local import LocalObjective
from taciturn.objective.losses import Logistic
from taciturn.objective.regularizers import L2
from taciturn.privacy.loss_facts import PROGRAM, LossFacts
from taciturn.privacy.noise import NormNoise
from taciturn.privacy.sums import VECTORS, SumFacts

EPSILON, DELTA, LENGTH, ROWS, CLIP = 1.0, 1e-5, 3, 40, 64.0


@dataclass(frozen=True, eq=False)
class WalkState:
    t: int
    x: Any


@dataclass(frozen=True)
class Walk:
    """x += mean(clip(row - x)) / (1 + noise), over all rows. So each sum depends on the earlier totals."""

    noise: tuple[float, ...]
    loss: ClassVar[LossFacts] = LossFacts(PROGRAM, 1.0, 0.0)

    @property
    def dimension(self) -> int:
        return LENGTH * len(self.noise)

    @property
    def size(self) -> int:
        return LENGTH

    def start(self, repeats: int) -> WalkState:
        return WalkState(0, np.zeros((repeats, LENGTH)))

    def query(self, state: WalkState) -> Any:
        return state.x

    def advance(self, state: WalkState, total: Any) -> WalkState:
        return WalkState(state.t + 1, state.x + total / (1.0 + self.noise[state.t]))

    def result(self, state: WalkState) -> Any:
        return state.x


@dataclass(frozen=True, eq=False)
class WalkRows:
    """The rows of one site."""

    rows: Any
    units: int

    def integers(self, query: Any, facts: SumFacts) -> Any:
        away = self.rows - query
        norms = np.sqrt((away * away).sum(axis=1, keepdims=True))
        share = (away / np.maximum(norms, 1.0)).sum(axis=0) / self.units
        return np.rint(share / facts.grid).astype(np.int64)[None]


class FreshStreams:
    """The noise of a simulation: a new stream for every draw of every process, from the seed of the run."""

    simulated: ClassVar[bool] = True

    def __init__(self, source: random.Random) -> None:
        self._source = source

    def generator(self, **_: Any) -> np.random.Generator:
        return np.random.Generator(np.random.PCG64(self._source.getrandbits(64)))


@lru_cache(maxsize=256)
def tables(sites: int, colluding: int, rounds: int) -> SumTables:
    """The settings of a run in which all sites take part."""
    units, pairs = sites * ROWS, pair_graph(sites, colluding)
    plan = SumPlan(VECTORS, LENGTH, 2.0 / units, 0.0, 1.0, 1.0 / rounds, whole=True)
    sums = fix_sums([plan] * rounds, epsilon=EPSILON, delta=DELTA, pairs=pairs, colluding=colluding)
    noise = tuple(entry.grid * entry.std * sites**0.5 for entry in sums)
    return SumTables(sums, pairs, colluding, Walk(noise), units, ROWS)


@lru_cache(maxsize=64)
def rows_of(site: int, units: int) -> WalkRows:
    generator = np.random.default_rng(site)
    return WalkRows(generator.standard_normal((ROWS, LENGTH)) / 2, units)


def walking_site(number: int, sites: int, colluding: int, rounds: int, source: random.Random) -> SumsSite:
    """The computation of one simulated site with masked sums."""
    numbers = tables(sites, colluding, rounds)
    half = rows_of(number, numbers.units)
    return SumsSite(number, numbers, half, FreshStreams(source), (ROWS,) * sites)  # type: ignore[arg-type]


@lru_cache(maxsize=128)
def _penalty_node(number: int, degree: int, sites: int, rounds: int) -> Any:
    """A site of the paper's method with a few rows, without its noise source."""
    network = Network(
        total=sites,
        sites=(number,),
        samples=(ROWS,),
        degrees=(degree,),
        names=(f"s{number}",),
        dimension=LENGTH,
        loss=Logistic(),
        C=float(ROWS),
        regularization=1.0,
        regularizer=L2(),
    )
    method = PenaltyPerturbation(penalty=2.0, dual_step=0.5, noise=NormNoise(5.0), grid=2.0**-20, clip=CLIP)
    prepared = method.prepare(network, rounds, RunOptions(tol=1e-6, strict=False))
    generator = np.random.default_rng(number)
    X = generator.standard_normal((ROWS, LENGTH))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.sign(X[:, 0] + 0.1)
    rows = LocalObjective(X, y, loss=Logistic(), C=float(ROWS), regularization=1.0, sites=sites)
    return prepared.nodes([rows], [range(1)], seed=0, repeats=1)[0]


def penalty_site(
    number: int, links: tuple[tuple[int, ...], ...], rounds: int, source: random.Random
) -> ADMMSite:
    """The computation of one simulated site with the paper's method."""
    node = _penalty_node(number, len(links[number]), len(links), rounds)
    return ADMMSite(number, replace(node, streams=FreshStreams(source)), links, CLIP, LENGTH)

"""What masked sums cost, by how many of the other sites work together with the observer.

The messages of honest sites are uniform but for their sum, so the noises of all of them protect each record:
fewer colluders, more noise. The figure for all the others colluding does not rest on the masks.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence

import numpy as np

from ..errors import ParameterError
from ..types import Array
from .accounting.gaussian import compose_mu
from .accounting.masked import Slack, discrete_slack, masked_epsilon, release_mu
from .facts import RunFacts, SumFacts

_ROUNDED = (
    1 + 4e-12
) ** 2  # rows pass as short enough where floats make them a little longer; twice, for x x'


def masked_mu(run: RunFacts, rounds: Iterable[int], honest: int) -> float:
    """mu of these rounds together when so many noises protect a site."""
    each = [_mu(entry, honest, run.sites_per_person) for entry in _sums(run, rounds)]
    return float(compose_mu(np.array(each))) if each else 0.0


def masked_cost(run: RunFacts, rounds: Iterable[int], delta: float, honest: int) -> float:
    """epsilon at delta of these rounds together when so many noises protect a site."""
    charged = list(rounds)
    if not charged:
        return 0.0
    return _epsilon(masked_mu(run, charged, honest), delta, _slack(_sums(run, charged), honest))


def masked_slack(run: RunFacts, rounds: Iterable[int], honest: int) -> Slack:
    """What discrete noise adds to these rounds together when so many noises protect a site."""
    return _slack(_sums(run, rounds), honest)


def masked_table(run: RunFacts, rounds: Iterable[int], delta: float) -> tuple[float, ...]:
    """epsilon at delta against c = 0 .. N-1 colluding sites; it never falls."""
    charged = list(rounds)
    known = {honest: masked_cost(run, charged, delta, honest) for honest in set(_honest(run))}
    return tuple(known[honest] for honest in _honest(run))


def masked_curve(run: RunFacts, rounds: Sequence[int], delta: float, honest: int) -> Array:
    """epsilon at delta after each of these rounds."""
    return np.array([masked_cost(run, rounds[: k + 1], delta, honest) for k in range(len(rounds))])


def colluders(run: RunFacts, colluding: int | None) -> int:
    """c as a number within 0 .. N-1; None means all the others."""
    run.honest(colluding)
    return run.sites - 1 if colluding is None else int(colluding)


def _honest(run: RunFacts) -> list[int]:
    return [run.honest(c) for c in range(run.sites)]


def _sums(run: RunFacts, rounds: Iterable[int]) -> list[SumFacts]:
    if not run.masked:
        raise ParameterError(f"`method` must be 'masked' for masked sums; got {run.method!r}.")
    return [run.sums[t - 1] for t in rounds]


def _mu(entry: SumFacts, honest: int, places: int) -> float:
    """One sum. A person at several sites moves it no further, but every one of those sites rounds anew."""
    again = 2 * entry.stray + entry.grid * math.sqrt(entry.length)
    S = entry.sensitivity * _ROUNDED + (places - 1) * again
    return float(release_mu(S, entry.grid, entry.length, entry.std, honest, entry.stray))


def _slack(sums: Iterable[SumFacts], honest: int) -> Slack:
    """What discrete noise adds in all of these sums."""
    each = [_one_slack(entry.std, entry.length, honest) for entry in sums]
    return Slack(float(np.sum([one.epsilon for one in each])) * (1 + 1e-12), sum(one.failure for one in each))


@functools.lru_cache(maxsize=4096)  # sites with the same rounds ask for the same figure
def _epsilon(mu: float, delta: float, slack: Slack) -> float:
    return float(masked_epsilon(mu, delta, slack))


@functools.lru_cache(maxsize=4096)
def _one_slack(std: float, length: int, honest: int) -> Slack:
    return discrete_slack(std, length, 1, honest)

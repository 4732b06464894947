"""The cost of masked sums, by the number of other sites that collude with the observer.

The messages of honest sites are uniform except for their sum, so the noises of all honest sites protect each
record. The figure for the case that all other sites collude does not rely on masks.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence

import numpy as np

from ..core.errors import ParameterError
from ..core.types import Array
from .accounting.gaussian import compose_mu
from .accounting.masked_sums import Slack, discrete_slack, masked_epsilon, release_mu
from .facts import RunFacts
from .sums import SumFacts

_ROUNDED = (1 + 4e-12) ** 2  # tolerance for rows that floats make a little too long; twice, for x x'


def masked_mu(run: RunFacts, rounds: Iterable[int], honest: int) -> float:
    """mu of these rounds together when so many noises protect a site."""
    each = [
        _mu(entry, _honest_at(run, entry.t, honest), run.sites_per_person) for entry in _sums(run, rounds)
    ]
    return float(compose_mu(np.array(each))) if each else 0.0


def moments_mu(run: RunFacts, t: int) -> float:
    """mu of the moments of the rows that round t of a whitened run releases: the site's own noise alone."""
    return _mu(run.sums[t - 1], 1, 1)


def masked_cost(run: RunFacts, rounds: Iterable[int], delta: float, honest: int) -> float:
    """epsilon at delta of these rounds together when so many noises protect a site."""
    charged = list(rounds)
    if not charged:
        return 0.0
    slack = masked_slack(run, charged, honest)
    return float(_epsilon(masked_mu(run, charged, honest), delta, slack))


def masked_slack(run: RunFacts, rounds: Iterable[int], honest: int) -> Slack:
    """What discrete noise adds to these rounds together when so many noises protect a site."""
    sums = _sums(run, rounds)
    each = [_slack(entry.std, entry.length, 1, _honest_at(run, entry.t, honest)) for entry in sums]
    return Slack(float(np.sum([one.epsilon for one in each])) * (1 + 1e-12), sum(one.failure for one in each))


def masked_table(run: RunFacts, rounds: Iterable[int], delta: float) -> tuple[float, ...]:
    """epsilon at delta against c = 0 .. N-1 colluding sites; it never falls."""
    charged = list(rounds)
    each = [run.honest(c) for c in range(run.sites)]
    known = {honest: masked_cost(run, charged, delta, honest) for honest in set(each)}
    return tuple(known[honest] for honest in each)


def masked_curve(run: RunFacts, rounds: Sequence[int], delta: float, honest: int) -> Array:
    """epsilon at delta after each of these rounds."""
    return np.array([masked_cost(run, rounds[: k + 1], delta, honest) for k in range(len(rounds))])


def colluders(run: RunFacts, colluding: int | None) -> int:
    """c as a number within 0 .. N-1; None means all the others."""
    run.honest(colluding)
    return run.sites - 1 if colluding is None else int(colluding)


def _honest_at(run: RunFacts, release: int, honest: int) -> int:
    """The number of noises that protect a release, if some of the `honest` sites did not take part."""
    members = [entry.members for entry in run.attempts if entry.first <= release]
    return max(1, len(members[-1]) - (run.sites - honest)) if members else honest


def _sums(run: RunFacts, rounds: Iterable[int]) -> list[SumFacts]:
    if not (run.masked or run.moments):
        raise ParameterError(f"`method` must be 'masked' for masked sums; got {run.method!r}.")
    return [run.sums[t - 1] for t in rounds]


def _mu(entry: SumFacts, honest: int, places: int) -> float:
    """One sum. A person at several sites moves it no further, but each of those sites rounds separately."""
    again = 2 * entry.stray + entry.grid * math.sqrt(entry.length)
    S = entry.sensitivity * _ROUNDED + (places - 1) * again
    return float(release_mu(S, entry.grid, entry.length, entry.std, honest, entry.stray))


_epsilon = functools.lru_cache(maxsize=4096)(masked_epsilon)  # sites with the same rounds ask the same
_slack = functools.lru_cache(maxsize=4096)(discrete_slack)

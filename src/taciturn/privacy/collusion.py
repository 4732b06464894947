"""The cost of masked sums, as a function of the number of sites that collude with the observer.

In a masked sum each site hides its message behind random masks, which cancel in the sum over all sites. A
site that does not collude is honest. The observer learns only the sum of the honest sites' messages. So the
noise of all honest sites together protects each record of an honest site. If only one site is honest, only
its own noise protects its records, and the cost does not rely on masks. Certain pairs of sites share masks.
The pairs that share masks form a graph. The argument `honest` is usually the number of honest sites among all
sites of the run. But if some choice of the colluding sites leaves the honest sites disconnected in this
graph, `honest` is 1. If some sites do not take part in a release (one masked sum), fewer sites add noise to
it, and `_honest_at` counts the honest sites that take part. The cost mu of Gaussian differential privacy is
defined in `accounting/gaussian.py`.
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

# a margin for rounding error in the norm of a row x; squared, because some sums add up the products x x'
_ROUNDED = (1 + 4e-12) ** 2


def masked_mu(run: RunFacts, rounds: Iterable[int], honest: int) -> float:
    """mu of these rounds together if the noise of `honest` sites protects every record."""
    each = [
        _mu(entry, _honest_at(run, entry.t, honest), run.sites_per_person) for entry in _sums(run, rounds)
    ]
    return float(compose_mu(np.array(each))) if each else 0.0


def moments_mu(run: RunFacts, t: int) -> float:
    """mu of round t, which releases moments (sums of x x').

    Only the noise of the site that holds a record counts as protecting this record (`honest` is 1).
    """
    return _mu(run.sums[t - 1], 1, 1)


def masked_cost(run: RunFacts, rounds: Iterable[int], delta: float, honest: int) -> float:
    """epsilon at delta of these rounds together if the noise of `honest` sites protects every record."""
    charged = list(rounds)
    if not charged:
        return 0.0
    slack = masked_slack(run, charged, honest)
    return float(_epsilon(masked_mu(run, charged, honest), delta, slack))


def masked_slack(run: RunFacts, rounds: Iterable[int], honest: int) -> Slack:
    """What these rounds cost in addition because the noise of the `honest` sites is discrete, not normal."""
    sums = _sums(run, rounds)
    each = [_slack(entry.std, entry.length, 1, _honest_at(run, entry.t, honest)) for entry in sums]
    return Slack(float(np.sum([one.epsilon for one in each])) * (1 + 1e-12), sum(one.failure for one in each))


def masked_table(run: RunFacts, rounds: Iterable[int], delta: float) -> tuple[float, ...]:
    """epsilon at delta if c of the N sites collude, for c = 0 .. N-1. It never decreases with c."""
    charged = list(rounds)
    each = [run.honest(c) for c in range(run.sites)]
    known = {honest: masked_cost(run, charged, delta, honest) for honest in set(each)}
    return tuple(known[honest] for honest in each)


def masked_curve(run: RunFacts, rounds: Sequence[int], delta: float, honest: int) -> Array:
    """epsilon at delta after each of these rounds, if the noise of `honest` sites protects every record."""
    return np.array([masked_cost(run, rounds[: k + 1], delta, honest) for k in range(len(rounds))])


def colluders(run: RunFacts, colluding: int | None) -> int:
    """The number of colluding sites, 0 .. N-1; None means all sites but one, N-1."""
    run.honest(colluding)  # raises if `colluding` is not between 0 and N-1
    return run.sites - 1 if colluding is None else int(colluding)


def fewest_honest(run: RunFacts, honest: int) -> int:
    """The number of honest sites whose noise protects a release; the minimum over all releases.

    A run consists of attempts. An attempt has a fixed list of sites, so the number is the same for all
    releases of an attempt.
    """
    return min([_honest_at(run, entry.first, honest) for entry in run.attempts], default=honest)


def _honest_at(run: RunFacts, release: int, honest: int) -> int:
    """The number of honest sites whose noise protects this release. In the worst case, which is counted here,
    all colluding sites take part, and every site that does not take part is honest."""
    members = [entry.members for entry in run.attempts if entry.first <= release]
    return max(1, len(members[-1]) - (run.sites - honest)) if members else honest


def _sums(run: RunFacts, rounds: Iterable[int]) -> list[SumFacts]:
    if not run.sums:
        raise ParameterError(f"`method` must be 'masked' for masked sums; got {run.method!r}.")
    return [run.sums[t - 1] for t in rounds]


def _mu(entry: SumFacts, honest: int, places: int) -> float:
    """mu of one sum. `places` is the largest number of sites that hold rows of one person: each of these
    sites rounds its share separately, so each further site adds a rounding error to the bound."""
    again = 2 * entry.stray + entry.grid * math.sqrt(entry.length)
    S = entry.sensitivity * _ROUNDED + (places - 1) * again
    return float(release_mu(S, entry.grid, entry.length, entry.std, honest, entry.stray))


_epsilon = functools.lru_cache(maxsize=4096)(masked_epsilon)  # cached, because many releases are equal
_slack = functools.lru_cache(maxsize=4096)(discrete_slack)

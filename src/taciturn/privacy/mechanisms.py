"""Mechanism: the properties of a method, from which the privacy accountant finds the bounds to use."""

from __future__ import annotations

from typing import NamedTuple

from ..core import checks
from ..core.errors import ParameterError
from .stated_cost import OWN, StatedCost


class Mechanism(NamedTuple):
    """The kind of releases that a method makes; a new method adds one entry to `MECHANISMS`.

    noises : the kinds of noise that the method may have.
    summed : every round is a masked sum over all sites, in which the noise of all sites adds up. The sites
        have no schedules of their own.
    inside : the noise is part of the problem that a site solves; the output may have further noise.
    exact : without noise on the output, the guarantee needs the exact minimiser.
    moments : the first rounds may release moments of the rows.
    """

    noises: tuple[str, ...] = ("norm", "gaussian")
    summed: bool = False
    inside: bool = False
    exact: bool = False
    moments: bool = False


MECHANISMS = {
    "penalty": Mechanism(inside=True, exact=True, moments=True),
    "dual": Mechanism(inside=True, exact=True),
    "primal": Mechanism(),
    "masked": Mechanism(("discrete",), summed=True),
    OWN: Mechanism((OWN,)),
    "none": Mechanism(("none",), exact=True),
}
NOISES = tuple(dict.fromkeys(noise for entry in MECHANISMS.values() for noise in entry.noises))


def check_method(method: str, noise: str, stated: StatedCost | None) -> None:
    """Raise if the method may not have this noise, if a user's own method does not state its cost, or if
    any other method states a cost."""
    checks.choice("method", method, tuple(MECHANISMS))
    checks.choice("noise", noise, NOISES)
    if noise not in MECHANISMS[method].noises:
        allowed = " or ".join(map(repr, MECHANISMS[method].noises))
        raise ParameterError(f"`noise` must be {allowed} for method {method!r}; got {noise!r}.")
    if (noise == OWN) != (stated is not None):
        raise ParameterError(
            f"`stated` must be given for method 'own', and for no other method; got method {method!r}."
        )

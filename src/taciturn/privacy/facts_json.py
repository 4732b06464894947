"""Convert facts to plain JSON values and back. Floats stay exact.

Unknown keys are errors. Missing keys are errors too, except those that earlier versions did not write.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from ..core.errors import ParameterError
from .facts import RunFacts, SiteBudget, SiteFacts
from .loss_facts import LossFacts
from .stated_cost import StatedCost
from .sums import AttemptFacts, SumFacts

_ADDED = {"eta", "scale", "output_scale"}  # keys that are missing in ledgers older than certificate format 2
T = TypeVar("T", RunFacts, SiteFacts, LossFacts, SumFacts, AttemptFacts, StatedCost, SiteBudget)


def to_plain(facts: RunFacts | SiteFacts | SiteBudget) -> dict[str, Any]:
    """Facts as JSON values; tuples become lists. Empty `attempts` and a `stated` of None are left out."""
    plain = dataclasses.asdict(facts)
    for entry in plain.get("attempts", ()):
        entry["members"] = list(entry["members"])
    if not plain.get("attempts", True):
        del plain["attempts"]
    if (stated := plain.pop("stated", None)) is not None:
        plain["stated"] = stated | {"renyi": stated["renyi"] and [list(pair) for pair in stated["renyi"]]}
    return {key: list(value) if isinstance(value, tuple) else value for key, value in plain.items()}


def run_from(plain: Any) -> RunFacts:
    """The facts of a run, from the JSON values that `to_plain` returned."""
    fields = {"stated": None, "attempts": (), **plain} if isinstance(plain, Mapping) else plain
    _check_keys(RunFacts, fields)
    if fields["stated"] is not None:
        fields["stated"] = _made(StatedCost, fields["stated"])
    fields["loss"] = _made(LossFacts, fields["loss"])
    kinds: dict[str, type[Any]] = {"sums": SumFacts, "attempts": AttemptFacts}
    for name, kind in kinds.items():
        if not isinstance(fields[name], Sequence) or isinstance(fields[name], str):
            raise ParameterError(
                f"the facts of RunFacts contain a value of the wrong type: `{name}` must be a list."
            )
        fields[name] = tuple(_made(kind, entry) for entry in fields[name])
    return _made(RunFacts, fields)


def site_from(plain: Any) -> SiteFacts:
    """The facts of a site, from the JSON values that `to_plain` returned."""
    missing = {name: () for name in _ADDED} if isinstance(plain, Mapping) and not _ADDED & set(plain) else {}
    return _made(SiteFacts, {**plain, **missing} if missing else plain)


def budget_from(plain: Any) -> SiteBudget | None:
    """The budget of a site, from the JSON values that `to_plain` returned; None stays None."""
    return None if plain is None else _made(SiteBudget, plain)


def _made(cls: type[T], plain: Any) -> T:
    """An instance of `cls` whose fields are exactly the entries of a mapping."""
    _check_keys(cls, plain)
    try:
        return cls(**plain)
    except (TypeError, AttributeError) as error:
        raise ParameterError(f"the facts of {cls.__name__} contain a value of the wrong type.") from error


def _check_keys(cls: type[Any], plain: Any) -> None:
    if not isinstance(plain, Mapping):
        raise ParameterError(f"the facts of {cls.__name__} must be an object; got {type(plain).__name__}.")
    names = {entry.name for entry in dataclasses.fields(cls)}
    if set(plain) != names:
        odd = sorted(names.symmetric_difference(map(str, plain)))
        raise ParameterError(f"the facts of {cls.__name__} have missing or unknown keys: {', '.join(odd)}.")

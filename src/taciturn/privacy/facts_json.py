"""Facts as plain JSON values and back, strictly: no unknown or missing key, floats to the last bit."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from ..errors import ParameterError
from .facts import LossFacts, RunFacts, SiteBudget, SiteFacts, SumFacts

T = TypeVar("T", RunFacts, SiteFacts, LossFacts, SumFacts, SiteBudget)


def to_plain(facts: RunFacts | SiteFacts | SiteBudget) -> dict[str, Any]:
    """Facts as JSON values; tuples become lists."""
    plain = dataclasses.asdict(facts)
    return {key: list(value) if isinstance(value, tuple) else value for key, value in plain.items()}


def run_from(plain: Any) -> RunFacts:
    """The run's facts that `to_plain` wrote."""
    fields = _fields(RunFacts, plain)
    fields["loss"] = _made(LossFacts, _fields(LossFacts, fields["loss"]))
    if not isinstance(fields["sums"], Sequence) or isinstance(fields["sums"], str):
        raise ParameterError("the facts of RunFacts hold a value of the wrong type: `sums` must be a list.")
    fields["sums"] = tuple(_made(SumFacts, _fields(SumFacts, entry)) for entry in fields["sums"])
    return _made(RunFacts, fields)


def site_from(plain: Any) -> SiteFacts:
    """The site's facts that `to_plain` wrote."""
    return _made(SiteFacts, _fields(SiteFacts, plain))


def budget_from(plain: Any) -> SiteBudget | None:
    """The budget that `to_plain` wrote."""
    return None if plain is None else _made(SiteBudget, _fields(SiteBudget, plain))


def _fields(cls: type[Any], plain: Any) -> dict[str, Any]:
    """The mapping's entries if they are exactly the fields of `cls`."""
    names = {entry.name for entry in dataclasses.fields(cls)}
    if not isinstance(plain, Mapping):
        raise ParameterError(f"the facts of {cls.__name__} must be an object; got {type(plain).__name__}.")
    if set(plain) != names:
        odd = sorted(names.symmetric_difference(map(str, plain)))
        raise ParameterError(f"the facts of {cls.__name__} have missing or unknown keys: {', '.join(odd)}.")
    return dict(plain)


def _made(cls: type[T], fields: dict[str, Any]) -> T:
    try:
        return cls(**fields)
    except (TypeError, AttributeError) as error:
        raise ParameterError(f"the facts of {cls.__name__} hold a value of the wrong type.") from error

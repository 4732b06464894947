"""Read and write schedules, losses and noises as TOML values, for every kind of file that contains them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

from .. import schedules
from ..core import checks
from ..core.errors import ParameterError
from ..objective.losses import SHIPPED, Loss
from ..privacy.noise import NOISES, GaussianNoise, NormNoise

NAME = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
"""The pattern of a site's name: in lower case, and valid as one part of a host name."""

LISTED = BeforeValidator(lambda entry: tuple(entry) if isinstance(entry, list) else entry)
"""Turns a TOML list into a tuple, which frozen models need."""


def _with_key(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make `read` raise `ValueError`, not `ParameterError`: pydantic adds the key to a `ValueError`."""

    def reader(entry: Any) -> Any:
        try:
            return read(entry)
        except ParameterError as error:
            raise ValueError(str(error)) from error

    return reader


def read_loss(entry: Any) -> Loss:
    """Read a loss: its name, such as "logistic", or a table such as {kind = "smooth-hinge", h = 0.5}."""
    fields = dict(entry) if isinstance(entry, Mapping) else {"kind": entry}
    kind = SHIPPED[checks.choice("kind", fields.pop("kind", None), tuple(SHIPPED))]
    known = signature(kind).parameters
    if wrong := sorted(set(fields) - set(known)):
        keys = ", ".join(["kind", *known])
        raise ParameterError(f"the loss {kind.name} does not accept these keys: {wrong}; it accepts {keys}.")
    return kind(**fields)


def read_noise(entry: Any) -> NormNoise | GaussianNoise:
    """Read {kind = "norm", rate = 3.0} or {kind = "gaussian", std = 1.0}; `rate` and `std` are schedules."""
    if not isinstance(entry, Mapping):
        raise ParameterError('a noise must be a table, such as { kind = "norm", rate = 3.0 }.')
    noise = NOISES[checks.choice("kind", entry.get("kind"), tuple(NOISES))]
    if set(entry) != {"kind", noise.parameter}:
        raise ParameterError(
            f"{noise.kind} noise must have the keys `kind` and `{noise.parameter}`; got {sorted(entry)}."
        )
    return noise(schedules.from_dict(entry[noise.parameter]))


def write_loss(loss: Any) -> dict[str, Any]:
    """The loss as a table. `read_loss` can read the tables of all losses except the squared loss."""
    return {"kind": str(loss.name), **vars(loss)}


def write_noise(noise: NormNoise | GaussianNoise) -> dict[str, Any]:
    """The noise as a table that `read_noise` can read."""
    return {"kind": noise.kind, noise.parameter: schedules.to_dict(getattr(noise, noise.parameter))}


def read_schedules(entry: Any) -> Any:
    """Read one schedule, or a list with one schedule for each site."""
    if isinstance(entry, list):
        return [schedules.from_dict(one) for one in entry]
    return schedules.from_dict(entry)


def write_schedules(entry: Any) -> Any:
    """The schedules in a form that `read_schedules` can read."""
    return [schedules.to_dict(one) for one in entry] if isinstance(entry, list) else schedules.to_dict(entry)


ScheduleField = Annotated[
    Any, BeforeValidator(_with_key(schedules.from_dict)), PlainSerializer(schedules.to_dict)
]
SchedulesField = Annotated[Any, BeforeValidator(_with_key(read_schedules)), PlainSerializer(write_schedules)]
LossField = Annotated[Any, BeforeValidator(_with_key(read_loss)), PlainSerializer(write_loss)]
NoiseField = Annotated[Any, BeforeValidator(_with_key(read_noise)), PlainSerializer(write_noise)]

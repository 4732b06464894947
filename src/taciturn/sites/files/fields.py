"""The parts that both files share: schedules, losses and noises, as one types them in TOML."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

from ... import checks, schedules
from ...errors import ParameterError
from ...objective.losses import SHIPPED, Loss
from ...privacy.noise import NOISES, GaussianNoise, NormNoise

LISTED = BeforeValidator(lambda entry: tuple(entry) if isinstance(entry, list) else entry)
"""A list, as TOML has it, for the tuple of a frozen fact."""


def _told(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Pass `ParameterError` on in the form that pydantic attaches a key to."""

    def reader(entry: Any) -> Any:
        try:
            return read(entry)
        except ParameterError as error:
            raise ValueError(str(error)) from error

    return reader


def read_schedule(entry: Any) -> schedules.Schedule:
    """0.5, or {kind = "geometric", start = 0.5, ratio = 1.04}"""
    if isinstance(entry, Mapping):
        return schedules.from_dict(dict(entry))
    return schedules.as_schedule("value", entry)


def read_loss(entry: Any) -> Loss:
    """ "logistic", or {kind = "smooth-hinge", h = 0.5}"""
    fields = dict(entry) if isinstance(entry, Mapping) else {"kind": entry}
    kind = checks.choice("kind", fields.pop("kind", None), tuple(SHIPPED))
    try:
        loss: Loss = SHIPPED[kind](**fields)
    except TypeError as error:
        raise ParameterError(f"the loss {kind} does not take these keys: {sorted(fields)}.") from error
    return loss


def read_noise(entry: Any) -> NormNoise | GaussianNoise:
    """{kind = "norm", rate = 3.0} or {kind = "gaussian", std = 1.0}; both take a schedule."""
    if not isinstance(entry, Mapping):
        raise ParameterError('a noise must be a table: { kind = "norm", rate = 3.0 }.')
    noise = NOISES[checks.choice("kind", entry.get("kind"), tuple(NOISES))]
    if set(entry) != {"kind", noise.parameter}:
        raise ParameterError(f"{noise.kind} noise takes `kind` and `{noise.parameter}`; got {sorted(entry)}.")
    return noise(read_schedule(entry[noise.parameter]))


def write_loss(loss: Any) -> dict[str, Any]:
    """A loss as `read_loss` takes it."""
    return {"kind": str(loss.name), **vars(loss)}


def write_noise(noise: NormNoise | GaussianNoise) -> dict[str, Any]:
    """A noise as `read_noise` takes it."""
    return {"kind": noise.kind, noise.parameter: schedules.to_dict(getattr(noise, noise.parameter))}


ScheduleField = Annotated[
    Any, BeforeValidator(_told(read_schedule)), PlainSerializer(schedules.to_dict, return_type=dict)
]
LossField = Annotated[Any, BeforeValidator(_told(read_loss)), PlainSerializer(write_loss, return_type=dict)]
NoiseField = Annotated[
    Any, BeforeValidator(_told(read_noise)), PlainSerializer(write_noise, return_type=dict)
]

"""What the options of several commands share: the losses by name, and numbers that cannot be used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

import typer

from ..core.errors import ParameterError

if TYPE_CHECKING:
    from ..objective import losses

LossName = Literal["logistic", "smooth-hinge", "log-cosh"]


def make_loss(name: str | None) -> losses.Loss:
    """The shipped loss of that name, with its usual parameters; the logistic one by default."""
    from ..objective.losses import SHIPPED

    return SHIPPED[name or "logistic"]()


@contextmanager
def usage_errors() -> Iterator[None]:
    """A parameter out of its range is wrong usage here, exit code 2: it was typed as an option."""
    try:
        yield
    except ParameterError as error:
        raise typer.BadParameter(str(error)) from error

"""What the options of several commands share: the losses by name, and numbers that cannot be used."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from ..errors import ParameterError

if TYPE_CHECKING:
    from ..objective import losses


class LossName(enum.StrEnum):
    """The losses that are shipped."""

    logistic = "logistic"
    smooth_hinge = "smooth-hinge"
    log_cosh = "log-cosh"

    def make(self) -> losses.Loss:
        """The loss of that name, with its usual parameters."""
        from ..objective.losses import SHIPPED

        return SHIPPED[self.value]()


@contextmanager
def usage_errors() -> Iterator[None]:
    """A parameter out of its range is wrong usage here, exit code 2: it was typed as an option."""
    try:
        yield
    except ParameterError as error:
        raise typer.BadParameter(str(error)) from error

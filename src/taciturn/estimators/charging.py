"""The budget and the ledger file to which the privacy cost of a fit is charged.

The active budget is the `taciturn.Budget` that is open in a `with` block. A ledger file is a new SQLite file
that records the cost of each round of a fit. A round is recorded once for all outputs (linear models) of the
fit, before any vector of this round is released.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Self

from sklearn.base import BaseEstimator, clone

from ..core.errors import ParameterError
from ..privacy.ledger.active import ORIGIN, note_origin


class ChargedEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator whose fits are charged to the active budget, even after it is pickled or cloned."""

    def __getstate__(self) -> dict[str, Any]:
        """Add the active budget to the pickled state, so that a fit in another process is charged to it."""
        return {**super().__getstate__(), ORIGIN: note_origin(self)}

    def __sklearn_clone__(self) -> Self:
        """Clone the estimator; a fit of the clone is charged to the same budget as a fit of the original.

        The clone uses the same engine object, because locks and connections of an engine cannot be copied.
        """
        values = self.get_params(deep=False)
        shared = {"engine": values.pop("engine")} if "engine" in values else {}
        copy = type(self)(**{name: clone(value, safe=False) for name, value in values.items()}, **shared)
        for name in (ORIGIN, "_metadata_request"):
            if name in vars(self):
                setattr(copy, name, deepcopy(vars(self)[name]))
        return copy


@dataclass(frozen=True)
class LedgerFile:
    """The path of the ledger of a fit. `marks` are short warnings for the fit's certificate."""

    path: str | PathLike[str]
    marks: tuple[str, ...] = ()


def ledger_file(ledger: Any, seed: int | None) -> LedgerFile | None:
    """The ledger file of a fit, from the estimator's parameter `ledger`, checked; None without a ledger."""
    if ledger is None:
        return None
    if not isinstance(ledger, str | PathLike | LedgerFile):
        raise ParameterError(f"`ledger` must be a path; got {type(ledger).__name__}.")
    file = ledger if isinstance(ledger, LedgerFile) else LedgerFile(ledger)
    if seed is not None:
        raise ParameterError(
            "`ledger` must be None with a `random_state`: noise that can be reproduced protects no one, "
            "so there is nothing to record."
        )
    if Path(file.path).exists():
        raise ParameterError(
            f"`ledger` must be a new file; {fspath(file.path)} already exists. Every fit spends "
            "budget again, and needs a new ledger."
        )
    return file

"""The ledger file of a fit: a new SQLite file that records the privacy cost of each round.

Each round is recorded once for all outputs (linear models) of the fit, before anything of the round is
released.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from ..core.errors import ParameterError


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

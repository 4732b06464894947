"""The record of a fit: a new file, charged once a round for all outputs, before the first is released."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from ..core.errors import ParameterError


@dataclass(frozen=True)
class LedgerFile:
    """A new SQLite file that a fit is charged to; `marks` are further warnings for its certificate."""

    path: str | PathLike[str]
    marks: tuple[str, ...] = ()


def ledger_file(ledger: Any, seed: int | None) -> LedgerFile | None:
    """The file of an estimator's `ledger`, if it can be the record of a fit; None where there is none."""
    if ledger is None:
        return None
    if not isinstance(ledger, str | PathLike | LedgerFile):
        raise ParameterError(f"`ledger` must be a path; got {type(ledger).__name__}.")
    file = ledger if isinstance(ledger, LedgerFile) else LedgerFile(ledger)
    if seed is not None:
        raise ParameterError(
            "`ledger` must be None with a `random_state`: noise that can be replayed protects nobody, "
            "so there is nothing to record."
        )
    if Path(file.path).exists():
        raise ParameterError(
            f"`ledger` must be a new file; {fspath(file.path)} exists. Every fit spends "
            "again and needs its own record."
        )
    return file

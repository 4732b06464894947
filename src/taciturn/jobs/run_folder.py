"""The folder of a run of `taciturn train`: what it may hold before, after, and after a crash."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..diskfile import PART, write_whole
from ..errors import LedgerError, ParameterError

if TYPE_CHECKING:
    from ..privacy.certificate.certificate import Certificate

MODEL, CERTIFICATE, TRACE, REPORT = "model.json", "certificate.json", "trace.npz", "report.html"
LEDGER = "ledger.sqlite"
README = "README.txt"
RESULTS = (MODEL, CERTIFICATE, TRACE, REPORT, README)

WHO_MAY_SEE = f"""What is in this folder, and who may see it
==========================================

May be published, if the epsilon in {CERTIFICATE} is acceptable for everybody who may see it:

  {MODEL:<17} the model, an average of what the sites released
  {TRACE:<17} every vector that a site released
  {CERTIFICATE:<17} what all of it cost, with the facts that the figures follow from: the number
  {"":<17} of rows of each site and every schedule are among them, and count as public
  {REPORT:<17} the same as a page

Keep, and never change or delete; it says no more than the certificate, and may be shown to whoever checks it:

  {LEDGER:<17} what was spent, on record before anything came of it; ledger-1.sqlite and so on
  {"":<17} are runs that were cut off

Never leaves: the tables of the sites, and whatever is computed from them besides, a loss or an accuracy on
their rows included. None of that is in this folder, and no figure of the certificate covers it.

A run with a seed was a rehearsal: its noise can be replayed, and nothing of it may be published.
"""


@dataclass(frozen=True)
class InterruptedRun:
    """A run that was cut off: its ledger, and what is charged there."""

    ledger: Path
    certificate: Certificate

    def words(self) -> str:
        """How far it came, and at what cost."""
        from ..privacy.accounting.shown import rounded_up, shown_delta

        c = self.certificate
        cost = f"epsilon = {rounded_up(c.epsilon)} at delta = {shown_delta(c.delta)}"
        return f"cut off in round {c.rounds} of {c.run.rounds}, with {cost} on record"


def interrupted_runs(folder: Path, delta: float, *, again: bool) -> list[InterruptedRun]:
    """The runs that were cut off in this folder; one line says why it cannot be used otherwise."""
    if not folder.exists():
        return []
    if not folder.is_dir():
        raise ParameterError(f"`--out` must be a new or empty folder; got {folder}, which is a file.")
    ledgers = sorted(folder.glob("ledger*.sqlite"))
    known = {path.name + end for path in ledgers for end in ("", ".lock", "-journal")}
    known.add(LEDGER + ".lock")
    if any(path.name not in known and path.suffix != PART for path in folder.iterdir()):
        raise ParameterError(
            f"`--out` must be a new or empty folder; got {folder}, which holds something. Another run on the "
            "same rows spends again, and needs a folder of its own."
        )
    found = [InterruptedRun(path, _certificate(path, delta)) for path in ledgers if path.stat().st_size]
    spent = [run for run in found if run.certificate.rounds]
    if spent and not again:
        raise LedgerError(
            f"{spent[-1].ledger}: the run before this one was {spent[-1].words()}, and left no model. "
            "`--again` runs it anew beside that record: both costs then add up."
        )
    return spent


def _certificate(path: Path, delta: float) -> Certificate:
    from ..privacy.certificate.certificate import Certificate
    from ..privacy.ledger.disk import SqliteLedger

    with SqliteLedger(path) as ledger:  # not readonly: a run that is still going holds the lock
        return Certificate.from_ledger(ledger, delta=delta)


def set_aside(folder: Path) -> None:
    """Make room for a new ledger; one with charges is kept under a number, one without says nothing."""
    from ..privacy.ledger.disk import SqliteLedger

    path = folder / LEDGER
    if path.exists():
        charged = False
        if path.stat().st_size:  # a disk that was full from the start leaves nothing in it
            with SqliteLedger(path) as ledger:
                charged = ledger.head.rows > 1
        number = 1
        while (kept := folder / f"ledger-{number}.sqlite").exists():  # one may have been taken away
            number += 1
        path.rename(kept) if charged else path.unlink()
    (folder / (LEDGER + ".lock")).unlink(missing_ok=True)


def write_results(folder: Path, contents: Mapping[str, bytes]) -> None:
    """All files of a run, or none of them."""
    try:
        for name, content in contents.items():
            write_whole(folder / name, content)
    except BaseException:
        for name in contents:
            (folder / name).unlink(missing_ok=True)
        raise

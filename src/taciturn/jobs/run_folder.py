"""The folder of a run: the names of its files, the check before a run, and the writing of results.

The ledger is a file in the folder that records the privacy cost of each round before the round starts. After
a crash, only the ledger shows how much privacy budget the run spent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import LedgerError, ParameterError
from ..core.files import PART, write_whole
from ..core.notebook import Drawing

if TYPE_CHECKING:
    from ..privacy.certificate.certificate import Certificate
    from ..questions.answer import PrivateAnswer

MODEL, CERTIFICATE, TRACE, REPORT = "model.json", "certificate.json", "trace.npz", "report.html"
RESULT = "result.json"
LEDGER = "ledger.sqlite"
README = "README.txt"
_TO_REPORT = f'<p><a href="{REPORT}">What this answer cost, and the other files of the run</a></p>'
_ANSWER_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>{kind}</title>
<style>
:root {{ color-scheme: light dark; font-family: system-ui, sans-serif; }}
body {{ max-width: 75rem; margin: 2rem auto; padding: 0 1rem; line-height: 1.4; }}
table {{ display: block; overflow-x: auto; border-collapse: collapse; }}
th, td {{ white-space: nowrap; }}
tr {{ border-bottom: 1px solid #8884; }}
@media print {{ body {{ margin: 0; padding: 0; }} table {{ display: table; font-size: 75%; }}
  th, td {{ white-space: normal; }} tr {{ break-inside: avoid; }} }}
</style></head><body>
{answer}{more}
</body></html>
"""
RESULTS = (MODEL, CERTIFICATE, TRACE, REPORT, README)


@dataclass(frozen=True)
class InterruptedRun:
    """An interrupted run: the path of its ledger, and a certificate of the costs in the ledger."""

    ledger: Path
    certificate: Certificate

    def words(self) -> str:
        """A text with the last charged round, and the cost of all charged rounds."""
        from ..core.formatting import format_cost, format_delta

        c = self.certificate
        cost = f"epsilon = {format_cost(c.epsilon)} at delta = {format_delta(c.delta)}"
        return f"cut off in round {c.rounds} of {c.run.rounds}, with {cost} on record"


def interrupted_runs(folder: Path, delta: float, *, again: bool) -> list[InterruptedRun]:
    """The interrupted runs in this folder that spent privacy budget, with certificates at `delta`.

    Raises if the folder contains anything other than the files of interrupted runs: ledgers, their lock and
    journal files, and partly written files. Also raises if one of the runs has spent privacy budget and
    `again` is False.
    """
    if not folder.exists():
        return []
    if not folder.is_dir():
        raise ParameterError(f"`--out` must be a new or empty folder; got {folder}, which is a file.")
    ledgers = sorted(folder.glob("ledger*.sqlite"))
    known = {LEDGER + ".lock", *(path.name + end for path in ledgers for end in ("", ".lock", "-journal"))}
    if any(path.name not in known and path.suffix != PART for path in folder.iterdir()):
        raise ParameterError(
            f"`--out` must be a new or empty folder; {folder} is not empty. A further run on the "
            "same rows spends budget again, and needs a new folder."
        )
    found = [InterruptedRun(path, _certificate(path, delta)) for path in ledgers if path.stat().st_size]
    spent = [run for run in found if run.certificate.rounds]
    if spent and not again:
        raise LedgerError(
            f"{spent[-1].ledger}: the previous run was {spent[-1].words()}, and left no model. "
            "To start a new run, use `--again`: it keeps this ledger, and the costs of both runs add up."
        )
    return spent


def _certificate(path: Path, delta: float) -> Certificate:
    from ..privacy.certificate.certificate import Certificate
    from ..privacy.ledger.disk import SqliteLedger

    with SqliteLedger(path) as ledger:  # for writing, so that opening fails while a run uses the ledger
        return Certificate.from_ledger(ledger, delta=delta)


def set_aside(folder: Path) -> None:
    """Make room for a new ledger: rename the old ledger if it has charges, else delete it."""
    from ..privacy.ledger.disk import SqliteLedger

    path = folder / LEDGER
    if path.exists():
        charged = False
        if path.stat().st_size:  # if the disk was full, the file may be empty
            with SqliteLedger(path) as ledger:
                charged = ledger.head.rows > 1
        number = 1
        while (kept := folder / f"ledger-{number}.sqlite").exists():  # find the first free number
            number += 1
        path.rename(kept) if charged else path.unlink()
    (folder / (LEDGER + ".lock")).unlink(missing_ok=True)


def write_results(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write the files in `contents`. If one of them cannot be written, delete all of them."""
    try:
        for name, content in contents.items():
            write_whole(folder / name, content)
    except BaseException:
        for name in contents:
            (folder / name).unlink(missing_ok=True)
        raise


def write_answers(folder: Path, answers: Sequence[PrivateAnswer], kinds: Sequence[str]) -> list[Path]:
    """Write every answer as text, HTML and CSV, and as a picture if it has one; return the paths."""
    written = []
    for k, (kind, answer) in enumerate(zip(kinds, answers, strict=True), start=1):
        name = kind if len(answers) == 1 else f"{k}-{kind}"
        page = _ANSWER_PAGE.format(kind=kind, answer=answer.html(), more=_TO_REPORT)
        for end, text in ((".txt", answer.text() + "\n"), (".csv", answer.csv()), (".html", page)):
            written.append(write_whole(folder / (name + end), text))
        picture = answer.plot()
        if isinstance(picture, Drawing):
            written.append(write_whole(folder / f"{name}.svg", picture.svg))
        elif picture is not None:
            picture.savefig(folder / f"{name}.png", dpi=144)
            written.append(folder / f"{name}.png")
    return written

"""train_job: from a job file to a model, a certificate, a trace and a report; what `taciturn train` does."""

from __future__ import annotations

import io
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import Stopped, TaciturnError
from .run_folder import (
    CERTIFICATE,
    LEDGER,
    MODEL,
    README,
    REPORT,
    RESULTS,
    TRACE,
    interrupted_runs,
    set_aside,
    write_results,
)
from .training_job import TrainingJob, read_job

if TYPE_CHECKING:
    from ..estimators.base import PrivateLinearModel
    from ..estimators.model_file import Model
    from ..privacy.ledger.budget import Budget
    from .training import TrainingRows


@dataclass(frozen=True)
class TrainedJob:
    """A job that was trained: the fitted estimator, the folder with its results, and its shared budget."""

    job: TrainingJob
    estimator: PrivateLinearModel
    folder: Path
    budget: Budget | None = None

    @property
    def files(self) -> list[Path]:
        """What the run left behind."""
        return [self.folder / name for name in (*RESULTS, LEDGER) if (self.folder / name).exists()]


@dataclass(frozen=True)
class ReadyJob:
    """A job whose files were checked; nothing is spent yet."""

    job: TrainingJob
    rows: TrainingRows
    folder: Path
    marks: tuple[str, ...]
    budget: Budget | None = None

    def train(self, *, verbose: bool = False) -> TrainedJob:
        """The fit and its files; whatever stops it, what was spent until then is on record."""
        with nullcontext() if self.budget is None else self.budget:
            fitted = _spend(self, verbose=verbose)
        return TrainedJob(self.job, fitted, self.folder, self.budget)


def train_job(
    path: str | PathLike[str],
    out: str | PathLike[str] | None = None,
    *,
    again: bool = False,
    verbose: bool = False,
) -> TrainedJob:
    """Train the job in a file; its results go to `out`, a new or empty folder, or to `run` beside the job.

    Everything is checked before anything is spent, and every charge is in the folder's ledger before its
    round starts. `again` starts a new run after an interrupted one; both costs then add up. `verbose` shows
    the progress on a terminal.
    """
    return prepare_job(path, out, again=again).train(verbose=verbose)


def prepare_job(
    path: str | PathLike[str], out: str | PathLike[str] | None = None, *, again: bool = False
) -> ReadyJob:
    """The job in a file and the rows of its sites, checked; nothing is written but a new, empty budget."""
    from .training import gather

    path = Path(path)
    job = read_job(path)
    folder = path.parent / "run" if out is None else Path(out)
    before = interrupted_runs(folder, job.delta or 1e-5, again=again)
    marks = tuple(f"a run before this one was {run.words()}: that comes on top" for run in before)
    rows = gather(job, path.parent)
    budget = None if job.budget is None else job.budget.open(path.parent)
    return ReadyJob(job, rows, folder, marks, budget)


def _spend(ready: ReadyJob, *, verbose: bool) -> PrivateLinearModel:
    """The fit and its files; whatever stops it, what was spent until then is on record."""
    from ..estimators.charging import LedgerFile
    from .training import fit

    job, folder = ready.job, ready.folder
    made = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    ledger = None if job.seed is not None else folder / LEDGER
    try:
        set_aside(folder)
        fitted, model = fit(
            job, ready.rows, None if ledger is None else LedgerFile(ledger, ready.marks), verbose=verbose
        )
        write_results(folder, _contents(job, fitted, model))
    except KeyboardInterrupt:
        raise Stopped(f"stopped; {_describe_leftovers(folder)}.") from None
    except OSError as error:
        raise TaciturnError(f"{folder}: {error.strerror}; {_describe_leftovers(folder)}.") from error
    finally:
        if made and not any(folder.iterdir()):
            folder.rmdir()
    (folder / (LEDGER + ".lock")).unlink(missing_ok=True)
    return fitted


def _describe_leftovers(folder: Path) -> str:
    """What a run that did not come to its end leaves behind."""
    return f"what it spent is in {folder / LEDGER}" if (folder / LEDGER).exists() else "nothing was spent"


def _contents(job: TrainingJob, fitted: PrivateLinearModel, model: Model) -> dict[str, bytes]:
    """What each file of a run holds."""
    import numpy as np

    from ..report import render
    from .job_reports import training_report

    trace = io.BytesIO()
    names = np.array(fitted.trace_.settings["names"])
    np.savez_compressed(trace, released=fitted.trace_.released, sites=names)
    return {
        MODEL: model.to_json().encode(),
        CERTIFICATE: fitted.certificate_.to_json().encode(),
        TRACE: trace.getvalue(),
        REPORT: render(training_report(job, fitted, model.pipeline())).encode(),
        README: files(__package__).joinpath("starter", "run_readme.txt").read_bytes(),
    }

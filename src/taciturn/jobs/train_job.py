"""`taciturn train`: from a job file to a model, a certificate, a trace and a report.

The certificate states the privacy cost of the run. The trace has every vector that a site released. The
ledger is the file in which the cost of each round is recorded before the round starts.
"""

from __future__ import annotations

import io
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import Stopped, TaciturnError
from ..core.types import Array, LazyRows
from ..data.features.mapped_rows import held_if_few
from ..data.tables.encoder import BoundedEncoder
from ..estimators.base import PrivateLinearModel
from ..estimators.charging import LedgerFile
from ..estimators.classifiers import PrivateLinearSVC, PrivateLogisticRegression
from ..estimators.model_file import Model
from ..estimators.regressor import PrivateHuberRegressor
from ..jobfile.job_format import Label
from ..jobfile.job_rows import JobTables, make_encoder, read_labels, read_tables
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
    from ..privacy.ledger.budget import Budget


@dataclass(frozen=True)
class TrainedJob:
    """A job that was trained: the fitted estimator, the folder of its results, and the owner's budget."""

    job: TrainingJob
    estimator: PrivateLinearModel
    folder: Path
    budget: Budget | None = None

    @property
    def files(self) -> list[Path]:
        """The files with the results of the run."""
        return [self.folder / name for name in (*RESULTS, LEDGER) if (self.folder / name).exists()]


@dataclass(frozen=True)
class ReadyJob:
    """A job whose files have passed all checks; `train` runs it. Nothing is spent yet."""

    job: TrainingJob
    rows: TrainingRows
    folder: Path
    marks: tuple[str, ...]
    budget: Budget | None = None

    def train(self, *, verbose: bool = False) -> TrainedJob:
        """Train and write the files. Without a seed, each cost is first written to a ledger on disk."""
        with self.budget or nullcontext():
            fitted = self._spend(verbose=verbose)
        return TrainedJob(self.job, fitted, self.folder, self.budget)

    def _spend(self, *, verbose: bool) -> PrivateLinearModel:
        job, folder = self.job, self.folder
        made = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        ledger = LedgerFile(folder / LEDGER, self.marks) if job.seed is None else None
        try:
            set_aside(folder)
            fitted, model = fit(job, self.rows, ledger, verbose=verbose)
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


def train_job(
    path: str | PathLike[str],
    out: str | PathLike[str] | None = None,
    *,
    again: bool = False,
    verbose: bool = False,
) -> TrainedJob:
    """Train the job in the file `path`, and write the results to the new or empty folder `out`.

    By default, `out` is the folder `run` next to the job file. Everything is checked before anything is
    spent. Without a seed, the run writes each cost to the folder's ledger before it releases the message that
    has this cost.

    again : True starts a new run after an interrupted run. The costs of both runs add up.
    verbose : True shows the progress on a terminal.
    """
    return prepare_job(path, out, again=again).train(verbose=verbose)


def prepare_job(
    path: str | PathLike[str], out: str | PathLike[str] | None = None, *, again: bool = False
) -> ReadyJob:
    """Read and check a job and the rows of its sites. This creates the budget's file if it does not exist."""
    path = Path(path)
    job = read_job(path)
    folder = path.parent / "run" if out is None else Path(out)
    before = interrupted_runs(folder, job.delta or 1e-5, again=again)
    marks = tuple(f"an earlier run was {run.words()}. This cost comes in addition" for run in before)
    rows = gather(job, path.parent)
    budget = None if job.budget is None else job.budget.open(path.parent)
    return ReadyJob(job, rows, folder, marks, budget)


def _describe_leftovers(folder: Path) -> str:
    """The end of an error message about an interrupted run: where its cost is recorded, if it has a cost."""
    return (
        f"the cost of the run is in {folder / LEDGER}" if (folder / LEDGER).exists() else "nothing was spent"
    )


def _contents(job: TrainingJob, fitted: PrivateLinearModel, model: Model) -> dict[str, bytes]:
    """The content of each file of a run."""
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


_NONE = " "  # replaces an unknown label; no declared class is blank


@dataclass(frozen=True, eq=False, repr=False)
class TrainingRows:
    """The encoded rows of all sites, with the target, the site and the person of each row."""

    encoder: BoundedEncoder
    X: Array | LazyRows
    y: NDArray[Any]
    site: NDArray[np.str_]
    person: NDArray[np.str_] | None = None


def gather(job: TrainingJob, folder: Path) -> TrainingRows:
    """Read and encode all tables. The encoder depends only on the number of records or persons."""
    tables = read_tables(job, job.files(folder), [*job.schema_.names, job.label.column])
    encoder = make_encoder(job, units=tables.units)
    X = held_if_few(encoder.lazy_rows(tables.columns))
    return TrainingRows(encoder, X, targets(job.label, tables), tables.site, tables.person)


def targets(label: Label, tables: JobTables) -> NDArray[Any]:
    """The target of each row: a number or a class. The estimators replace a row without a label by zeros."""
    y, known = read_labels(label, tables.columns[label.column])
    if label.told is None:
        return np.where(known, y, np.nan)
    return np.array([*label.told, _NONE])[np.where(known, y, -1)]


def fit(
    job: TrainingJob, rows: TrainingRows, ledger: LedgerFile | None = None, *, verbose: bool = False
) -> tuple[PrivateLinearModel, Model]:
    """Fit an estimator to the rows. Returns the estimator, and the content of its model file."""
    same = ("epsilon", "delta", "large_delta", "colluding", "rounds", "max_rounds", "noise", "effort")
    options = {name: getattr(job, name) for name in same}
    options |= {
        "graph": job.network(),
        "data_norm": 1.0,
        "fit_intercept": job.intercept,
        "C": job.C or "auto",
        "regularization": job.regularization or "auto",
        "ledger": ledger,
        "random_state": job.seed,
        "verbose": verbose,
    }
    model: Any
    loss, classes = job.loss, job.label.told
    if loss.name == "log-cosh":
        model = PrivateHuberRegressor(target_scale=job.label.scale, scale=loss.scale, **options)
    elif loss.name == "smooth-hinge":
        model = PrivateLinearSVC(classes=classes, smoothing=loss.h, **options)
    else:
        model = PrivateLogisticRegression(classes=classes, **options)
    model.fit(rows.X, rows.y, site=rows.site, person=rows.person)
    return model, Model.of(model, schema=rows.encoder, label=job.label.column)

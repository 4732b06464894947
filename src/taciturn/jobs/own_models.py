"""Write a site's own model: the joint model of all sites, adapted to the rows of this site without noise.

This model must not be shared. So it is stored next to the rows, or in the state folder of the site. It is
never stored in the folder of a run, because the files of that folder may be published.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import SiteError
from ..estimators.model_file import load_model, save_model
from ..jobfile.job_rows import TableFile, read_arrays, read_tables
from .run_folder import MODEL
from .train_job import targets

if TYPE_CHECKING:
    from ..jobfile.job_format import Job
    from ..sites.files.site import Site
    from .train_job import TrainedJob

OWN = "own-model.json"
NOT_TO_BE_SHARED = (
    "do not share this model: it was adapted to the site's rows without noise, and no certificate covers it"
)


def personalise_job(done: TrainedJob, folder: Path) -> list[Path]:
    """Write each site's own model next to the site's table, for example as north.csv.own-model.json.

    If the rows of the site "north" are in a database, its model is north.own-model.json in `folder`, the
    folder of the job file.
    """
    written = []
    for file in done.job.files(folder):
        beside = file.path if isinstance(file.path, Path) else folder / file.site.name
        path = beside.with_name(f"{beside.name}.{OWN}")
        written.append(_personalise(done.job, file, done.folder / MODEL, path))
    return written


def personalise_site(site: Site) -> Path:
    """Write a site's own model to the site's state folder, after the run."""
    return _personalise(site.job, site.rows, site.state / MODEL, site.state / OWN)


def _personalise(job: Job, file: TableFile, model: Path, path: Path) -> Path:
    joint = load_model(model)
    if job.label is not None:
        tables = read_tables(job, [file], [*job.schema_.names, job.label.column])
        own = joint.personalise(tables.columns, targets(job.label, tables))
    elif isinstance(file.path, Path):
        own = joint.personalise(*read_arrays(file.path, "X", "y"))
    else:
        raise SiteError(
            f"`--personalise` needs the key `label` in the job {job.name}: the rows are in a database."
        )
    save_model(own, path)
    return path

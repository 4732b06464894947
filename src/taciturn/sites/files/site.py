"""site.toml: what is this site's alone. Nothing in it leaves the site."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from ...canonical import digest
from ...errors import SiteError
from ...toml import Facts
from .job import Endpoint, Name, NetworkJob, load_job
from .toml import about_files, read_file
from .toml_fields import LISTED, NoiseField, ScheduleField

WATCH = r"^(127\.0\.0\.1|localhost):[0-9]{1,5}$|^unix:.+$"
HEX = r"^[0-9a-fA-F]+$"


def _path(entry: Any) -> Any:
    return Path(entry) if isinstance(entry, str) and entry else entry


FilePath = Annotated[Path, BeforeValidator(_path)]


class Keys(Facts):
    """PEM files, and serial numbers (hexadecimal) of certificates that are believed no more."""

    private: FilePath
    certificate: FilePath
    authority: FilePath
    revoked: Annotated[tuple[Annotated[str, Field(pattern=HEX)], ...], LISTED] = ()


class BudgetEntry(Facts):
    """The budget: the round whose charge would pass it is not released, and the site stops.

    epsilon, delta : what may be spent. Every job is judged at this delta, whatever delta it states its own
        costs at.
    large_delta : insist on a delta, here or in the job, above 1 / rows, with which a row may be given away.
    least_grid : the finest grid of a job that this site takes part in.
    colluding : so many of the other sites, at least, a masked job must be counted against; None: as it says.
    ledger : a file that every job with this table is charged to, whole and before its first round; the budget
        is then one for all of them together (`taciturn.Budget`).
    """

    epsilon: float = Field(gt=0)
    delta: float = Field(default=1e-5, gt=0, lt=1)
    large_delta: bool = False
    least_grid: float = Field(default=2.0**-44, gt=0)
    colluding: int | None = Field(default=None, ge=0)
    ledger: FilePath | None = None


class SiteFile(Facts):
    """The keys of site.toml.

    penalty, noise, output_noise : eta(t) and the noises, where the job's method is "penalty"; output noise
        makes an inexact minimiser private.
    rehearsal : insist on a job with a `seed`, whose noise everybody can repeat: nothing in it is private.
    patience : how many seconds to wait for a silent neighbour before stopping cleanly.
    listen : where to listen, if that is not the endpoint that the job states (behind NAT, for one).
    endpoints : where to reach a neighbour, if that is not the endpoint that the job states.
    watch : where the running site answers this machine alone: 127.0.0.1:PORT, or unix:PATH; nowhere, if none.
    """

    site: Name
    job: FilePath
    data: FilePath
    state: FilePath
    penalty: ScheduleField | None = None
    noise: NoiseField | None = None
    output_noise: NoiseField | None = None
    budget: BudgetEntry
    keys: Keys
    rehearsal: bool = False
    patience: float = Field(default=3600.0, gt=0)
    listen: Endpoint | None = None
    endpoints: dict[Name, Endpoint] = Field(default_factory=dict)
    watch: str | None = Field(default=None, pattern=WATCH)


@dataclass(frozen=True)
class Site:
    """A site and the job that it takes part in; every path is absolute or relative to where we are."""

    file: SiteFile
    job: NetworkJob
    folder: Path

    @property
    def name(self) -> str:
        return self.file.site

    @property
    def number(self) -> int:
        """i, the site's place in the job."""
        return self.job.names.index(self.name)

    @property
    def neighbours(self) -> tuple[str, ...]:
        """Whom it talks to, in the job's order."""
        return self.job.neighbours(self.name)

    @property
    def samples(self) -> int:
        """B_i"""
        return self.job.site(self.name).samples

    @property
    def state(self) -> Path:
        """The folder that holds what a restart needs, and at the end the results."""
        return self.path(self.file.state)

    @property
    def database(self) -> Path:
        """State, ledger and outbox."""
        return self.state / "site.sqlite"

    @property
    def schedules(self) -> bytes:
        """SHA-256 of this site's penalty and noises, which must not change once a run has begun."""
        facts = self.file.model_dump(mode="json", include={"penalty", "noise", "output_noise"})
        return bytes.fromhex(digest(facts))

    def path(self, path: Path) -> Path:
        """A path of site.toml, which counts from the folder of that file."""
        return self.folder / path

    def listens(self) -> str | None:
        """The endpoint to listen on; None for a site that only connects outward."""
        return self.file.listen or self.job.site(self.name).endpoint

    def dials(self) -> dict[str, str]:
        """Whom this site connects to: for each link the site later in the job calls the earlier one.

        A site without an endpoint calls and is never called. Where there is a relay everyone calls it, and a
        site without an endpoint nobody else.
        """
        relay, own = self.job.relay, self.file.endpoints
        calls = {} if relay is None else {relay.name: own.get(relay.name) or relay.endpoint}
        if self.outward:
            return calls
        for name in self.neighbours:
            theirs = own.get(name) or self.job.site(name).endpoint
            if theirs is not None and (self.listens() is None or self.job.names.index(name) < self.number):
                calls[name] = theirs
        return calls

    @property
    def outward(self) -> bool:
        """Whether this site talks through the relay alone."""
        return self.listens() is None and self.job.relay is not None


@about_files
def load_site(path: Path) -> Site:
    """The site in a file, together with its job."""
    file = read_file(path, SiteFile)
    folder = path.parent
    job = load_job(folder / file.job)
    if file.site not in job.names:
        raise SiteError(
            f"{path}: `site`: the job {job.name} has no site {file.site!r}; it has {', '.join(job.names)}."
        )
    known = {*job.neighbours(file.site), *([job.relay.name] if job.relay else [])}
    unknown = sorted(set(file.endpoints) - known)
    if unknown:
        raise SiteError(
            f"{path}: `endpoints.{unknown[0]}`: not a neighbour of {file.site}: {', '.join(sorted(known))}."
        )
    _check_seed(path, file, job)
    _check_method(path, file, job)
    _check_budget(path, file, job)
    return Site(file, job, folder)


def _check_seed(path: Path, file: SiteFile, job: NetworkJob) -> None:
    """No job makes this site's noise public: a seed is for rehearsals, and the owner says what is one."""
    if job.simulated and not file.rehearsal:
        raise SiteError(
            f"{path}: `job.seed`: must be left out of the job; got {job.seed}. With a seed everybody can "
            "repeat the noise, so nothing is private and no budget is charged; to insist, on rows about "
            "nobody, write `rehearsal = true` in site.toml."
        )


def _check_method(path: Path, file: SiteFile, job: NetworkJob) -> None:
    """This site's own settings are those of the job's method."""
    for name in ("penalty", "noise", "output_noise"):
        given = getattr(file, name) is not None
        if job.masked and given:
            raise SiteError(f"{path}: `{name}`: a masked job fixes all of it; leave it out.")
        if not job.masked and not given and name != "output_noise":
            raise SiteError(f"{path}: `{name}`: missing; a job of method 'penalty' needs it.")
    if file.output_noise is None and not job.simulated and not job.masked:
        raise SiteError(
            f"{path}: `output_noise`: a real run needs it: no solver is exact, and no guarantee survives "
            "that without it. `taciturn site init` writes a line that costs next to nothing."
        )


def _check_budget(path: Path, file: SiteFile, job: NetworkJob) -> None:
    """No job makes a budget mean less than it says: by a delta that gives rows away, a grid of nothing, or
    others that are said to be fewer than this site holds possible."""
    budget, rows = file.budget, job.site(file.site).samples
    for key, delta in (("budget.delta", budget.delta), ("job.delta", job.delta)):
        if delta > 1 / rows and not budget.large_delta:
            raise SiteError(
                f"{path}: `{key}`: must be at most 1/{rows}, one over the rows of this site; got {delta:g}. "
                "With more a row may be given away; to insist, write `large_delta = true` in `budget`."
            )
    if not job.masked and job.penalty.grid < budget.least_grid:
        raise SiteError(
            f"{path}: `budget.least_grid`: the job's `grid` must be at least {budget.least_grid:g}; "
            f"got {job.penalty.grid:g}."
        )
    if job.masked and budget.colluding is not None and job.colluding is not None:
        least = min(budget.colluding, len(job.sites) - 1)  # more than all the others are nobody
        if job.colluding < least:
            raise SiteError(
                f"{path}: `budget.colluding`: the job's `colluding` must be at least {least}; got "
                f"{job.colluding}. Its cost holds against no more sites that work together: agree on a job "
                f"with `colluding = {least}`, or write less in `budget`."
            )

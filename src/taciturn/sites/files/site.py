"""site.toml: the private settings of this site, which it sends to no other site.

The site's certificate contains its penalty, noises and budget; show it only to those who may know them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from ...core.canonical import digest
from ...core.errors import SiteError
from ...core.toml import Facts
from ...jobfile.job_format import KINDS
from ...jobfile.job_rows import TableFile
from ...jobfile.owner_file import CsvFacts, DatabaseFacts, check_source
from ...jobfile.toml_fields import LISTED, NoiseField, ScheduleField
from ...jobfile.toml_files import about_files, read_file
from .job import NetworkJob, load_job
from .parties import Endpoint, Name

WATCH = r"^([0-9.]+|localhost):[0-9]{1,5}$|^unix:.+$"
HEX = r"^[0-9a-fA-F]+([ :-]?[0-9a-fA-F]+)*$"
KEYRING = Path("keyring")  # the value of `keys.volatile` that selects the kernel's keyring


def _path(entry: Any) -> Any:
    if isinstance(entry, str) and "\0" in entry:
        raise ValueError("must not contain a NUL character")
    return Path(entry) if isinstance(entry, str) and entry else entry


FilePath = Annotated[Path, BeforeValidator(_path)]


class Keys(Facts):
    """The PEM files of a site, and revoked certificates.

    authority : the certificate of the network's authority, or all sites' certificates if the job lists keys.
    revoked : certificates to reject: serial numbers in hexadecimal, or the SHA-256 of a certificate or a key.
    revocations : certificate revocation lists of the authority, in PEM or DER form.
    volatile : where a run of method "masked" keeps its keys: a folder on an unswapped tmpfs, or "keyring".
        If left out, the site uses the first of these places that is safe: the runtime folder of the service,
        the runtime folder of the user, shared memory, the kernel's keyring.
    """

    private: FilePath
    certificate: FilePath
    authority: FilePath
    revoked: Annotated[tuple[Annotated[str, Field(pattern=HEX)], ...], LISTED] = ()
    revocations: Annotated[tuple[FilePath, ...], LISTED] = ()
    volatile: FilePath | None = None


class BudgetEntry(Facts):
    """The budget of the table. If a job would exceed it, the site releases nothing for the job.

    epsilon, delta : the limits. The cost of a job is computed at this delta, whatever delta the job states.
    large_delta : allow a delta above 1 / rows, in this budget or in the job; such a delta may reveal a row.
    least_grid : the smallest `grid` that this site accepts in a job.
    colluding : how many of the other sites may collude against this site, as its owner assumes. None means
        all of them. A job of method "masked" is charged at its cost under this assumption.
    unit : what the budget protects, a "record" or a "person". For persons, the job must name the column
        with the person's id.
    ledger : the file of the table's account, a `taciturn.Budget`. Every job is charged to it in full, right
        before the first message of the job is stored. By default, each table has an account in the user's
        data folder.
    """

    epsilon: float = Field(gt=0)
    delta: float = Field(default=1e-5, gt=0, lt=1)
    large_delta: bool = False
    least_grid: float = Field(default=2.0**-44, gt=0)
    colluding: int | None = Field(default=None, ge=0)
    unit: Literal["record", "person"] = "record"
    ledger: FilePath | None = None


class ApprovalRules(Facts):
    """`[approve]`: the jobs that need no approval by hand.

    kinds : the kinds of jobs, such as "train" or "describe".
    columns : the columns that these jobs may use; None allows all columns.
    epsilon : the largest cost of one job, computed as for `budget`; None sets no limit for one job.
    programs : the SHA-256 of each installed program that these jobs may run.
    by_site : whether these jobs may ask for separate figures of each site, including this site.
    """

    kinds: Annotated[tuple[str, ...], LISTED] = Field(min_length=1)
    columns: Annotated[tuple[str, ...], LISTED] | None = None
    epsilon: float | None = Field(default=None, gt=0)
    programs: Annotated[tuple[Annotated[str, Field(pattern="^[0-9a-f]{64}$")], ...], LISTED] = ()
    by_site: bool = False

    @model_validator(mode="after")
    def _check_whole(self) -> Self:
        for kind in self.kinds:
            if kind not in KINDS:
                raise ValueError(f"`kinds` must be among {', '.join(KINDS)}; got {kind!r}")
        return self


class SiteFile(Facts):
    """The entries of site.toml.

    data, csv : the file with the rows, and its format if it is CSV.
    database : instead of `data`: the `url` of a database and the `query` that returns the rows.
    penalty, noise, output_noise : for a job of method "penalty": the penalty eta(t), the noise inside the
        penalty term, and the noise on the result of each round, which covers the error of the solver.
    approve : which jobs need no approval by hand. If left out, every job needs it (`taciturn site approve`).
    rehearsal : allow a job with a `seed`. Anyone can reproduce the noise of such a job, so it is not private.
    patience : how long another site may be silent, in seconds. After that, this site stops cleanly or, in a
        job with a `quorum`, continues without the silent site.
    listen : where to listen, if that is not the endpoint that the job states (for example behind NAT).
    endpoints : where to reach a neighbour, if that is not the endpoint that the job states.
    watch : where the running site shows its status: 127.0.0.1:PORT, unix:PATH, or ADDRESS:PORT with a token.
    watch_token : a file with a token: one line of at least 32 characters. Every request must contain it.
    """

    site: Name
    job: FilePath
    data: FilePath | None = None
    csv: CsvFacts | None = None
    database: DatabaseFacts | None = None
    state: FilePath
    penalty: ScheduleField | None = None
    noise: NoiseField | None = None
    output_noise: NoiseField | None = None
    budget: BudgetEntry
    approve: ApprovalRules | None = None
    keys: Keys
    rehearsal: bool = False
    patience: float = Field(default=3600.0, gt=0)
    listen: Endpoint | None = None
    endpoints: dict[Name, Endpoint] = Field(default_factory=dict)
    watch: str | None = Field(default=None, pattern=WATCH)
    watch_token: FilePath | None = None

    @model_validator(mode="after")
    def _check_whole(self) -> Self:
        check_source(self.data, self.csv, self.database)
        return self


@dataclass(frozen=True)
class Site:
    """A site and its job. Its methods return paths that are absolute, or relative to the working directory.

    source : the path of site.toml.
    """

    file: SiteFile
    job: NetworkJob
    source: Path

    @property
    def folder(self) -> Path:
        return self.source.parent

    @property
    def name(self) -> str:
        return self.file.site

    @property
    def number(self) -> int:
        """i, the site's position in the job's list of sites."""
        return self.job.names.index(self.name)

    @property
    def neighbours(self) -> tuple[str, ...]:
        """The names of this site's neighbours, in the order of the job's list of sites."""
        return self.job.neighbours(self.name)

    @property
    def samples(self) -> int:
        """B_i, the number of this site's rows, or of its persons."""
        return self.job.site(self.name).samples

    @property
    def state(self) -> Path:
        """The folder that contains what a restart needs and, after the end of the run, the results."""
        return self.path(self.file.state)

    @property
    def database(self) -> Path:
        """The state file: the state of the protocol, the ledger, and the messages that were sent last."""
        return self.state / "site.sqlite"

    @property
    def volatile(self) -> Path | None:
        """The folder for the keys of a run of method "masked", or `KEYRING`; None if not set."""
        named = self.file.keys.volatile
        return named if named in (None, KEYRING) else self.path(named)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the job's method that each site chooses for itself."""
        return {name: getattr(self.file, name) for name in self.job.settings.own}

    @property
    def schedules(self) -> bytes:
        """SHA-256 of this site's penalty and noises, which must not change once a run has begun."""
        facts = self.file.model_dump(mode="json", include={"penalty", "noise", "output_noise"})
        return bytes.fromhex(digest(facts))

    @cached_property
    def rows(self) -> TableFile:
        """The file or database with this site's rows; a database is read once, in one snapshot."""
        entry, file = self.job.site(self.name), self.file
        if file.data is None and file.database is not None:
            return TableFile(entry, file.database.source(self.folder))
        csv = None if file.csv is None else file.csv.form()
        return TableFile(entry, self.path(file.data or Path()), csv)

    def path(self, path: Path) -> Path:
        """The path of a file that site.toml names relative to its own folder."""
        return self.folder / path

    def listens(self) -> str | None:
        """The endpoint where this site listens; None if the site only makes outgoing connections."""
        return self.file.listen or self.job.site(self.name).endpoint

    def dials(self) -> dict[str, str]:
        """The endpoint of each party that this site connects to, by the name of the party.

        On each link, the site that is later in the job connects to the earlier site. Every site also connects
        to the relay, if there is one. A site that does not listen connects to the relay only; if there is no
        relay, it connects to all its neighbours.
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
        """Whether this site sends everything through the relay."""
        return self.listens() is None and self.job.relay is not None


@about_files
def load_site(path: Path) -> Site:
    """Read site.toml and the job that it names, and check them against each other."""
    file = read_file(path, SiteFile)
    job = load_job(path.parent / file.job)
    if file.site not in job.names:
        raise SiteError(
            f"{path}: `site`: the job {job.name} has no site {file.site!r}; its sites are "
            f"{', '.join(job.names)}."
        )
    known = {*job.neighbours(file.site), *([job.relay.name] if job.relay else [])}
    unknown = sorted(set(file.endpoints) - known)
    if unknown:
        raise SiteError(
            f"{path}: `endpoints.{unknown[0]}` is not a neighbour; {file.site} connects only to "
            f"{', '.join(sorted(known))}."
        )
    _check_seed(path, file, job)
    _check_method(path, file, job)
    _check_budget(path, file, job)
    return Site(file, job, path)


def _check_seed(path: Path, file: SiteFile, job: NetworkJob) -> None:
    """Refuse a job with a seed, which makes the noise public, unless the owner allows a rehearsal."""
    if job.simulated and not file.rehearsal:
        raise SiteError(
            f"{path}: `job.seed` must be left out of the job, except in a rehearsal; got {job.seed}. With a "
            "seed, anyone can reproduce the noise, so nothing is private and no budget is charged. For a "
            "rehearsal on made-up rows, keep the seed and set `rehearsal = true` in site.toml."
        )


def _check_method(path: Path, file: SiteFile, job: NetworkJob) -> None:
    """Check that site.toml has the settings that the job's method needs from each site, and no others."""
    for name in ("penalty", "noise", "output_noise"):
        given, needed = getattr(file, name) is not None, name in job.settings.own
        if given and not needed:
            raise SiteError(
                f"{path}: `{name}` must be left out: the method {job.method!r} of the job sets it."
            )
        if needed and not given and name != "output_noise":
            raise SiteError(f"{path}: `{name}` is missing; a job of method {job.method!r} needs it.")
    if file.output_noise is None and not job.simulated and "output_noise" in job.settings.own:
        raise SiteError(
            f"{path}: `output_noise` must be given: no solver is exact, and without this noise there is no "
            "privacy guarantee. `taciturn site init` writes an `output_noise` that costs almost nothing."
        )


def _check_budget(path: Path, file: SiteFile, job: NetworkJob) -> None:
    """Refuse a job that would weaken the budget: a delta that may reveal rows, a grid that is too fine, or a
    guarantee for records if the budget is for persons."""
    budget, rows = file.budget, job.site(file.site).samples
    for key, delta in (("budget.delta", budget.delta), ("job.delta", job.delta)):
        if delta > 1 / rows and not budget.large_delta:
            raise SiteError(
                f"{path}: `{key}` must be at most 1/{rows}, one divided by this site's number of rows; got "
                f"{delta:g}. A larger delta may reveal a whole row; to allow it, write `large_delta = true` "
                "in `budget`."
            )
    if job.grid is not None and job.grid < budget.least_grid:
        raise SiteError(
            f"{path}: `budget.least_grid`: the job's `grid` must be at least {budget.least_grid:g}; "
            f"got {job.grid:g}."
        )
    if budget.unit == "person" and job.unit != "person":
        raise SiteError(
            f"{path}: `budget.unit`: the budget is for persons, but the job protects single records only. "
            'Agree on a job with unit = "person", and with the name of the column of person ids in `person`.'
        )

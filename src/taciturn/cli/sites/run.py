"""`taciturn site`: run one real site of a network."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...core.errors import ParameterError, one_line
from ..app import app
from ..options import AsJson
from .logs import Level, Log, errors_logged, log_to_stderr, until_stopped

if TYPE_CHECKING:
    from ...sites.files.site import Site
    from ...sites.rounds.ending import SiteResult

site = typer.Typer(
    name="site",
    help="""Run one site of a real network. Sites connect peer to peer, without a server.

    To try a network on this machine, run `taciturn site up`. For a real run, the organiser writes the job
    file and runs `kit`. The operator of each site then runs `keys`, and the network's authority (the person
    who signs the keys of all sites) runs `sign`. After that, the operators run `check`, `approve` and
    `run`.""",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(site)

SiteFile = Annotated[Path, typer.Argument(help="The site's own settings, site.toml.")]


@site.command("init")
def init(
    folder: Annotated[Path, typer.Argument(help="The folder for the two files.")] = Path(),
    name: Annotated[str, typer.Option(help="The name of this site in the job.")] = "alpha",
) -> None:
    """Write commented examples of job.toml and site.toml.

    job.toml is public and the same at all sites; site.toml is for this site only.
    """
    from ...sites.files.kit import write_templates

    written = write_templates(folder, name)
    for path in written:
        typer.echo(f"wrote {path}")
    files = " and ".join(path.name for path in written)
    typer.echo(f"next: edit {files}, then: taciturn site keys site.toml")


@site.command("check")
def check(
    file: SiteFile,
    wait: Annotated[
        float, typer.Option(help="Seconds to wait for the neighbouring sites to answer; 0 skips this check.")
    ] = 5.0,
    log: Log = "text",
    level: Level = "info",
) -> None:
    """Check the files, keys, rows, cost and neighbours of a site.

    Nothing is spent. The exit code is 1 if a check fails.
    """
    from ...sites.files.site import load_site
    from ...sites.rounds.prepare import make_ready
    from ...sites.watch import own
    from ...sites.watch.checkup import costs, neighbours
    from ...sites.watch.own import Finding
    from ...sites.wire.zenoh_log import watch_zenoh

    findings: list[Finding] = []

    def say(finding: Finding) -> None:
        findings.append(finding)
        typer.echo(finding.line())

    log_to_stderr(log, level)
    ready = make_ready(load_site(file))
    job = ready.site.job
    say(Finding(True, f"files: {ready.site.name} in job {job.name}, {job.hash.hex()[:16]}"))
    for finding in (*own.keys(ready), *own.place(ready.site)):
        say(finding)
    counted = "persons" if job.person else "rows"
    unit = f"unit of the owner's budget: {ready.site.file.budget.unit}; unit of the job: {job.unit}"
    read = f"{job.dimension} features" if job.kind == "train" else f"{job.columns} columns"
    say(Finding(True, f"data: {ready.site.samples} {counted}, {read}; {unit}"))
    for finding in (*own.rows(ready.site), *costs(ready)):
        say(finding)
    if wait > 0:
        for finding in neighbours(ready, wait, watch_zenoh(ready.site)):
            say(finding)
    if not all(finding.good for finding in findings):
        raise typer.Exit(1)


@site.command("approve")
def approve(
    file: SiteFile,
    yes: Annotated[bool, typer.Option("--yes", help="Approve without asking.")] = False,
    refuse: Annotated[
        bool, typer.Option("--refuse", help="Refuse the job, even if it was approved before.")
    ] = False,
    log: Annotated[
        bool,
        typer.Option(
            "--log", help="Only show which jobs on this site's table were approved or refused before."
        ),
    ] = False,
) -> None:
    """Show what a job computes and how much privacy it costs; then approve or refuse it.

    The owner of the rows decides. A site runs a job only with this approval, or if a rule in site.toml
    approves it.
    """
    from ...core.formatting import format_at_least
    from ...sites.files.site import load_site
    from ...sites.rounds.prepare import make_ready
    from ...sites.state.account import open_account
    from ...sites.state.approval import answer_by_hand, audit_log, question, what_for

    if yes + refuse + log > 1:
        raise ParameterError("give at most one of `--yes`, `--refuse` and `--log`.")
    loaded = load_site(file)
    account = open_account(loaded)
    if account is None:
        typer.echo("the job has a seed, so it is a rehearsal; a rehearsal needs no approval, but it needs")
        typer.echo("`rehearsal = true` in site.toml")
        return
    if log:
        for entry in audit_log(account).entries():
            asked = f"{', '.join(entry['kinds'])} in job {entry['name']}, {entry['job'][:16]}"
            typer.echo(one_line(f"{entry['at']} {entry['answer']} by {entry['by']}: {asked}"))
        return
    planned = make_ready(loaded).planned()
    for line in question(loaded, planned).lines(account.seen()):
        typer.echo(one_line(line))
    if not refuse:
        left = format_at_least(account.can_pay(planned, what_for(loaded)))
        typer.echo(f"  after this job, one more job may cost at most epsilon {left}")
    if not refuse and not yes and not typer.confirm("Do you approve the job?"):
        refuse = True
    answer_by_hand(loaded, planned, account, approve=not refuse)
    typer.echo(
        "refused: this site will not run the job" if refuse else "approved: start with taciturn site run"
    )
    if refuse:
        raise typer.Exit(1)


@site.command("run")
def run(
    file: SiteFile,
    log: Log = "text",
    level: Level = "info",
    watch: Annotated[
        str | None,
        typer.Option(help="Serve /metrics, /health and a status page at 127.0.0.1:PORT or unix:PATH."),
    ] = None,
    watch_token: Annotated[
        Path | None,
        typer.Option(
            help="A file with a secret token that clients must send. With a token, `--watch` may be "
            "0.0.0.0:PORT, which other machines can reach."
        ),
    ] = None,
    newest_state: Annotated[
        bool,
        typer.Option(
            "--newest-state",
            help="Confirm that the state folder, after it was moved or restored, is the newest copy.",
        ),
    ] = False,
    personalise: Annotated[
        bool,
        typer.Option(
            "--personalise",
            help="Also write a second model to the state folder, adapted to this site's rows without noise. "
            "Never share this second model.",
        ),
    ] = False,
) -> None:
    """Take part in the job until it ends.

    If the site is stopped, the same command continues the run.
    """
    log_to_stderr(log, level)
    with until_stopped(), errors_logged(log):  # a signal may arrive while libraries load
        from ...core.progress import progress
        from ...sites.files.site import load_site
        from ...sites.rounds.driver import run_site
        from ...sites.rounds.prepare import make_ready
        from ...sites.watch.metrics import watched
        from ...sites.wire.zenoh_log import watch_zenoh

        loaded = load_site(file)
        if personalise and loaded.job.kind != "train":
            raise ParameterError(
                f"`--personalise` must be left out: the job {loaded.job.name} is of kind "
                f"{loaded.job.kind!r}, which learns no model."
            )
        ready = make_ready(loaded)
        ours = loaded.file
        token = watch_token or (ours.watch_token and ready.site.path(ours.watch_token))
        shown = watched(watch or ours.watch, token)
        with progress(ready.run.rounds, "rounds", show=log == "text") as step:
            outcome = run_site(
                ready, step=step, watch=watch_zenoh(ready.site), show=shown, newest=newest_state
            )
        _say_outcome(ready.site, outcome)
        if personalise:
            from ...jobs.own_models import NOT_TO_BE_SHARED, personalise_site

            typer.echo(f"wrote {personalise_site(ready.site)}: {NOT_TO_BE_SHARED}")


@site.command("finish")
def finish(
    file: SiteFile,
    without: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SITE",
            help="A site that will not return. May be repeated. All remaining operators must name the same "
            "sites.",
        ),
    ] = None,
    log: Log = "text",
    level: Level = "info",
) -> None:
    """End a run early, together with the other sites.

    The run ends once the operators of all remaining sites have run this command. The result is the model
    of the last round that all remaining sites completed.
    """
    log_to_stderr(log, level)
    with until_stopped(), errors_logged(log):
        from ...sites.files.site import load_site
        from ...sites.rounds.driver import run_site
        from ...sites.rounds.prepare import make_ready
        from ...sites.wire.zenoh_log import watch_zenoh

        ready = make_ready(load_site(file))
        outcome = run_site(ready, watch=watch_zenoh(ready.site), without=frozenset(without or ()))
        _say_outcome(ready.site, outcome)


def _say_outcome(ours: Site, outcome: SiteResult) -> None:
    from ...core.formatting import format_cost, format_delta
    from ...jobs.job_reports import write_site_report

    page = write_site_report(ours)
    if outcome.reason:
        typer.echo(f"{'ended early' if outcome.early else 'all rounds are complete'}: {outcome.reason}")
    cost = f"epsilon {format_cost(outcome.epsilon)} at delta {format_delta(outcome.delta)}"
    typer.echo(f"{cost}; the results are in {outcome.folder}; {page.name} in this folder explains the cost")


@site.command("status")
def status(
    file: SiteFile,
    as_json: AsJson = False,
    page: Annotated[
        bool, typer.Option("--page", help="Instead of printing, serve a live status page on 127.0.0.1.")
    ] = False,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="The port of --page. By default, a free port.")
    ] = None,
) -> None:
    """Show a site's round, neighbours and spent epsilon."""
    from ...sites.files.site import load_site
    from ...sites.watch.serving import open_server
    from ...sites.watch.status import pages, read_status

    if page and as_json:
        raise typer.BadParameter("--json prints the status, and --page serves it: give only one of them.")
    if port is not None and not page:
        raise typer.BadParameter(f"--port {port} has no effect without --page; give --page too.")
    loaded = load_site(file)
    if not page:
        read = read_status(loaded)
        typer.echo(read.to_json() if as_json else "\n".join(read.lines()))
        return
    with open_server(pages(lambda: read_status(loaded)), f"127.0.0.1:{port or 0}") as server:
        typer.echo(f"http://127.0.0.1:{server.socket.getsockname()[1]}/ until Ctrl-C")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return


@site.command("unit")
def unit(
    file: SiteFile,
    user: Annotated[str, typer.Option(help="The system user that runs the site.")] = "taciturn",
) -> None:
    """Print a systemd unit that runs this site with minimal rights.

    systemd restarts the site only after failures that a restart can fix.
    """
    from ...sites.files.kit import unit as make_unit
    from ...sites.files.site import load_site

    loaded = load_site(file)
    path, state = file.absolute(), loaded.state.absolute()
    program = os.path.join(os.path.dirname(sys.executable), "taciturn")
    command = [program, "site", "run", path.name]
    ledger = loaded.file.budget.ledger  # if not set, the account is in the unit's StateDirectory
    account = None if ledger is None else loaded.path(ledger).absolute().parent
    kind, _, name = (loaded.file.watch or "").partition(":")
    socket = loaded.path(Path(name)).absolute().parent if kind == "unix" else None
    writes = [place for place in (state, account, socket) if place is not None]
    text = make_unit(f"site {loaded.name}", command, path.parent, user=user, writes=writes)
    typer.echo(text, nl=False)
    for place in dict.fromkeys(writes):
        if not place.is_dir():
            typer.echo(f"first create the folder {place} for {user}: systemd does not create it", err=True)

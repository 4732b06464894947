"""`taciturn site kit`, `relay-keys` and `unit`: the files that every party starts with."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from .run import SiteFile, site

JobFile = Annotated[Path, typer.Argument(help="The public job file that all parties agreed on.")]


@site.command("kit")
def kit(
    job: JobFile,
    folder: Annotated[Path, typer.Argument(help="The folder in which to write a folder for each party.")],
) -> None:
    """Write a folder with the first files for every party of a job.

    The parties are the sites and, if the job has one, the relay. Each folder has job.toml, and STEPS.txt with
    the steps to take. A site's folder also has site.toml. The folders contain no keys.
    """
    from ...sites.files.job import load_job
    from ...sites.files.kit import write_kit

    for path in write_kit(job, folder):
        typer.echo(f"wrote {path}")
    typer.echo(f"the job's hash, to be compared by telephone: {load_job(job).hash.hex()[:16]}")


@site.command("relay-keys")
def relay_keys(
    job: JobFile,
    host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST",
            help="A host name or address of the relay; by default the one in the job. May be repeated.",
        ),
    ] = None,
) -> None:
    """Make the relay's private key and a signing request.

    Both files are written to the folder of job.toml. Send the request to the network's authority.
    """
    from ...sites.files.job import load_job
    from ...sites.files.kit import relay_keys as make
    from ...sites.wire.probe import address

    relay = load_job(job).relay
    hosts = host or ([] if relay is None else [address(relay.endpoint)[0]])
    (private, request), shown = make(job, hosts)
    typer.echo(f"wrote {private}: keep this private key on this machine")
    typer.echo(f"fingerprint of the key, to be read out by telephone: {shown}")
    typer.echo(f"wrote {request}: send this file to the network's authority")


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
    ledger = loaded.file.budget.ledger  # without `ledger`, the account is in the StateDirectory of the unit
    account = None if ledger is None else loaded.path(ledger).absolute().parent
    kind, _, name = (loaded.file.watch or "").partition(":")
    socket = loaded.path(Path(name)).absolute().parent if kind == "unix" else None
    writes = [place for place in (state, account, socket) if place is not None]
    text = make_unit(f"site {loaded.name}", command, path.parent, user=user, writes=writes)
    typer.echo(text, nl=False)
    for place in dict.fromkeys(writes):
        if not place.is_dir():
            typer.echo(f"create {place} for {user} first: systemd does not create this folder", err=True)

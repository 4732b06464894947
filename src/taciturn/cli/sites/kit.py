"""`taciturn site kit` and `relay-keys`: the files that every party starts with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .run import site

JobFile = Annotated[Path, typer.Argument(help="The public job file that all parties agreed on.")]


@site.command("kit")
def kit(
    job: JobFile,
    folder: Annotated[Path, typer.Argument(help="Where to write a folder for each party.")],
) -> None:
    """Write a folder for every party of a job: job.toml, its site.toml and the steps to take; no keys."""
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
        typer.Option(help="A host name or address of the relay; by default that of its endpoint."),
    ] = None,
) -> None:
    """Make the relay's private key and a signing request, beside job.toml."""
    from ...sites.files.job import load_job
    from ...sites.files.kit import relay_keys as make
    from ...sites.wire.probe import address

    relay = load_job(job).relay
    hosts = host or ([] if relay is None else [address(relay.endpoint)[0]])
    (private, request), shown = make(job, hosts)
    typer.echo(f"wrote {private}: it never leaves this machine")
    typer.echo(f"fingerprint of the key, to be read out by telephone: {shown}")
    typer.echo(f"wrote {request}: send it to the network's authority")

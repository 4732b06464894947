"""`taciturn site unit`: a systemd unit for a site."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from .run import SiteFile, site


@site.command("unit")
def unit(
    file: SiteFile,
    user: Annotated[str, typer.Option(help="The user that the site runs as.")] = "taciturn",
) -> None:
    """Print a systemd unit for this site, with minimal rights and restarts only where they help."""
    from ...sites.files.kit import unit as make_unit
    from ...sites.files.site import load_site

    loaded = load_site(file)
    path, state = file.absolute(), loaded.state.absolute()
    program = os.path.join(os.path.dirname(sys.executable), "taciturn")
    command = [program, "site", "run", path.name]
    ledger = loaded.file.budget.ledger  # without one, the account is in the StateDirectory of the unit
    account = None if ledger is None else loaded.path(ledger).absolute().parent
    kind, _, name = (loaded.file.watch or "").partition(":")
    socket = loaded.path(Path(name)).absolute().parent if kind == "unix" else None
    writes = [place for place in (state, account, socket) if place is not None]
    text = make_unit(f"site {loaded.name}", command, path.parent, user=user, writes=writes)
    typer.echo(text, nl=False)
    for place in dict.fromkeys(writes):
        if not place.is_dir():
            typer.echo(f"create {place} for {user} first: systemd does not create this folder", err=True)

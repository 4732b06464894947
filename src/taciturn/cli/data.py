"""`taciturn data NAME`: download a public data set once, verify its files, and describe it."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

from .app import app
from .options import AsJson


@app.command("data")
def show(
    name: Annotated[Literal["adult", "credit", "support"], typer.Argument(help="The name of the data set.")],
    offline: Annotated[
        bool, typer.Option("--offline", help="Use only files that are already on this machine.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Download a public data set, and verify its files."""
    from .. import data

    load = {"adult": data.load_adult, "credit": data.load_credit, "support": data.load_support}
    found = load[name](fetch=not offline)
    rows, features = found.X.shape
    facts = {
        "name": found.name,
        "rows": rows,
        "features": features,
        "positive": int((found.y > 0).sum()),
        "place": found.place,
        "licence": found.licence,
        "sha256": dict(found.sha256),
    }
    if as_json:
        typer.echo(json.dumps(facts))
        return
    typer.echo(f"{found.name}: {rows} rows, {features} features, {facts['positive'] / rows:.1%} positive")
    typer.echo(f"found in {found.place}; {found.licence}")
    for file, digest in found.sha256.items():
        typer.echo(f"{file}: SHA-256 {digest}, verified")

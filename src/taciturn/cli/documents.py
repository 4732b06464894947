"""What `certify` writes for others: an entry for the public registry, and a model card."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import ParameterError

if TYPE_CHECKING:
    from ..privacy.certificate.certificate import Certificate


def write_documents(
    certificate: Certificate, file: Path | None, *, registry: Path | None, card: Path | None
) -> None:
    """Write what was asked for; a model beside the certificate says what was learnt, and from what."""
    if registry is None and card is None:
        return
    from ..report.card import model_card
    from ..report.registry import registry_entry

    about = _about(file)
    for path, write in ((registry, registry_entry), (card, model_card)):
        if path is not None:
            if not path.parent.is_dir():
                raise ParameterError(f"`{path}` must be in a folder that exists; make {path.parent} first.")
            path.write_text(write(certificate, about), encoding="utf-8")
            typer.echo(f"wrote {path}", err=True)


def _about(file: Path | None) -> dict[str, Any]:
    """What model.json in the folder of the certificate tells."""
    if file is None:
        return {}
    folder = file if file.is_dir() else file.parent
    if not (folder / "model.json").is_file():
        return {}
    from ..estimators.model_file import read_model

    model = read_model(folder / "model.json")
    about: dict[str, Any] = {"features": list(model.columns), "name": model.run.get("job", "")}
    if model.label is not None:
        about["learnt"] = f"{model.label}, by {model.loss} loss"
    return about

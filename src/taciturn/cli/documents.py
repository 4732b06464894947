"""Documents about a certificate: an entry for the public registry, and a model card."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..core.files import check_folder

if TYPE_CHECKING:
    from ..privacy.certificate.certificate import Certificate


def write_documents(
    certificate: Certificate, file: Path | None, *, registry: Path | None, card: Path | None
) -> None:
    """Write the requested documents; a model beside the certificate gives the label and the columns."""
    if registry is None and card is None:
        return
    from ..report.card import model_card
    from ..report.registry import registry_entry

    about = _about(file)
    for option, path, write in (("--registry", registry, registry_entry), ("--card", card, model_card)):
        check_folder(option, path)
        if path is not None:
            path.write_text(write(certificate, about), encoding="utf-8")
            typer.echo(f"wrote {path}", err=True)


def _about(file: Path | None) -> dict[str, Any]:
    """The label and the columns from model.json in the folder of the certificate."""
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

"""A figure's TOML file -> Figure, or one line that names the file, the key and what is wrong with it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ...core.errors import ParameterError
from ...core.toml import complaint
from .spec import AnyFigure, AttackFigure, Figure

SHIPPED = ("fig1a", "fig1b", "fig2", "fig3", "fig4", "attack", "budget")


def load_figure(name_or_path: str, *, quick: bool = False, seed: int | None = None) -> AnyFigure:
    """A shipped figure by its name, or any other by the path of its file.

    Parameters
    ----------
    quick : lay the file's [quick] table over the rest: fewer rows, rounds and repeats.
    seed : in place of the file's `run.seed`.
    """
    where, text = _read(name_or_path)
    try:
        stated = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ParameterError(f"{where}: is not TOML: {error}.") from None
    overlay = stated.pop("quick", {})
    if not isinstance(overlay, Mapping):
        raise ParameterError(f"{where}: `quick` must be a table; got {type(overlay).__name__}.")
    if quick:
        stated = _laid_over(stated, overlay)
    if seed is not None:
        stated = _laid_over(stated, {"run": {"seed": seed}})
    _count_runs(stated)
    place_own_table(stated, Path(where).parent)
    kind: type[Figure] | type[AttackFigure] = AttackFigure if stated.get("layout") == "attack" else Figure
    try:
        return kind.model_validate(stated)
    except ValidationError as error:
        raise ParameterError(f"{where}: {complaint(error, quote=True)}") from None


def _read(name_or_path: str) -> tuple[str, str]:
    """What to call the file in an error, and its text."""
    if name_or_path in SHIPPED:
        file = f"{name_or_path}.toml"
        return file, resources.files(__package__).joinpath(file).read_text("utf-8")
    path = Path(name_or_path)
    if not path.is_file():
        raise ParameterError(
            f"`figure` must be one of {', '.join(SHIPPED)}, or the path of a TOML file; got {name_or_path!r}."
        )
    try:
        return str(path), path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise ParameterError(f"{path}: not UTF-8 text.") from None


def place_own_table(stated: Mapping[str, Any], folder: Path) -> None:
    """The path of one's own table counts from the folder of the file that names it."""
    data = stated.get("data")
    if isinstance(data, dict) and isinstance(data.get("file"), str):
        data["file"] = str((folder / data["file"]).resolve())


def _count_runs(stated: dict[str, Any]) -> None:
    """A caption says how many runs there are, quick or not: {repeats}."""
    caption, run = stated.get("caption"), stated.get("run")
    if isinstance(caption, str) and isinstance(run, Mapping):
        stated["caption"] = caption.replace("{repeats}", str(run.get("repeats")))


def _laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`below` with every entry of `above` in its place, table by table."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        both = isinstance(value, Mapping) and isinstance(old, Mapping)
        merged[key] = _laid_over(old, value) if both else value  # type: ignore[arg-type]
    return merged

"""Read a figure's TOML file. An error is one line that names the file, the key and the mistake."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ...core.errors import ParameterError
from ...core.toml import complaint, read_toml
from .spec import AnyFigure, AttackFigure, Figure

SHIPPED = ("fig1a", "fig1b", "fig2", "fig3", "fig4", "attack", "budget")


def load_figure(name_or_path: str, *, quick: bool = False, seed: int | None = None) -> AnyFigure:
    """A figure from its name, if it is a shipped figure, or from the path of its file.

    Parameters
    ----------
    quick : True lets the file's table [quick] override the other tables: fewer rows, rounds and repeats.
    seed : a seed that replaces the file's `run.seed`.
    """
    path = Path(name_or_path)
    if name_or_path in SHIPPED:
        path = Path(__file__).with_name(f"{name_or_path}.toml")
    if not path.is_file():
        raise ParameterError(
            f"`figure` must be one of {', '.join(SHIPPED)}, or the path of a TOML file; got {name_or_path!r}."
        )
    _, stated = read_toml(path)
    overlay = stated.pop("quick", {})
    if not isinstance(overlay, Mapping):
        raise ParameterError(f"{path}: `quick` must be a table; got {type(overlay).__name__}.")
    if quick:
        stated = _laid_over(stated, overlay)
    if seed is not None:
        stated = _laid_over(stated, {"run": {"seed": seed}})
    place_own_table(stated, path.parent)
    kind: type[Figure] | type[AttackFigure] = AttackFigure if stated.get("layout") == "attack" else Figure
    try:
        return kind.model_validate(stated)
    except ValidationError as error:
        raise ParameterError(f"{path}: {complaint(error, quote=True)}") from None


def place_own_table(stated: Mapping[str, Any], folder: Path) -> None:
    """Resolve the path of a user's table. A relative path is relative to `folder`."""
    data = stated.get("data")
    if isinstance(data, dict) and isinstance(data.get("file"), str):
        data["file"] = str((folder / data["file"]).resolve())


def _laid_over(below: Any, above: Any) -> Any:
    """A copy of `below` in which the entries of `above` are added or replaced; nested tables are merged."""
    if not isinstance(below, Mapping) or not isinstance(above, Mapping):
        return above
    return {**below, **{key: _laid_over(below.get(key), value) for key, value in above.items()}}

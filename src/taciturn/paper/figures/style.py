"""How every figure looks: small serif type, thin frames, no boxes; made again, its files are the same."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure

from ...core.files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 6.75  # inches: the text width of a two-column page
GREY = "#666666"
FORMATS: Mapping[str, Mapping[str, Any]] = {"png": {"dpi": 300}, "svg": {"metadata": {"Date": None}}}
FOR_PAGES: Mapping[str, Mapping[str, Any]] = {"png": {"dpi": 160}}


@contextmanager
def paper_style() -> Iterator[None]:
    """Draw and save inside; nothing outside is changed."""
    with resources.as_file(resources.files(__package__).joinpath("paper.mplstyle")) as style:
        with mpl.rc_context(fname=style):
            yield


def new_figure(height: float) -> Figure:
    """An empty figure that lays itself out."""
    return Figure(figsize=(WIDTH, height), layout="constrained")


def save(figure: Figure, stem: Path, formats: Mapping[str, Mapping[str, Any]] = FORMATS) -> list[Path]:
    """stem.png and stem.svg; no dates in them."""
    paths = []
    for suffix, options in formats.items():
        buffer = io.BytesIO()
        figure.savefig(buffer, format=suffix, **options)
        paths.append(write_whole(stem.with_suffix(f".{suffix}"), buffer.getvalue()))
    return paths


def letter(axes: Axes, name: str, title: str = "") -> None:
    """(a), (b), ... at the top left, with a few words."""
    axes.set_title(f"({name}) {title}".rstrip(), loc="left")

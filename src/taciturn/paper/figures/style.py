"""How every figure looks: small serif type, thin frames, no boxes; made again, its files are the same."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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

_STYLE: Any = {
    "font.family": "serif",
    "font.serif": ["STIXGeneral", "DejaVu Serif"],
    "mathtext.fontset": "stix",
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "axes.labelsize": 8.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 7.0,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "ytick.minor.size": 1.5,
    "ytick.minor.width": 0.4,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.2,
    "legend.frameon": False,
    "legend.handlelength": 2.2,
    "axes.grid": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.4,
    "svg.hashsalt": "taciturn",
    "svg.fonttype": "path",
    "savefig.facecolor": "white",
}


@contextmanager
def paper_style() -> Iterator[None]:
    """Draw and save inside; nothing outside is changed."""
    with mpl.rc_context(_STYLE):
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

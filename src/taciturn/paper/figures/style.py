"""The style of all figures, and functions to save them. Saving a figure twice gives the same bytes."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from ...core.files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 6.75  # inches: the text width of a two-column page
GREY = "#666666"
DASHED = (0, (5, 2))
HOLLOW: Mapping[str, Any] = {"markerfacecolor": "white", "markeredgewidth": 0.8}
FORMATS: Mapping[str, Mapping[str, Any]] = {"png": {"dpi": 300}, "svg": {"metadata": {"Date": None}}}
FOR_PAGES: Mapping[str, Mapping[str, Any]] = {"png": {"dpi": 160}}  # for the pictures in docs/


@contextmanager
def paper_style() -> Iterator[None]:
    """Inside the `with` block, matplotlib uses the style of the figures. Outside it nothing changes."""
    with mpl.rc_context(fname=Path(__file__).with_name("paper.mplstyle")):
        yield


def new_figure(height: float) -> Figure:
    """An empty figure with automatic layout."""
    return Figure(figsize=(WIDTH, height), layout="constrained")


def save(figure: Figure, stem: Path, formats: Mapping[str, Mapping[str, Any]] = FORMATS) -> list[Path]:
    """Write a figure to one file per format, by default stem.png and stem.svg. The files have no dates."""
    paths = []
    for suffix, options in formats.items():
        buffer = io.BytesIO()
        figure.savefig(buffer, format=suffix, **options)
        paths.append(write_whole(stem.with_suffix(f".{suffix}"), buffer.getvalue()))
    return paths


def beside_axes(axes: Axes, text: str, level: float, shift: tuple[float, float], **options: Any) -> None:
    """Write a small grey text at the right end of the horizontal line at `level`, moved by `shift` points."""
    axes.annotate(
        text,
        (1.0, level),
        xycoords=("axes fraction", "data"),
        xytext=shift,
        textcoords="offset points",
        color=GREY,
        fontsize=7,
        **options,
    )


def power_of_ten(value: float) -> str:
    """A number in matplotlib's mathematical notation, such as 10^{-5} or 2 \\cdot 10^{-5}."""
    exponent = int(np.floor(np.log10(value)))
    factor = value / 10.0**exponent
    return f"10^{{{exponent}}}" if abs(factor - 1) < 1e-9 else rf"{factor:g} \cdot 10^{{{exponent}}}"

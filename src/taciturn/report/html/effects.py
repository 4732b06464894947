"""What each column adds to the score: small panels on one scale, as SVG that needs no script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...core.notebook import EffectPanel

_WIDE, _HIGH = 200, 96
INKS = ("#2f7d77", "#c2410c", "#5b6abf", "#d9a441", "#7a3e9d")


class DrawnPanel(NamedTuple):
    """One column: a line for each output over numbers and days, `dots` over categories."""

    title: str
    lines: list[tuple[str, list[tuple[float, float]]]]
    dots: bool
    zero: float
    ends: str
    wide: int = _WIDE
    high: int = _HIGH


def draw(panels: Sequence[EffectPanel]) -> tuple[list[DrawnPanel], float, float]:
    """The panels, and the least and the largest value of their common scale."""
    shown = [panel.shortened() for panel in panels]
    low = min((0.0, *(float(panel.y.min()) for panel in shown)))
    high = max((0.0, *(float(panel.y.max()) for panel in shown)))
    return [_draw(panel, low, max(high - low, 1e-9)) for panel in shown], low, high


def _draw(panel: EffectPanel, low: float, span: float) -> DrawnPanel:
    def down(value: float) -> float:
        return 4 + (_HIGH - 8) * (1 - (value - low) / span)

    across = [4 + (_WIDE - 8) * k / max(len(panel.x) - 1, 1) for k in range(len(panel.x))]
    lines = [
        (INKS[k % len(INKS)], list(zip(across, map(down, column.tolist()), strict=True)))
        for k, column in enumerate(panel.y.T)
    ]
    ends = ", ".join(map(str, panel.x)) if panel.words else f"{_short(panel.x[0])} to {_short(panel.x[-1])}"
    return DrawnPanel(panel.title, lines, bool(panel.words), down(0.0), ends)


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)

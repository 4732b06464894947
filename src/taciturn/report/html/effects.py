"""What each column adds to the score: small panels on one scale, as SVG that needs no script."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from ...core.notebook import EffectPanel

_WIDE, _HIGH = 200, 96
_INKS = ("#2f7d77", "#c2410c", "#5b6abf", "#d9a441", "#7a3e9d")


def effects(panels: Sequence[EffectPanel], label: str, outputs: Sequence[str]) -> str:
    """A figure for each column: lines over numbers and days, dots over categories."""
    if not panels:
        return ""
    drawn = [panel.shortened() for panel in panels]
    low = min(0.0, *(float(panel.y.min()) for panel in drawn))
    high = max(0.0, *(float(panel.y.max()) for panel in drawn))
    figures = "".join(_figure(panel, low, max(high - low, 1e-9)) for panel in drawn)
    legend = ", ".join(
        f'<span><svg width="12" height="12" viewBox="0 0 12 12"><circle cx="6" cy="6" r="5" '
        f'fill="{_INKS[k % len(_INKS)]}"/></svg> {escape(name)}</span>'
        for k, name in enumerate(outputs)
    )
    return (
        f'<p class="remark">{escape(label.capitalize())}, from {low:.2f} to {high:.2f} in every panel. The '
        "zero is the mean over the public range of a column. Made from released vectors alone.</p>"
        f'<div class="panels">{figures}</div>{f"<p>{legend}</p>" if outputs else ""}'
    )


def _figure(panel: EffectPanel, low: float, span: float) -> str:
    def across(k: int) -> float:
        return 4 + (_WIDE - 8) * k / max(len(panel.x) - 1, 1)

    def down(value: float) -> float:
        return 4 + (_HIGH - 8) * (1 - (value - low) / span)

    marks = []
    for output in range(panel.y.shape[1]):
        ink, places = _INKS[output % len(_INKS)], panel.y[:, output].tolist()
        points = [(across(k), down(value)) for k, value in enumerate(places)]
        if panel.words:
            marks += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{ink}"/>' for a, b in points]
        else:
            path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
            marks.append(f'<polyline points="{path}" fill="none" stroke="{ink}" stroke-width="2"/>')
    zero = f'<path d="M0 {down(0.0):.1f}H{_WIDE}" stroke="#888" stroke-width=".6"/>'
    ends = ", ".join(map(str, panel.x)) if panel.words else f"{_short(panel.x[0])} to {_short(panel.x[-1])}"
    return (
        f"<figure><figcaption><h3>{escape(panel.title)}</h3></figcaption>"
        f'<svg role="img" aria-label="{escape(panel.title)}" viewBox="0 0 {_WIDE} {_HIGH}">'
        f'{zero}{"".join(marks)}</svg><p class="remark">{escape(ends)}</p></figure>'
    )


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)

"""The colours: readable on their backgrounds, and distinct for every kind of colour vision."""

import re
from importlib.resources import files
from itertools import combinations

import numpy as np
import pytest

CSS = files("taciturn.report.html").joinpath("page.css").read_text(encoding="utf-8")
LIGHT, DARK = (
    dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))
    for block in (CSS[: CSS.index("@media")], CSS[CSS.index("@media") : CSS.index("* {")])
)
# Linear RGB as seen without the long, the medium or the short wave cones [Machado, Oliveira, Fernandes 2009].
VISION = {
    "usual": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}


def linear(colour: str) -> np.ndarray:
    s = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(s <= 0.04045, s / 12.92, ((s + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """WCAG 2: (L1 + 0.05) / (L2 + 0.05)."""
    low, high = sorted(float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (one, other))
    return (high + 0.05) / (low + 0.05)


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIE L*a*b* of linear RGB, D65."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    t = to_xyz @ np.clip(rgb, 0, 1) / [0.9505, 1.0, 1.089]
    f = np.where(t > 0.008856, np.cbrt(t), 7.787 * t + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_text_has_a_contrast_of_4_5(theme: dict[str, str]) -> None:
    for ground in ("bg", "panel"):
        for text in ("fg", "muted", "accent"):
            assert contrast(theme[text], theme[ground]) >= 4.5, (text, ground)
    assert contrast(theme["warn-fg"], theme["warn-bg"]) >= 4.5
    assert contrast(theme["bg"], theme["accent"]) >= 4.5


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_curves_and_controls_have_a_contrast_of_3(theme: dict[str, str]) -> None:
    for part in ("axis", "warn-line", *(f"s{k}" for k in range(8))):
        assert contrast(theme[part], theme["bg"]) >= 3, part


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_the_colours_stay_apart(theme: dict[str, str], vision: str) -> None:
    seen = {k: lab(VISION[vision] @ linear(theme[f"s{k}"])) for k in range(8)}
    for one, other in combinations(seen, 2):
        assert np.linalg.norm(seen[one] - seen[other]) > 12, (one, other)


def test_all_eight_runs_differ_in_dash_too() -> None:
    dashes = re.findall(r"\.s(\d) \{ --c: var\(--s\d\);(?: --dash: ([\d. ]+);)? \}", CSS)
    assert len(dashes) == 8 and len({dash for _, dash in dashes}) == 8

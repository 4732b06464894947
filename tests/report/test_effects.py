from __future__ import annotations

import datetime as dt
from dataclasses import replace

import numpy as np

from taciturn.core.notebook import EffectPanel
from taciturn.report import ReportData, render

PAGE = ReportData(title="t", headline="h")


def test_every_column_is_a_panel_and_names_are_escaped() -> None:
    lines = EffectPanel("<age>", (0.0, 50.0, 100.0), np.array([[-1.0], [0.5], [2.0]]))
    days = EffectPanel("day", (dt.date(2020, 1, 1), dt.date(2020, 12, 31)), np.zeros((2, 1)))
    words = EffectPanel("ward", ("<a>", "b"), np.array([[0.2], [-0.2]]))
    html = render(replace(PAGE, effects=[lines, days, words], effects_label="effect on the log-odds"))
    assert html.count("<polyline") == 2 and html.count("<circle") == 2
    assert "&lt;age&gt;" in html and "<age>" not in html and "&lt;a&gt;, b" in html
    assert "2020-01-01 to 2020-12-31" in html and "from -1.00 to 2.00" in html
    assert "What each column adds" not in render(PAGE)


def test_largest_categories_are_shown() -> None:
    many = EffectPanel("c", [f"w{k}" for k in range(40)], np.arange(40.0)[:, None])
    shown = many.shortened()
    assert shown.title == "c (12 of 40)" and shown.x == [f"w{k}" for k in range(28, 40)]

"""The tables behind the charts hold the numbers of the JSON."""

import pytest

from taciturn.report import Chart, Curve, ReportData
from taciturn.report.html.number_tables import NumberTable, by_round, by_site, flat_facts, network


def cells(table: NumberTable) -> list[list[str]]:
    return [[label for label, _ in table.columns], *table.rows]


def test_by_round_has_every_number(comparison: ReportData) -> None:
    chart = comparison.charts[0]
    head, *rows = cells(by_round(chart))
    assert head[:4] == ["round", "PP (1.04, 1.03)", "PP (1.04, 1.03), lowest", "PP (1.04, 1.03), highest"]
    assert len(rows) == 60
    for k, row in enumerate(rows):
        assert int(row[0]) == k + 1
        values = [part[k] for curve in chart.curves for part in (curve.mean, curve.low, curve.high)]
        assert [float(cell) for cell in row[1:]] == pytest.approx(values, rel=1e-5)


def test_a_long_run_is_thinned_with_a_note() -> None:
    t = range(1, 1001)
    table = by_round(Chart("k", "Loss", "loss", [Curve("a", t, [float(s) for s in t])]))
    rounds = [int(row[0]) for row in cells(table)[1:]]
    assert rounds[0] == 1 and rounds[-1] == 1000 and len(rounds) <= 121
    assert "every 9 rounds" in table.caption


def test_a_run_that_stopped_early_leaves_gaps() -> None:
    curves = [Curve("a", (1, 2), (0.5, 0.4)), Curve("b", (1,), (0.5,))]
    assert cells(by_round(Chart("k", "Loss", "loss", curves)))[2] == ["2", "0.400000", ""]


def test_by_site_has_every_total(comparison: ReportData) -> None:
    accounting = comparison.accountings[0]
    _, *rows = cells(by_site(accounting, comparison.network.names))
    for i, row in enumerate(rows):
        assert row[0] == f"site {i}"
        totals = [costs.totals[i] for costs in accounting.sites]
        assert [float(cell) for cell in row[1:]] == pytest.approx(totals, rel=1e-2)
        assert all(float(cell) >= total * (1 - 1e-11) for cell, total in zip(row[1:], totals, strict=True))


def test_network_lists_every_link(single: ReportData) -> None:
    _, *rows = cells(network(single.network))
    assert rows[0] == ["site 0", "9044", "site 1, site 4"]


def test_facts_are_flattened_in_plain_words() -> None:
    values = {"part": {"a_b": {"c": 1.5}}, "none": None, "on": True, "many": list(range(30)), "x": {}}
    found = list(flat_facts(values))
    assert found[:2] == [("none", "none"), ("on", "yes")]
    assert found[3:] == [("part", None), ("a b, c", "1.5"), ("x", None)]
    assert found[2][0] == "many" and "… (6 more)" in found[2][1]

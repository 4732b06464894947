"""Certificates as a report, without any run."""

import math

import pytest

from taciturn.core.errors import ParameterError
from taciturn.graph import Graph
from taciturn.report import from_certificates, render


def test_a_certificate_alone_is_enough(certificates) -> None:
    data = from_certificates({"fit": certificates["norm"]}, title="A fit")
    assert not data.charts and data.network is None
    assert [number.value for number in data.key_numbers["fit"]] == [
        certificates["norm"].epsilon,
        certificates["norm"].pure_epsilon,
        certificates["norm"].paper_epsilon,
    ]
    assert "Not private" not in render(data)


def test_each_accounting_omits_what_it_cannot_bound(certificates) -> None:
    data = from_certificates(certificates, title="t")
    found = {
        entry.key: (list(entry.unbounded), [c.name for c in entry.chart.curves]) for entry in data.accountings
    }
    assert found == {
        "renyi": (["none"], ["norm", "gaussian"]),
        "pure": (["gaussian", "none"], ["norm"]),
        "paper": (["gaussian", "none"], ["norm"]),
    }
    assert math.isinf(data.key_numbers["none"][0].value)


def test_numbers_of_a_statement_are_those_of_the_certificate(certificates) -> None:
    one = certificates["gaussian"]
    (statement,) = from_certificates({"g": one}, title="t").statements
    assert statement.text == one.statement()
    assert statement.numbers["epsilon"] == one.epsilon and math.isinf(statement.numbers["pure_epsilon"])
    assert statement.numbers["sha256"] in one.to_json()


def test_headline_is_the_worst_site_and_the_range_ends_at_the_best(certificates) -> None:
    data = from_certificates({"norm": certificates["norm"]}, title="t")
    accounting = data.accountings[0]
    (curve,), (costs,) = accounting.chart.curves, accounting.sites
    assert (
        curve.mean == curve.high
        and curve.mean[-1] == max(costs.totals)
        and curve.low[-1] == min(costs.totals)
    )
    assert len(costs.by_round) == 3


def test_records_are_shown_where_all_runs_agree(certificates) -> None:
    graph = Graph.path(3)
    assert from_certificates(certificates, title="t", graph=graph).network.samples == [30, 45, 60]
    assert from_certificates(certificates, title="t", graph=Graph.path(4)).network.samples == ()


def test_one_delta_for_all(certificates) -> None:
    one = certificates["norm"]
    other = type(one).from_facts(one.run, one.sites, one.budgets, one.releases, 1e-6)
    with pytest.raises(ParameterError, match="the same `delta`"):
        from_certificates({"a": one, "b": other}, title="t")
    with pytest.raises(ParameterError, match="at least one"):
        from_certificates({}, title="t")


def test_the_page_notes_where_the_papers_condition_fails(certificates) -> None:
    one = certificates["norm"]
    failing = type(one).from_facts(
        one.run,
        tuple(type(site)(site.site, site.samples, site.degree, (9.0,)) for site in one.sites),
        one.budgets,
        one.releases,
        1e-5,
    )
    notes = [
        from_certificates({"n": certificate}, title="t").accountings[2].chart.note
        for certificate in (one, failing)
    ]
    assert "Theorem 3 fails" not in notes[0] and "Theorem 3 fails for n" in notes[1]


def test_certificate_of_some_sites_shows_the_others_as_unknown(certificates) -> None:
    one = certificates["norm"]
    part = type(one).from_facts(one.run, one.sites[1:2], one.budgets[1:2], one.releases[1:2], 1e-5)
    data = from_certificates({"a": part, "b": one}, title="t", graph=Graph.path(3))
    (some, every) = data.accountings[0].sites
    assert math.isnan(some.totals[0]) and math.isnan(some.totals[2])
    assert some.totals[1] == every.totals[1] == part.epsilon
    assert data.accountings[0].chart.curves[0].mean[-1] == part.epsilon
    assert data.network.names == ["site 0", "site 1", "site 2"] and data.network.samples == ()
    assert "<td>not known</td>" in render(data)

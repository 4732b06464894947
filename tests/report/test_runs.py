"""Simulated runs as a report."""

from dataclasses import replace

import numpy as np
import pytest

import taciturn as tt
from support.problems import make_sites
from taciturn.core.errors import ParameterError
from taciturn.report import from_runs


def test_curves_are_mean_and_range_over_repeats(runs) -> None:
    data = from_runs(runs, title="t")
    assert [chart.key for chart in data.charts] == ["loss", "accuracy", "gap"]
    for chart, metric in zip(data.charts, ("loss", "accuracy", "consensus_gap"), strict=True):
        for curve in chart.curves:
            values = getattr(runs[curve.name], metric)
            np.testing.assert_array_equal(curve.mean, values.mean(axis=0))
            np.testing.assert_array_equal(curve.low, values.min(axis=0))
            np.testing.assert_array_equal(curve.high, values.max(axis=0))
    assert [chart.private for chart in data.charts] == [False, False, True]


def test_key_numbers_are_the_last_round(runs) -> None:
    loss, accuracy, *_ = from_runs(runs, title="t").key_numbers["norm"]
    assert loss.value == runs["norm"].loss[:, -1].mean() and loss.low == runs["norm"].loss[:, -1].min()
    assert accuracy.format == "percent" and accuracy.high == runs["norm"].accuracy[:, -1].max()


def test_a_regression_shows_its_mean_absolute_error() -> None:
    problem = tt.Problem(make_sites(), loss=tt.LogCosh(), C=20.0, regularization=0.5)
    run = tt.simulate(problem, "ring", tt.ADMM(0.5), rounds=2)
    _, error, *_ = from_runs({"a": run}, title="t").charts
    assert (error.title, error.label, error.format) == ("Error", "mean absolute error", "plain")


def test_one_repeat_has_no_range(runs) -> None:
    run = runs["norm"]
    single = replace(run, loss=run.loss[:1], accuracy=run.accuracy[:1], consensus_gap=run.consensus_gap[:1])
    data = from_runs({"a": single}, title="t")
    assert not any(len(curve.low) for chart in data.charts for curve in chart.curves)
    assert data.key_numbers["a"][0].low is None


def test_metrics_that_are_missing_are_left_out(runs) -> None:
    run = runs["norm"]
    blind = replace(run, loss=np.empty((0, 0)), accuracy=np.full_like(run.accuracy, np.nan))
    assert [chart.key for chart in from_runs({"a": blind}, title="t").charts] == ["gap"]


def test_sites_that_always_agree_have_no_chart_of_zeros(runs) -> None:
    run = runs["norm"]
    masked = replace(run, consensus_gap=0 * run.consensus_gap)
    assert [chart.key for chart in from_runs({"a": masked}, title="t").charts] == ["loss", "accuracy"]
    both = from_runs({"a": masked, "b": run}, title="t").charts[-1]
    assert both.key == "gap" and [curve.name for curve in both.curves] == ["b"]


def test_shared_settings_stand_once_and_the_rest_by_run(runs) -> None:
    settings = from_runs(runs, title="t").settings
    assert settings["rounds"] == 5 and settings["graph"] == "path, 3 sites, 2 links"
    assert set(settings["norm"]) == {"method"} and "versions" not in settings


def test_provenance_holds_seed_versions_and_what_the_caller_adds(runs) -> None:
    found = from_runs(runs, title="t", provenance={"data": "sha256 abc"}).provenance
    assert found["seed"] == 1 and found["data"] == "sha256 abc" and "numpy" in found["versions"]
    apart = {**runs, "norm": replace(runs["norm"], settings={**runs["norm"].settings, "seed": 2})}
    assert from_runs(apart, title="t").provenance["seed"] == "norm: 2; gaussian: 1; none: 1"


def test_the_network_is_the_one_that_was_used(runs) -> None:
    network = from_runs(runs, title="t").network
    assert list(network.edges) == [(0, 1), (1, 2)] and network.names[2] == "site 2"


def test_no_run_is_refused() -> None:
    with pytest.raises(ParameterError, match="`runs` must contain at least one"):
        from_runs({}, title="t")

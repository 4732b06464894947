"""The result in one sentence, and what qualifies it."""

from dataclasses import replace

import pytest

from taciturn.privacy.certificate.certificate import Certificate
from taciturn.report.brief import headline, marks
from taciturn.report.html.numbers import written


def test_one_run_in_three_points(certificates) -> None:
    one = certificates["norm"]
    said = headline({"norm": one}).split("\n\n")
    assert len(said) == 3 and f"epsilon = {written(one.epsilon, 'bound')}" in said[1]


def test_partial_run_is_labelled_as_partial(certificates) -> None:
    one = certificates["norm"]
    part = replace(one, run=replace(one.run, rounds=9, sites=4))
    assert "covers 3 of the 4 sites" in headline({"norm": part})


def test_run_without_noise_makes_no_privacy_claim(certificates) -> None:
    assert "no noise. Nothing limits" in headline({"none": certificates["none"]})


def test_comparison_names_every_cost_and_the_runs_without_a_bound(certificates) -> None:
    said = headline(certificates)
    for name in ("norm", "gaussian"):
        assert f"{written(certificates[name].epsilon, 'bound')} with {name}" in said
    assert said.endswith("at δ = 10⁻⁵. No guarantee: none.")


def test_a_comparison_of_incomplete_runs_is_labelled(certificates) -> None:
    one = certificates["norm"]
    part = replace(one, run=replace(one.run, sites=4))
    assert headline({"a": one, "b": one}).startswith("All rounds and all sites together cost")
    assert headline({"a": one, "b": part}).startswith("The rounds and sites that were counted cost")


def test_many_runs_are_a_range(certificates) -> None:
    many = {f"run {k}": replace(certificates["norm"], epsilon=1.0 + k) for k in range(6)}
    assert "at most ε = 1.00 with run 0 to 6.00 with run 5, at" in headline(many)


@pytest.mark.parametrize(
    ("changes", "labels"),
    [
        ({}, [("Simulated", True), ("Idealised", True)]),
        ({"simulated": False, "where": "network"}, [("Real", False), ("Idealised", True)]),
        (
            {"simulated": False, "where": "process", "output_noise": "norm"},
            [("Real", False), ("One process", False), ("Solver error covered", False)],
        ),
        (
            {"marks": ("bounds taken from the data",)},
            [("Simulated", True), ("Idealised", True), ("Note", True)],
        ),
    ],
)
def test_marks_distinguish_real_runs_from_rehearsals(changes, labels, certificates) -> None:
    one: Certificate = certificates["norm"]
    found = marks({"norm": replace(one, run=replace(one.run, **changes))})
    assert [(mark.label, mark.warn) for mark in found] == labels


def test_a_large_delta_is_marked(certificates) -> None:
    one: Certificate = certificates["norm"]
    found = marks({"norm": replace(one, delta=0.5)})
    assert [mark.label for mark in found] == ["Simulated", "Large delta", "Idealised"]


def test_marks_of_some_runs_name_them(certificates) -> None:
    found = {mark.label: mark.meaning for mark in marks(certificates)}
    assert found["Not private"] == "none: No noise was added: ε is infinite."
    assert not found["Idealised"].startswith("norm")

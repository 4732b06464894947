"""A certificate as JSON and as text: it can be read back, and every edit is detected."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from support.example_run import DELTA, certificate, charges, run_facts, site_facts
from taciturn.core.errors import CertificateError
from taciturn.privacy.certificate.certificate import Certificate
from taciturn.privacy.facts import SiteBudget, SiteFacts
from taciturn.privacy.ledger.memory import MemoryLedger

# -- JSON -------------------------------------------------------------------------------------------


def varied(noise: str = "norm") -> Certificate:
    """Every kind of number in one certificate."""
    run = run_facts(
        4,
        5,
        noise=noise,
        output_noise=noise,
        tol=1e-9,
        grid=2.0**-30,
        clip=1e6,
        regularization=0.01,
        outputs=2,
    )
    etas = [tuple(0.5 + i * t / 7 for t in range(1, 6)) for i in range(3)]
    outputs = tuple(1e6 / t for t in range(1, 6))
    sites = [
        SiteFacts(i, 500 + i, 1 + i % 2, (0.5, 0.4, 0.3), "", etas[i], (3.0,), outputs) for i in range(3)
    ]
    book = MemoryLedger(run, sites, [None, SiteBudget(1e4, 1e-6), None])
    for charge in charges(3, 4):
        eta, output = etas[charge.site][charge.t - 1], outputs[charge.t - 1]
        book.charge(charge._replace(eta=eta, output_scale=output))
    return Certificate.from_ledger(book, DELTA)


def test_json_goes_both_ways() -> None:
    stated = varied()
    again = Certificate.from_json(stated.to_json())
    again.verify()
    stated.verify()
    assert again.to_json() == stated.to_json()
    assert again.costs == stated.costs and again.run == stated.run and again.sites == stated.sites
    assert again.budgets == stated.budgets and again.statement() == stated.statement()
    for old, new in zip(stated.releases, again.releases, strict=True):
        for a, b in zip(old, new, strict=True):
            np.testing.assert_array_equal(a, b)


def numbers(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The place of every number in a JSON document."""
    if isinstance(value, dict):
        return [place for key in value for place in numbers(value[key], (*path, key))]
    if isinstance(value, list):
        return [place for key, entry in enumerate(value) for place in numbers(entry, (*path, key))]
    return [path] if isinstance(value, int | float) and not isinstance(value, bool) else []


def test_any_number_changed_by_hand_is_caught() -> None:
    source = varied("gaussian").to_json()
    places = numbers(json.loads(source))
    assert len(places) > 60
    for place in places:
        body = json.loads(source)
        inner = body
        for key in place[:-1]:
            inner = inner[key]
        old = inner[place[-1]]
        inner[place[-1]] = old + 1 if isinstance(old, int) else old * 1.001 if old else 0.5
        with pytest.raises(CertificateError):
            Certificate.from_json(json.dumps(body)).verify()


@pytest.mark.parametrize("name", ["epsilon", "pure_epsilon", "paper_epsilon"])
def test_a_wrong_number_is_named_even_under_a_fresh_digest(name: str) -> None:
    stated = varied()
    wrong = dataclasses.replace(stated, **{name: getattr(stated, name) * 0.9})
    with pytest.raises(CertificateError, match=f"`{name}` is stated as"):
        Certificate.from_json(wrong.to_json()).verify()
    with pytest.raises(CertificateError, match=f"`{name}` is stated as"):
        wrong.verify()
    site = stated.costs[1]._replace(**{name: getattr(stated.costs[1], name) * 0.9})
    forged = dataclasses.replace(stated, costs=(stated.costs[0], site, stated.costs[2]))
    with pytest.raises(CertificateError, match=rf"`sites\[1\]\.{name}` is stated as"):
        Certificate.from_json(forged.to_json()).verify()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"simulated": true', '"simulated": false'),
        ("SIMULATED: ", ""),
        ('"paper_condition": false', '"paper_condition": true'),
        ('"epsilon"', '"epsilon": 0.1, "epsilon"'),
        ('"epsilon"', '"epsilom"'),
        ('"format": "taciturn certificate 2"', '"format": "other"'),
        ('"loss": {', '"loss": 3, "lost": {'),
        ("{", ""),
        ('"worst_site": 0', '"worst_site": NaN'),
        ('"norm"', '"gaussian"'),
    ],
)
def test_other_changes_are_caught(old: str, new: str) -> None:
    source = varied().to_json()
    assert old in source
    with pytest.raises(CertificateError):
        Certificate.from_json(source.replace(old, new, 1)).verify()


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON document, whatever is there."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, entry in inner for place in places(entry, (*path, key)))]


def test_garbage_is_a_certificate_error_and_nothing_else() -> None:
    source = varied("gaussian").to_json()
    everywhere = places(json.loads(source))[1:]
    garbage: list[Any] = [None, "x", [], {}, -1, 0, 10**12, 10**400, 1e308, True, [[1]], 2.5]
    rng = np.random.default_rng()
    for place in everywhere:
        body = json.loads(source)
        inner = body
        for key in place[:-1]:
            inner = inner[key]
        new = garbage[rng.integers(len(garbage))]
        if inner[place[-1]] != new or type(inner[place[-1]]) is not type(new):
            inner[place[-1]] = new
            with pytest.raises(CertificateError):
                Certificate.from_json(json.dumps(body)).verify()


def test_schedules_are_stored_once() -> None:
    book = MemoryLedger(run_facts(200, 40), site_facts(200))
    for charge in charges(200, 40):
        book.charge(charge._replace(eta=0.5 * 1.01**charge.t))
    body = json.loads(Certificate.from_ledger(book, DELTA).to_json())
    assert sum(len(table) for table in body["tables"]) == 40 + 4
    assert len(body["sites"]) == 200


# -- words ------------------------------------------------------------------------------------------


def test_the_statement_is_plain() -> None:
    said = varied().statement()
    for needed in (
        "4 sites",
        "4 rounds",
        "3 of the 4 sites",
        "2 lists",
        "SIMULATED",
        "1 in 100,000",
        "epsilon = ",
    ):
        assert needed in said
    assert "IDEALISED" not in said and "\n" not in said.replace("\n\n", "") and "  " not in said
    assert "IDEALISED" in certificate().statement()
    assert any("adds its cost" in line for line in json.loads(varied().to_json())["conditions"])
    real = certificate(
        sites=3,
        simulated=False,
        where="process",
        output_noise="norm",
        tol=1e-9,
        marks=("bounds taken from the data",),
    )
    assert "SIMULATED" not in real.statement() and "NOTE: bounds taken from the data." in real.statement()
    assert json.loads(real.to_json())["status"].startswith(
        "real, in one process; solver error covered by norm noise"
    )

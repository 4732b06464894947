"""A report of masked sums: the assumed colluders, and a curve that ends at the certified figure."""

import numpy as np
import pytest

from taciturn.privacy.certificate.certificate import Certificate
from taciturn.privacy.certificate.claims import epsilon_curve
from taciturn.privacy.facts import Charge, RunFacts, SiteFacts
from taciturn.privacy.ledger.memory import MemoryLedger
from taciturn.privacy.loss_facts import LossFacts
from taciturn.privacy.sums import SumFacts
from taciturn.report.brief import cost, headline, marks
from taciturn.report.certificates import cost_curves, from_certificates
from taciturn.report.html.numbers import written


@pytest.fixture
def certificate():
    sums = tuple(SumFacts(t, "gradient", 3, 0.01, 1e-10, 2.0**-20, 2.0**18) for t in (1, 2, 3))
    loss = LossFacts("logistic", 1.0, 0.25)
    facts = {"sites": 4, "rounds": 3, "dimension": 3, "C": 1.0, "regularization": 0.0, "colluding": 1}
    facts |= {"records": 400, "largest": 100}
    run = RunFacts("masked", "discrete", loss, sums=sums, **facts)
    ledger = MemoryLedger(run, [SiteFacts(i, 100, 3) for i in range(4)])
    for t in (1, 2, 3):
        ledger.charge_all([Charge(i, t, scale=2.0**18) for i in range(4)])
    return Certificate.from_ledger(ledger, 1e-5)


def test_headline_names_the_assumed_colluders(certificate):
    assert "controls one site of its choice, but not the site" in headline({"masked": certificate})
    said = cost(certificate)
    assert "at most one other site colludes" in said
    assert written(certificate.epsilon_against(None), "bound") in said
    assert [mark.label for mark in marks({"masked": certificate})][1] == "Rounding covered"


def test_the_curve_ends_at_the_certified_figure(certificate):
    found = cost_curves(certificate)["renyi"]
    assert found.shape == (4, 3) and np.all(found[:, -1] == certificate.epsilon)
    np.testing.assert_allclose(found[0], epsilon_curve(certificate), rtol=1e-12)
    report = from_certificates({"masked": certificate}, title="t")
    assert [entry.key for entry in report.accountings if not entry.unbounded] == ["renyi"]

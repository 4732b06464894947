"""A certificate that covers persons takes the bounds of persons, not those of records."""

import dataclasses
import math

import numpy as np
import pytest

from taciturn.core.errors import CertificateError, ParameterError
from taciturn.privacy.accounting import bounds
from taciturn.privacy.accounting.persons import person_excess
from taciturn.privacy.certificate.certificate import Certificate
from taciturn.privacy.costs import Releases, renyi_totals
from taciturn.privacy.facts import Charge, RunFacts, SiteFacts
from taciturn.privacy.ledger.memory import MemoryLedger
from taciturn.privacy.loss_facts import LossFacts
from taciturn.privacy.sums import SumFacts

HINGE = LossFacts("smooth-hinge", slope_bound=1.0, curvature_bound=1.0, parameters={"h": 0.5})
SITE = SiteFacts(0, samples=10, degree=1, dual_step=(0.1,))
CHARGE = Charge(0, 1, eta=0.025, scale=0.2)


def run_facts(noise="norm", **changes):
    facts = {"sites": 2, "rounds": 1, "dimension": 6, "C": 1.0, "regularization": 0.0}
    return RunFacts("penalty", noise, HINGE, **facts | changes)


def certified(run):
    ledger = MemoryLedger(run, [SITE])
    ledger.charge(CHARGE)
    return Certificate.from_ledger(ledger, 1e-5)


@pytest.mark.parametrize(("rows", "R"), [(1, 1), (3, 3), (50, 6), (None, 6)])
def test_norm_noise_is_charged_for_persons_with_rows_in_many_directions(rows, R):
    k = 1.0 / (2 * 0.025 * 10)
    run = run_facts(unit="person", persons=20, rows_per_person=rows)
    pure = 0.2 * 2 * k + R * math.log1p(k / R)
    assert certified(run).pure_epsilon == pytest.approx(pure, rel=1e-9)
    if R > 1:
        assert certified(run).pure_epsilon > 1.1 * certified(run_facts()).pure_epsilon
    assert math.isinf(certified(run).paper_epsilon)  # Theorem 3 is about a record


def test_low_orders_are_charged_for_several_eigenvalues():
    orders = np.array([1.05, 1.2, 3.0])
    record = run_facts(dimension=3)
    person = dataclasses.replace(record, unit="person", persons=20, rows_per_person=1, relation="")
    sharp = Charge(0, 1, eta=0.00625, scale=0.2)  # k = 8, x = 8
    table = Releases.single(record, SITE, sharp)
    less, more = (renyi_totals(run, table, orders)[0] for run in (record, person))
    extra = person_excess(orders, 8.0)
    assert extra[0] > 0 and more[0] >= less[0] + 0.99 * extra[0]
    assert bounds.ORDERS[0] < 1.05


def test_contradictory_facts_about_persons_are_refused():
    for odd in (
        {"unit": "person"},
        {"persons": 5},
        {"rows_per_person": 2},
        {"unit": "person", "persons": 5, "sites_per_person": 2},
        {"unit": "person", "persons": 5, "relation": "one record replaced by another"},
    ):
        with pytest.raises(ParameterError):
            run_facts(**odd)


def test_charges_with_other_noise_than_the_sums_state_certify_nothing():
    sums = (SumFacts(1, "gradient", 6, 0.02, 1e-9, 2.0**-20, 2.0**18),)
    rows = {"records": 200, "largest": 100}
    run = dataclasses.replace(run_facts(), method="masked", noise="discrete", sums=sums, colluding=1, **rows)
    ledger = MemoryLedger(run, [dataclasses.replace(SITE, dual_step=())])
    ledger.charge(Charge(0, 1, scale=2.0**18))
    good = ledger.columns(0)
    odd = good._replace(scale=good.scale / 2)
    for columns, refused in ((good, False), (odd, True)):
        facts = run, ledger.sites, ledger.budgets, (columns,), 1e-5
        if refused:
            with pytest.raises(CertificateError, match="scale"):
                Certificate.from_facts(*facts)
        else:
            assert Certificate.from_facts(*facts).epsilon > 0

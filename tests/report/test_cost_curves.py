"""The cumulative cost of every site after every round."""

import numpy as np
import pytest

from taciturn.privacy.certificate.certificate import Certificate
from taciturn.privacy.certificate.claims import epsilon_curve, paper_curve, pure_curve
from taciturn.privacy.facts import Charge, RunFacts, SiteBudget, SiteFacts
from taciturn.privacy.ledger.memory import MemoryLedger
from taciturn.privacy.loss_facts import LossFacts
from taciturn.report.certificates import cost_curves


@pytest.mark.parametrize("name", ["norm", "gaussian"])
def test_curves_are_those_of_the_certificate(name: str, certificates, runs) -> None:
    certificate = certificates[name]
    found = cost_curves(certificate)
    worst = certificate.worst_site
    np.testing.assert_allclose(found["renyi"][worst], epsilon_curve(certificate), rtol=1e-9)
    np.testing.assert_allclose(found["pure"][worst], pure_curve(certificate), rtol=1e-12)
    np.testing.assert_allclose(found["paper"].max(axis=0), paper_curve(runs[name].ledger), rtol=1e-12)


@pytest.mark.parametrize("name", ["norm", "gaussian", "none"])
def test_curves_grow_and_end_at_what_is_certified(name: str, certificates) -> None:
    certificate = certificates[name]
    found = cost_curves(certificate)
    totals = {"renyi": "epsilon", "pure": "pure_epsilon", "paper": "paper_epsilon"}
    for kind, attribute in totals.items():
        assert found[kind].shape == (3, 5)
        assert found[kind][:, -1].tolist() == [getattr(cost, attribute) for cost in certificate.costs]
        assert found[kind].max() == getattr(certificate, attribute)
        assert (found[kind][:, 1:] >= found[kind][:, :-1]).all()


def ledger(samples: list[int], rounds: dict[int, range], budget: SiteBudget | None = None) -> MemoryLedger:
    run = RunFacts("penalty", "norm", LossFacts("logistic", 1.0, 0.25), max(3, len(samples)), 6, 4, 1.0, 0.1)
    sites = [SiteFacts(i, B, 2, (0.5,)) for i, B in enumerate(samples)]
    book = MemoryLedger(run, sites, budget)
    for i, charged in rounds.items():
        for t in charged:
            book.charge(Charge(i, t, 0.5, 3.0))
    return book


def test_a_site_that_stopped_early_stays_level() -> None:
    book = ledger([50, 50, 80], {0: range(1, 4), 1: range(1, 7), 2: range(1, 7)})
    found = cost_curves(Certificate.from_ledger(book, delta=1e-5))
    assert found["pure"][0, 2] == pytest.approx(found["pure"][0, 5], rel=1e-9)
    assert found["pure"][0, 2] == pytest.approx(found["pure"][1, 2], rel=1e-9)
    assert found["pure"][1, 5] == pytest.approx(2 * found["pure"][1, 2])
    assert found["renyi"][2, 5] < found["renyi"][1, 5]


def test_a_filtered_site_is_counted_at_its_own_order_and_ends_at_its_budget() -> None:
    limit = SiteBudget(epsilon=3.0, delta=1e-5, order=8.0)
    book = ledger([50, 80], {0: range(1, 5), 1: range(1, 5)}, limit)
    certificate = Certificate.from_ledger(book, delta=1e-5)
    found = cost_curves(certificate)
    free = cost_curves(
        Certificate.from_ledger(ledger([50, 80], {0: range(1, 5), 1: range(1, 5)}), delta=1e-5)
    )
    assert (found["renyi"][:, :-1] >= free["renyi"][:, :-1] * (1 - 1e-12)).all()
    assert found["renyi"][:, -1].tolist() == [cost.epsilon for cost in certificate.costs] == [3.0, 3.0]

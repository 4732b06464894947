"""Certificates of masked runs with dropouts: each release counts its participants."""

import math
from dataclasses import replace

import numpy as np
import pytest
from tools.simulation.program import DELTA, EPSILON, ROWS, tables

from taciturn.core.errors import CertificateError, ParameterError
from taciturn.methods.base import Network
from taciturn.methods.sums.attempt import SumsSite, certified_run
from taciturn.methods.sums.prepared import PreparedSums
from taciturn.privacy.certificate import assumptions
from taciturn.privacy.certificate.certificate import Certificate
from taciturn.privacy.certificate.released import Released
from taciturn.privacy.collusion import masked_mu
from taciturn.privacy.facts import Charge, SiteFacts
from taciturn.privacy.ledger.memory import MemoryLedger

FIVE, FOUR = (0, 1, 2, 3, 4), (0, 1, 2, 3)


def site(colluding=1, rounds=4):
    numbers = tables(5, colluding, rounds)
    return SumsSite(0, numbers, None, None, (ROWS,) * 5)


def planned(tables):
    network = Network.without_rows([ROWS] * 5, [4] * 5, total=5, dimension=1)
    return PreparedSums(network, tables).run_facts(simulated=True)


def lived(colluding=1, rounds=4, common=1, charged=2):
    """Facts of a site that was charged for two rounds among five, then went on from round 1 among four."""
    method = site(colluding, rounds)
    first = method.attempt(FIVE, 0, 1.0)
    left = 1.0 - method.spent(0, 1.0, charged)
    second = method.attempt(FOUR, common, left)
    releases = [("a" * 64, FIVE, first.sum_facts(t)) for t in range(1, charged + 1)]
    releases += [("b" * 64, FOUR, second.sum_facts(t)) for t in range(common + 1, rounds + 1)]
    base = planned(method.tables)
    return certified_run(base, releases)


def certificate(run, numbers=None):
    ledger = MemoryLedger(run, [SiteFacts(0, ROWS, 4)])
    for entry in run.sums:
        ledger.charge(Charge(0, entry.t, scale=entry.std))
    found = None if numbers is None else Released.of("totals", np.zeros(numbers))
    return Certificate.from_ledger(ledger, DELTA, found)


def test_the_whole_budget_is_spent_and_not_more():
    found = certificate(lived())
    assert 0.99 * EPSILON < found.epsilon <= EPSILON


def test_every_release_counts_its_participants():
    run = lived()
    for c in range(5):
        by_hand = 0.0
        for entry in run.sums:
            members = 5 if entry.t <= 2 else 4
            units = entry.reach + math.sqrt(entry.length)
            by_hand += (units / entry.std) ** 2 / max(1, members - c)
        assert masked_mu(run, range(1, 6), run.honest(c)) ** 2 == pytest.approx(by_hand, rel=1e-9)


def test_the_certificate_lists_attempts_and_can_be_verified():
    found = Certificate.from_json(certificate(lived()).to_json())
    found.verify()
    assert [entry.members for entry in found.run.attempts] == [FIVE, FOUR]


def test_the_statement_says_which_attempts_there_were_and_whose_noise_counts():
    """Two releases among five sites, three among four: with one colluder, 3 sites protect the last three."""
    said = certificate(replace(lived(), where="network", simulated=False)).statement()
    assert "the run had 2 attempts: attempt 1 began with message 1 and had 5 sites; attempt 2 began" in said
    assert "attempt 2 began with message 3 and had 4 sites." in said
    assert "In each of 5 rounds every site that took part computed a list of whole numbers" in said
    noise = "relies on the noise of the sites in its attempt, without the sites under the attacker's control"
    assert f"{noise}: at least 3 sites." in said
    assert "relies on the noise of the 4 sites" not in said
    whole = certificate(replace(planned(site().tables), where="network", simulated=False)).statement()
    assert "relies on the noise of the 4 sites" in whole and "attempt" not in whole


def test_the_conditions_of_a_program_bound_contributions_and_not_rows():
    said = " ".join(assumptions.conditions(certificate(lived())))
    assert (
        "The contribution of each record to a sum was clipped to a norm that was fixed before the run."
        in said
    )
    assert "Every row had norm" not in said and "An invalid row" not in said and "first model" not in said


def test_a_certificate_that_omits_a_dropout_is_rejected():
    run = lived()
    forged = replace(run, attempts=tuple(replace(entry, members=FIVE) for entry in run.attempts))
    stated = (
        certificate(run)
        .to_json()
        .replace('"members": [\n     0,\n     1,\n     2,\n     3\n    ]', '"members": [0, 1, 2, 3, 4]')
    )
    assert certificate(forged).epsilon < certificate(run).epsilon
    if stated != certificate(run).to_json():
        with pytest.raises(CertificateError):
            Certificate.from_json(stated).verify()


def test_a_run_that_all_sites_completed_lists_no_attempts():
    method = site()
    base = planned(method.tables)
    whole = method.attempt(FIVE, 0, 1.0)
    assert certified_run(base, [("a" * 64, FIVE, whole.sum_facts(t)) for t in range(1, 5)]) is base
    assert "attempts" not in certificate(base).to_json()


def test_attempts_begin_with_the_first_release():
    run = lived()
    with pytest.raises(ParameterError, match="begin with release 1"):
        replace(run, attempts=run.attempts[1:])


def test_no_dropout_is_allowed_if_all_others_may_collude():
    assert site(colluding=4).attempt(FOUR, 0, 1.0) is None


def test_the_totals_that_are_released_have_each_round_of_the_plan_once():
    """Five releases of three numbers each, for a plan of four rounds: one round was released twice."""
    certificate(lived(), 4 * 3).check()
    for wrong in (5 * 3, 3 * 3):
        with pytest.raises(CertificateError, match="does not fit the facts"):
            certificate(lived(), wrong)
    again = replace(lived().sums[1], length=1)
    with pytest.raises(ParameterError, match="`sums` 2 and 3 must agree in `part` and `length`"):
        replace(lived(), sums=(lived().sums[0], again, *lived().sums[2:]))

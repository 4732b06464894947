"""The facts of masked sums: complete, in order, and never together with those of other methods."""

import dataclasses

import pytest

from taciturn.core.errors import ParameterError
from taciturn.privacy.facts import Charge, RunFacts, SiteFacts
from taciturn.privacy.facts_json import run_from, to_plain
from taciturn.privacy.ledger.memory import MemoryLedger
from taciturn.privacy.loss_facts import LossFacts
from taciturn.privacy.sums import LEAST_STD, AttemptFacts, SumFacts, check_attempts, check_sums

LOGISTIC = LossFacts("logistic", slope_bound=1.0, curvature_bound=0.25)


def masked_run(sites=5, rounds=3, colluding=1, **changes):
    sums = tuple(
        SumFacts(t=t, part="gradient", length=4, sensitivity=1e-3, stray=1e-10, grid=1e-8, std=2.0**16)
        for t in range(1, rounds + 1)
    )
    settings = {"method": "masked", "noise": "discrete", "loss": LOGISTIC, "dimension": 4, "C": 1.0}
    settings |= {
        "regularization": 0.0,
        "sums": sums,
        "records": 2000,
        "largest": 500,
        "sites": sites,
        "rounds": rounds,
        "colluding": colluding,
    }
    return RunFacts(**settings | changes)


def test_run_facts_go_to_json_values_and_back():
    run = masked_run()
    assert run_from(to_plain(run)) == run


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"std": 7.0}, "std"),
        ({"sensitivity": 0.0}, "sensitivity"),
        ({"grid": 1e-30}, "grid"),
        ({"stray": -1.0}, "stray"),
        ({"stray": 1e308}, "stray"),
        ({"length": 0}, "length"),
        ({"part": 1}, "part"),
    ],
)
def test_invalid_sum_is_refused(changes, word):
    good = masked_run().sums[0]
    with pytest.raises(ParameterError, match=word):
        dataclasses.replace(good, **changes)


def test_limits_of_a_sum_match_the_proof():
    """At least 8 grid units of noise; and one unit moves a sum by less than 2^62 grid units."""
    good = masked_run().sums[0]
    assert dataclasses.replace(good, std=LEAST_STD).std == 8.0
    below = 2.0**62 * (1 - 2.0**-53)
    assert dataclasses.replace(good, sensitivity=below, grid=1.0).reach == below
    for sensitivity, grid in ((2.0**62, 1.0), (2.0**63, 1.0), (1e90, 1e-90)):
        with pytest.raises(ParameterError, match=r"2\^62 steps"):
            dataclasses.replace(good, sensitivity=sensitivity, grid=grid)


def attempt(members, first, again=1):
    return AttemptFacts("ab" * 32, members, first, again)


@pytest.mark.parametrize(
    ("members", "firsts"),
    [
        ([(0, 1)], [2]),
        ([(0, 1), (0, 1)], [1, 1]),
        ([(0, 1), (0, 1), (0, 1)], [1, 4, 3]),
        ([(0, 3)], [1]),
        ([(0, 1), (0, 3)], [1, 2]),
    ],
)
def test_attempts_out_of_order_or_of_sites_that_the_run_lacks_are_refused(members, firsts):
    with pytest.raises(ParameterError):
        check_attempts([attempt(*entry) for entry in zip(members, firsts, strict=True)], 3)


def test_ordered_attempts_are_accepted():
    given = [attempt((0, 1, 2), 1), attempt((0, 2), 4, again=3)]
    assert check_attempts(given, 3) == tuple(given) and check_attempts((), 3) == ()
    for wrong in ((), (1, 0), (0, 0)):
        with pytest.raises(ParameterError, match="`members`"):
            attempt(wrong, 1)
    for wrong in ("ab" * 31, "zz" * 32, 7):
        with pytest.raises(ParameterError, match="64 hexadecimal digits"):
            AttemptFacts(wrong, (0, 1), 1, 1)


def test_one_sum_for_each_round_in_order():
    sums = masked_run(rounds=3).sums
    assert check_sums(sums, 3) == sums
    for wrong in (sums[:2], sums[::-1], (sums[0], sums[0], sums[2]), (sums[0], sums[1], None)):
        with pytest.raises(ParameterError, match="`sums` must contain"):
            check_sums(wrong, 3)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"sums": masked_run(rounds=2).sums}, "sums"),
        ({"sums": ()}, "sums"),
        ({"noise": "gaussian"}, "noise"),
        ({"method": "penalty"}, "noise"),
        ({"method": "penalty", "noise": "gaussian"}, "sums"),
        ({"colluding": 5}, "colluding"),
        ({"connectivity": 0}, "connectivity"),
        ({"output_noise": "gaussian"}, "output_noise"),
    ],
)
def test_facts_that_do_not_fit_each_other_are_refused(changes, word):
    with pytest.raises(ParameterError, match=word):
        masked_run(**changes)


def test_honest_sites_are_counted_only_while_masks_connect_them():
    run = masked_run(sites=6, connectivity=3)
    assert [run.honest(c) for c in (0, 1, 2, 3, 4, 5, None)] == [6, 5, 4, 1, 1, 1, 1]
    assert [masked_run(sites=6).honest(c) for c in (0, 2, 4, None)] == [6, 4, 2, 1]
    with pytest.raises(ParameterError, match="colluding"):
        run.honest(6)


def test_the_ledger_takes_the_noise_that_the_facts_state_and_no_other():
    run, site = masked_run(), SiteFacts(site=2, samples=10, degree=4)
    ledger = MemoryLedger(run, [site])
    ledger.charge(Charge(2, 1, scale=2.0**16))
    for odd in (
        Charge(2, 2, scale=2.0**15),
        Charge(2, 2, eta=1.0, scale=2.0**16),
        Charge(2, 4, scale=2.0**16),
    ):
        with pytest.raises(ParameterError):
            ledger.charge(odd)
    with pytest.raises(ParameterError, match="dual_step"):
        MemoryLedger(run, [dataclasses.replace(site, dual_step=(0.5,))])

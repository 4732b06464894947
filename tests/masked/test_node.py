"""The loop of a masked site: charge first, one message a round, the same message after a crash."""

import numpy as np
import pytest
from scipy import stats

from support.masking import all_keys
from support.problems import make_sites
from taciturn.errors import BudgetExceeded, ParameterError
from taciturn.masked.method import MaskedDescent, PublicFacts
from taciturn.masked.node import MaskedNode, loop
from taciturn.masked.shares import MarginShare
from taciturn.masked.sums import add_up, open_sum, to_integers
from taciturn.objective import Logistic, Problem
from taciturn.rng import SecureStreams, SeededStreams

SITES, D = 4, 5


def make_nodes(*, streams=None, colluding=1, rounds=4, repeats=1, rows=40):
    problem = Problem(make_sites(SITES, rows=rows, d=D), C=1.0, regularization=0.1)
    facts = PublicFacts(SITES, SITES * rows, rows, D, Logistic(), 0.0)
    tables = MaskedDescent(colluding=colluding).tables(facts, rounds)
    return [
        MaskedNode(
            i,
            MarginShare(problem.site(i), tables.descent.loss, total=SITES * rows, full=True),
            tables,
            keys,
            streams or SeededStreams(1),
            repeats,
        )
        for i, keys in enumerate(all_keys(SITES))
    ]


def drive(nodes):
    start = nodes[0].tables.descent.start(nodes[0].repeats)
    loops = [loop(node, start, commit=lambda release: None) for node in nodes]
    sent = [next(one) for one in loops]
    rounds = [sent]
    for _ in range(nodes[0].tables.rounds - 1):
        total = add_up(one.message for one in sent)
        sent = [one.send(total) for one in loops]
        rounds.append(sent)
    total, ends = add_up(one.message for one in sent), []
    for one in loops:
        with pytest.raises(StopIteration) as end:
            one.send(total)
        ends.append(end.value.value)
    return rounds, ends


def test_all_sites_come_to_the_same_model():
    rounds, ends = drive(make_nodes())
    assert [sent[0].t for sent in rounds] == [1, 2, 3, 4]
    assert all(end.f.tobytes() == ends[0].f.tobytes() for end in ends)
    assert ends[0].t == 4 and ends[0].f.any()


def test_the_charge_comes_before_the_release():
    charged = []
    node = make_nodes()[2]
    run = loop(node, node.tables.descent.start(1), commit=charged.append)
    sent = next(run)
    for t in range(1, 5):
        facts = [(2, k + 1, node.tables.sums[k].std) for k in range(t)]
        assert [(c.site, c.t, c.scale) for c, *_ in charged] == facts, "every round, before it is sent"
        if t < 4:
            sent = run.send(sent.message)

    def refuse(release):
        raise BudgetExceeded("no more")

    node = make_nodes()[2]
    with pytest.raises(BudgetExceeded):
        next(loop(node, node.tables.descent.start(1), commit=refuse))


def test_after_a_crash_the_stored_message_is_sent_again_and_not_charged():
    nodes, charged = make_nodes(streams=SecureStreams()), []
    start = nodes[0].tables.descent.start(1)
    stored = next(loop(nodes[0], start, commit=charged.append)).message
    again = next(loop(make_nodes()[0], start, commit=charged.append, released=stored)).message
    assert again is stored and len(charged) == 1
    with pytest.raises(ParameterError, match="the round of these keys"):
        nodes[0].message(start)


def test_a_site_that_goes_on_with_a_stored_message_ends_like_the_others():
    """The key of the round is gone by then; those of the next are all that it needs."""
    rounds, ends = drive(make_nodes())
    node = make_nodes()[0]
    node.keys.advance()
    run = loop(node, node.tables.descent.start(1), commit=lambda release: None, released=rounds[0][0].message)
    sent = [next(run)]
    for t in range(3):
        sent.append(run.send(add_up(one.message for one in rounds[t])))
    assert [one.message.tobytes() for one in sent] == [one[0].message.tobytes() for one in rounds]
    with pytest.raises(StopIteration) as end:
        run.send(add_up(one.message for one in rounds[3]))
    assert end.value.value.f.tobytes() == ends[0].f.tobytes()


def test_the_key_of_a_round_is_gone_before_its_message_is_committed():
    node, at = make_nodes()[0], []
    next(loop(node, node.tables.descent.start(1), commit=lambda release: at.append(node.keys.t)))
    assert at == [2]


@pytest.mark.parametrize("colluding", [0, 1, 2])
def test_what_colluders_see_has_the_noise_of_all_the_others(colluding):
    """They take their own noise off the sum, and what is left is as noisy as the certificate says."""
    nodes = make_nodes(streams=SecureStreams(), colluding=colluding, repeats=300)
    state, entry = nodes[0].tables.descent.start(300), nodes[0].tables.sums[0]
    honest, length = SITES - colluding, entry.length
    seen = add_up(node.message(state) for node in nodes[:honest])
    for keys in all_keys(SITES)[honest:]:
        seen = seen + keys.mask(1, entry.part, (300, length))
    values = sum(to_integers(node.share.moments(), entry.grid) for node in nodes[:honest])
    left = open_sum(seen, 1.0) - values
    z = left / (entry.std * np.sqrt(honest))
    assert stats.kstest(z.ravel(), "norm").pvalue > 1e-9
    chances = stats.chi2(z.size).cdf(np.square(z).sum())
    assert 1e-9 < chances < 1 - 1e-9


def test_messages_of_one_site_look_uniform():
    node = make_nodes(repeats=300)[0]
    message = node.message(node.tables.descent.start(300))
    assert stats.kstest(message.ravel() / 2.0**64, "uniform").pvalue > 1e-6


def test_a_mask_used_twice_would_lay_the_site_bare():
    """Why it is refused: the difference of two messages under one mask has no mask in it."""
    first, second = make_nodes(streams=SecureStreams())[0], make_nodes(streams=SecureStreams())[0]
    start, entry = first.tables.descent.start(1), first.tables.sums[0]
    apart = open_sum(first.message(start) - second.message(start), 1.0)
    assert np.abs(apart).max() < 12 * entry.std


def test_the_second_round_is_at_zero():
    node = make_nodes()[0]
    state = node.tables.descent.start(1)
    state = node.tables.descent.advance(state, np.ones((1, 15)))
    node.keys.advance()
    moved = type(state)(1, state.x, state.y + 1, state.f, state.sum_y, state.sum_g, state.shapes)
    with pytest.raises(ParameterError, match="`state` must be 0"):
        node.message(moved)
    node.message(state)

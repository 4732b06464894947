"""A node of masked sums: one message a round, the same after a crash, with the certified noise."""

import numpy as np
import pytest
from scipy import stats

from support.masking import all_keys
from support.problems import make_sites
from taciturn.core.errors import BudgetExceeded, ParameterError
from taciturn.graph import Graph
from taciturn.methods.base import Network
from taciturn.methods.loop import Send, Store, drive, loop
from taciturn.methods.programs.masked_descent import MaskedDescent, PublicFacts
from taciturn.methods.sums.node import SumsNode
from taciturn.methods.sums.sums import add_up, open_sum
from taciturn.objective import Logistic, Problem
from taciturn.rng import SecureStreams, SeededStreams

SITES, D = 4, 5


def make_node(sites, *, streams=None, colluding=1, rounds=4, repeats=1, rows=40):
    """Some sites of a network of four, side by side."""
    problem = Problem(make_sites(SITES, rows=rows, d=D), C=1.0, regularization=0.1)
    facts = PublicFacts(SITES, SITES * rows, rows, D, Logistic(), 0.0)
    tables, keys = MaskedDescent(colluding=colluding).tables(facts, rounds), all_keys(SITES)
    return SumsNode(
        sites=np.array(sites),
        halves=[tables.program.private_half(problem.site(i), tables.units) for i in sites],
        tables=tables,
        keys=[keys[i] for i in sites],
        streams=streams or SeededStreams(1),
        repeats=repeats,
    )


def make_nodes(**facts):
    return [make_node([i], **facts) for i in range(SITES)]


def next_message(steps, answer=None):
    """What a loop stores and then sends."""
    stored = steps.send(answer)
    assert isinstance(stored, Store)
    sent = next(steps)
    assert isinstance(sent, Send) and sent.message is stored.message
    return stored


def drive_all(nodes):
    """[what every node stored] per round, and their last states."""
    loops = [loop(node, node.start()) for node in nodes]
    stored, rounds = [next_message(one) for one in loops], []
    for _ in range(nodes[0].rounds - 1):
        rounds.append(stored)
        total = total_of(stored)
        stored = [next_message(one, total) for one in loops]
    rounds.append(stored)
    ends = []
    for one in loops:
        with pytest.raises(StopIteration) as end:
            one.send(total_of(stored))
        ends.append(end.value.value)
    return rounds, ends


def total_of(stored):
    """The sum of the messages of all sites of all nodes, (repeats, length)."""
    return add_up(message for effect in stored for message in effect.message)


def test_all_sites_compute_the_same_model():
    nodes = make_nodes()
    rounds, ends = drive_all(nodes)
    assert [stored[0].t for stored in rounds] == [1, 2, 3, 4]
    assert all(end.f.tobytes() == ends[0].f.tobytes() for end in ends)
    assert ends[0].t == 4 and ends[0].f.any()
    for node, end in zip(nodes, ends, strict=True):
        np.testing.assert_array_equal(node.models(end), ends[0].f.reshape(1, 1, D))


def test_the_model_is_that_of_the_program_on_the_open_totals():
    """Computed by hand: the program gets only the unmasked sum of all integers and noises."""
    nodes = make_nodes()
    _, ends = drive_all(make_nodes())
    tables = nodes[0].tables
    state = tables.program.start(1)
    for facts in tables.sums:
        query, total = tables.program.query(state), np.zeros((1, facts.length), dtype=np.int64)
        for node in nodes:
            total += node.halves[0].integers(query, facts)
            (site,) = node.sites.tolist()
            total += noise_of(node, facts, site)
        state = tables.program.advance(state, total * facts.grid)
    np.testing.assert_array_equal(state.f, ends[0].f)


def noise_of(node, facts, site):
    from taciturn.methods.sums import sums

    return sums.draw(node.streams, facts.std, (1, facts.length), site=site, t=facts.t)


@pytest.mark.parametrize("repeats", [1, 3])
def test_many_sites_in_one_node_equal_nodes_of_one_site_each(repeats):
    alone, ends = drive_all(make_nodes(repeats=repeats))
    cuts = make_node([0, 1], repeats=repeats), make_node([2, 3], repeats=repeats)
    together, last = drive_all(cuts)
    for one, two in zip(alone, together, strict=True):
        messages = np.concatenate([effect.message for effect in one])
        assert messages.tobytes() == np.concatenate([effect.message for effect in two]).tobytes()
        charges = [charge for effect in one for charge in effect.charges.each()]
        assert charges == [charge for effect in two for charge in effect.charges.each()]
    assert last[1].f.tobytes() == ends[3].f.tobytes()


def test_every_round_is_charged_the_noise_of_its_sum():
    node = make_node([2])
    charged = []
    drive(
        loop(node, node.start()),
        store=lambda effect: charged.extend(effect.charges.each()),
        exchange=lambda effect: effect.message[0],
    )
    assert [(charge.site, charge.t, charge.scale) for charge in charged] == [
        (2, k + 1, facts.std) for k, facts in enumerate(node.tables.sums)
    ]


def test_a_charge_that_is_refused_sends_nothing():
    node, sent = make_node([2]), []

    def refuse(effect):
        raise BudgetExceeded("no more")

    with pytest.raises(BudgetExceeded):
        drive(loop(node, node.start()), store=refuse, exchange=sent.append)
    assert sent == []


def test_a_round_is_never_masked_twice():
    node = make_node([0], streams=SecureStreams())
    next_message(loop(node, node.start()))
    with pytest.raises(ParameterError, match="the round of these keys"):
        node.message(node.start())


def test_the_key_of_a_round_is_gone_before_its_message_is_stored():
    node = make_node([0, 1])
    stored = next(loop(node, node.start()))
    assert isinstance(stored, Store) and [keys.t for keys in node.keys] == [2, 2]


@pytest.mark.parametrize("colluding", [0, 1, 2])
def test_colluders_view_contains_the_noise_of_all_honest_sites(colluding):
    """Colluders subtract their own noise from the sum; the rest is as noisy as the certificate states."""
    honest = SITES - colluding
    node = make_node(range(honest), streams=SecureStreams(), colluding=colluding, repeats=300)
    state, entry = node.start(), node.tables.sums[0]
    seen = add_up(node.message(state))
    for keys in all_keys(SITES)[honest:]:
        seen = seen + keys.mask(1, entry.part, (300, entry.length))
    values = sum(half.integers(None, entry) for half in node.halves)
    left = open_sum(seen, 1.0) - values
    z = left / (entry.std * np.sqrt(honest))
    assert stats.kstest(z.ravel(), "norm").pvalue > 1e-9
    chances = stats.chi2(z.size).cdf(np.square(z).sum())
    assert 1e-9 < chances < 1 - 1e-9


def test_messages_of_one_site_look_uniform():
    node = make_node([0], repeats=300)
    message = node.message(node.start())
    assert stats.kstest(message.ravel() / 2.0**64, "uniform").pvalue > 1e-6


def test_a_mask_used_twice_would_reveal_the_message():
    """The reason for the refusal: the difference of two messages under one mask is unmasked."""
    first, second = (make_node([0], streams=SecureStreams()) for _ in range(2))
    start, entry = first.start(), first.tables.sums[0]
    apart = open_sum(first.message(start) - second.message(start), 1.0)
    assert np.abs(apart).max() < 12 * entry.std


def test_the_second_round_is_at_zero():
    node = make_node([0])
    state = node.tables.program.advance(node.start(), np.ones((1, 15)))
    node.keys[0].advance()
    moved = type(state)(1, state.x, state.y + 1, state.f, state.sum_y, state.sum_g, state.shapes)
    with pytest.raises(ParameterError, match=r"`state\.y` must be 0"):
        node.message(moved)
    node.message(state)


def test_real_runs_never_share_a_mask():
    """The keys of a simulation follow from its seed; those of every real run are drawn again."""
    problem = Problem(make_sites(SITES, rows=40, d=D), C=1.0, regularization=0.1)
    prepared = MaskedDescent(colluding=1).prepare(Network.of(problem, Graph.complete(SITES)), 4)
    objectives = [problem.site(i) for i in range(SITES)]

    def keys(seed):
        (node,) = prepared.nodes(objectives, [range(SITES)], seed=seed, repeats=1)
        return [key for site in node.keys for key in site.keys.values()]

    assert keys(1) == keys(1) and not {*keys(None)} & {*keys(None)}
    assert len({*keys(None)}) == SITES * (SITES - 1) // 2  # one for each pair

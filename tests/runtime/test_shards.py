"""Shards in one process: the same bits as the local engine, however the network is cut."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import taciturn as tt
from support.problems import make_sites
from support.sharded import make_shards, run_shards, setup_of, vectors
from taciturn.core.errors import ParameterError
from taciturn.objective import one_blas_thread
from taciturn.runtime.checkpoint import Checkpoint
from taciturn.runtime.local import run_local
from taciturn.runtime.setup import prepare
from taciturn.runtime.shards import ShardTask

PER_SITE = [tt.Geometric(0.5 + 0.1 * i, 1.02) for i in range(7)]
NOISE = tt.NormNoise([3.0 + i for i in range(7)])
METHODS = {
    "madmm": tt.MADMM(PER_SITE, [0.5 - 0.01 * i for i in range(7)]),
    "pp": tt.PenaltyPerturbation(PER_SITE, 0.5, NOISE, output_noise=tt.NormNoise(1e9)),
    "dvp": tt.DualPerturbation(0.5, tt.GaussianNoise(0.3), grid=2.0**-20, clip=8.0),
    "pvp": tt.PrimalPerturbation(0.5, tt.GaussianNoise(0.1)),
}


@pytest.fixture(scope="module")
def uneven():
    """Seven sites of different size on a graph that is neither regular nor a ring."""
    sites = [make_sites(n=1, rows=20 + 7 * i, seed=i)[0] for i in range(7)]
    graph = tt.Graph.from_edges([(0, 3), (3, 6), (6, 1), (1, 4), (4, 2), (2, 5), (5, 0), (0, 6), (2, 3)])
    return tt.Problem(sites, loss=tt.Logistic(), C=10.0, regularization=0.5), graph


@pytest.mark.parametrize("start", ["zeros", "random"])
@pytest.mark.parametrize("name", METHODS)
def test_shards_equal_the_local_engine_to_the_last_bit(uneven, name, start):
    setup = setup_of(*uneven, METHODS[name], rounds=6, repeats=2, seed=3, start=start)
    whole = run_local(setup)
    for count in (1, 2, 3, 7):
        shards = make_shards(setup, count)
        with one_blas_thread():
            record = run_shards(shards, 6)
        assert np.array_equal(vectors(shards).transpose(1, 0, 2), whole.coef), count
        for t, stepped in enumerate(record):
            losses = np.concatenate([part.losses for part in stepped])
            accuracies = np.concatenate([part.accuracies for part in stepped])
            assert np.array_equal(losses.mean(axis=0), whole.loss[:, t])
            assert np.array_equal(accuracies.mean(axis=0), whole.accuracy[:, t])


def test_masked_sums_do_not_depend_on_the_order_of_addition(uneven):
    setup = prepare(*uneven, tt.MaskedDescent(epsilon=1.0, colluding=1), rounds=4, repeats=2, seed=3)
    whole = run_local(setup)
    for count in (1, 3, 7):
        shards = make_shards(setup, count)
        run_shards(shards, 4)
        assert np.array_equal(vectors(shards).transpose(1, 0, 2), whole.coef), count


def test_distances_from_the_mean_come_with_the_next_round(uneven):
    setup = setup_of(*uneven, METHODS["pp"], rounds=4, repeats=2)
    shards = make_shards(setup, 3)
    record = run_shards(shards, 4)
    gaps = [np.max([part.gap for part in stepped], axis=0) for stepped in record[1:]]
    np.testing.assert_allclose(np.transpose(gaps), run_local(setup).consensus_gap[:, :3], rtol=1e-12)
    assert all(part.gap is None for part in record[0])


def test_a_shard_knows_its_own_sites_only(uneven):
    setup = setup_of(*uneven, METHODS["pp"], rounds=5)
    shard = make_shards(setup, 3)[1]
    prepared, own = ShardTask.of(setup, shard.part).prepared, shard.part.own
    tables, network = prepared.tables, prepared.network
    assert tables.eta.shape == tables.scale.shape == tables.output_scale.shape == (len(own), 5)
    assert tables.eta.base is None, "not a view that would drag the whole table along"
    assert len(tables.penalties) == len(own)
    assert network.sites == tuple(own) and len(network.samples) == len(network.degrees) == len(own)
    for cut, node in zip(shard.cuts, shard.nodes, strict=True):
        rows = slice(own.start + cut.start, own.start + cut.stop)
        assert np.array_equal(node.tables.scale, setup.prepared.tables.scale[rows])
        assert node.sites.tolist() == list(range(rows.start, rows.stop))


def test_nothing_is_measured_where_it_was_not_asked_for(uneven):
    setup = replace(setup_of(*uneven, METHODS["pp"], rounds=2), measure=False)
    shards = make_shards(setup, 2)
    (stepped, _), *_ = run_shards(shards, 2)
    assert np.isnan(stepped.losses).all() and np.isnan(stepped.accuracies).all()
    assert np.array_equal(vectors(shards).transpose(1, 0, 2), run_local(setup).coef)


def test_shards_need_streams_that_all_can_draw_from(uneven):
    with pytest.raises(ParameterError, match="`seed` must be given"):
        make_shards(replace(setup_of(*uneven, METHODS["pp"], rounds=2), seed=None), 2)


@pytest.mark.parametrize(("before", "after"), [(3, 3), (3, 1), (1, 4)])
def test_restored_states_repeat_every_bit_whichever_shards_saved_them(uneven, before, after, tmp_path):
    """Saved after round 10, where the solver starts afresh anyway."""
    setup = setup_of(*uneven, METHODS["pp"], rounds=14, repeats=2)
    saver = Checkpoint(tmp_path, every=10)
    whole = make_shards(setup, before, saver=saver)
    run_shards(whole, 14, due=saver.due)
    resumed = make_shards(setup, after, saver=saver, t=10)
    assert resumed[0].t == 10
    run_shards(resumed, 14)
    assert np.array_equal(vectors(resumed), vectors(whole))

"""Checkpoints: whole or not there, of this run alone."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import taciturn as tt
from support.problems import make_sites
from support.sharded import make_shards, run_shards, setup_of, vectors
from taciturn.admm.run import Recorder
from taciturn.engines.checkpoint import Checkpoint, fingerprint
from taciturn.errors import ParameterError

PP = tt.PenaltyPerturbation(tt.Geometric(0.5, 1.04), 0.5, tt.NormNoise(3.0))


@pytest.fixture
def setup(problem, ring):
    return setup_of(problem, ring, PP, rounds=24, repeats=2, history=True)


@pytest.fixture
def saver(tmp_path):
    return Checkpoint(tmp_path, every=10)


def full_record(setup, seed=0):
    recorder = Recorder(setup.rounds, setup.repeats, history=setup.history)
    rng = np.random.default_rng(seed)
    recorder.loss[:], recorder.accuracy[:], recorder.consensus_gap[:] = rng.random((3, 2, setup.rounds))
    recorder.history.extend(rng.random((20, 2, 5, 6)))
    return recorder


@pytest.mark.parametrize("resumed_by", [1, 2, 5])
def test_a_run_goes_on_from_its_files_bit_for_bit(setup, saver, resumed_by):
    def save(t, shards):
        if saver.due(t):
            for shard in shards:
                saver.save_states(shard.states())
            saver.finish(t, "mine", full_record(setup))

    whole = make_shards(setup, 2)
    run_shards(whole, 24, each=save)
    assert saver.latest("mine") == 20
    again = make_shards(setup, resumed_by)
    for shard in again:
        shard.restore(saver.load_states(20, shard.part.own))
    run_shards(again, 24)
    assert np.array_equal(vectors(again), vectors(whole))


def test_a_shard_reads_only_the_files_that_hold_its_sites(setup, saver):
    for shard in make_shards(setup, 5):
        saver.save_states(shard.states())
    assert [part.first for part in saver.load_states(0, range(2, 3))] == [2]
    assert sorted(part.first for part in saver.load_states(0, range(1, 4))) == [1, 2, 3]
    assert saver.load_states(10, range(0, 5)) == []


def test_the_record_comes_back(setup, saver):
    before, after = full_record(setup), full_record(setup, seed=1)
    saver.finish(20, "mine", before)
    saver.restore(20, after)
    for name in ("loss", "accuracy", "consensus_gap", "history"):
        assert np.array_equal(getattr(after, name), getattr(before, name))


def test_older_files_and_leftovers_of_a_killed_writer_go(setup, saver, tmp_path):
    shards = make_shards(setup, 2)
    for shard in shards:
        saver.save_states(shard.states())
    (tmp_path / "tmpabc.part").write_bytes(b"half")
    saver.finish(10, "mine", full_record(setup))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint.json", "round10-record.npz"]


def test_files_without_the_manifest_do_not_count(setup, saver):
    for shard in make_shards(setup, 2):
        saver.save_states(shard.states())
    assert saver.latest("mine") == 0


@pytest.mark.parametrize("text", [None, "", "{", '{"round": 3}', "[]"])
def test_a_foreign_folder_is_refused(setup, saver, tmp_path, text):
    saver.finish(10, "mine", full_record(setup))
    if text is not None:
        (tmp_path / "checkpoint.json").write_text(text)
    with pytest.raises(ParameterError, match="`checkpoint` must belong to this run"):
        saver.latest("another's")


def test_one_run_at_a_time(saver):
    with saver.held():
        with pytest.raises(ParameterError, match="in use"), saver.held():
            pass
    with saver.held():
        assert json.dumps(saver.latest("mine")) == "0"


def test_the_fingerprint_sees_whatever_changes_the_bits(setup, problem):
    own = fingerprint(setup, ["a"] * 5)
    assert own == fingerprint(
        setup_of(problem, tt.Graph.ring(5), PP, rounds=24, repeats=2, history=True), ["a"] * 5
    )
    noisier = tt.PenaltyPerturbation(tt.Geometric(0.5, 1.04), 0.5, tt.NormNoise(2.9))
    larger = tt.Problem(make_sites(), loss=tt.Logistic(), C=21.0, regularization=0.5)
    others = [
        fingerprint(setup, ["a"] * 4 + ["b"]),
        fingerprint(replace(setup, seed=1), ["a"] * 5),
        fingerprint(replace(setup, repeats=3), ["a"] * 5),
        fingerprint(replace(setup, tol=1e-9), ["a"] * 5),
        fingerprint(replace(setup, start="random"), ["a"] * 5),
        fingerprint(replace(setup, graph=tt.Graph.path(5)), ["a"] * 5),
        fingerprint(replace(setup, tables=noisier.tables(5, 24)), ["a"] * 5),
        fingerprint(replace(setup, problem=larger), ["a"] * 5),
    ]
    assert len({own, *others}) == len(others) + 1

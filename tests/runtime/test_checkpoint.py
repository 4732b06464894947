"""Checkpoints: complete or absent, and of this run only."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import taciturn as tt
from support.problems import make_sites
from support.sharded import make_shards, run_shards, setup_of, vectors
from taciturn.core.errors import ParameterError
from taciturn.methods.run import Recorder
from taciturn.runtime.checkpoint import Checkpoint, fingerprint

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
    def finish(t):
        if saver.due(t):
            saver.finish(t, "mine", full_record(setup))

    whole = make_shards(setup, 2, saver=saver)
    run_shards(whole, 24, due=saver.due, each=finish)
    assert saver.latest("mine") == 20
    again = make_shards(setup, resumed_by, saver=saver, t=20)
    assert {state.t for shard in again for state in shard.states} == {20}
    run_shards(again, 24)
    assert np.array_equal(vectors(again), vectors(whole))


def save_all(saver, t=10):
    """Five sites, one file each: site i holds i."""
    for i in range(5):
        saver.save_states(t, i, {"f": np.full((1, 2), float(i))})


def test_a_shard_reads_only_the_files_that_hold_its_sites(saver, tmp_path):
    save_all(saver)
    for path in tmp_path.glob("round10-sites[04]*"):
        path.write_bytes(b"not a state")
    assert saver.load_states(10, range(2, 3))["f"].tolist() == [[2.0, 2.0]]
    assert saver.load_states(10, range(1, 4))["f"][:, 0].tolist() == [1.0, 2.0, 3.0]


def test_a_file_of_many_sites_is_cut_to_those_that_are_wanted(saver):
    saver.save_states(10, 0, {"f": np.arange(3.0)[:, None], "lam": -np.arange(3.0)[:, None]})
    saver.save_states(10, 3, {"f": np.arange(3.0, 5.0)[:, None], "lam": -np.arange(3.0, 5.0)[:, None]})
    found = saver.load_states(10, range(1, 4))
    assert found["f"][:, 0].tolist() == [1.0, 2.0, 3.0] and found["lam"][:, 0].tolist() == [-1.0, -2.0, -3.0]


def test_the_record_comes_back(setup, saver):
    before, after = full_record(setup), full_record(setup, seed=1)
    saver.finish(20, "mine", before)
    saver.restore(20, after)
    for name in ("loss", "accuracy", "consensus_gap", "history"):
        assert np.array_equal(getattr(after, name), getattr(before, name))


def test_old_files_and_leftovers_of_a_killed_writer_are_removed(setup, saver, tmp_path):
    save_all(saver, t=5)
    (tmp_path / "tmpabc.part").write_bytes(b"half")
    saver.finish(10, "mine", full_record(setup))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint.json", "round10-record.npz"]


def test_files_without_the_manifest_do_not_count(saver):
    save_all(saver)
    assert saver.latest("mine") == 0


@pytest.mark.parametrize("text", [None, "", "{", '{"round": 3}', "[]"])
def test_a_foreign_folder_is_refused(setup, saver, tmp_path, text):
    saver.finish(10, "mine", full_record(setup))
    if text is not None:
        (tmp_path / "checkpoint.json").write_text(text)
    with pytest.raises(ParameterError, match="`checkpoint` must belong to this run"):
        saver.latest("another's")


def test_checkpoint_folder_is_used_by_one_run_at_a_time(saver):
    with saver.held():
        with pytest.raises(ParameterError, match="in use"), saver.held():
            pass
    with saver.held():
        assert json.dumps(saver.latest("mine")) == "0"


def test_fingerprint_covers_everything_that_changes_the_result(setup, problem):
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
        fingerprint(replace(setup, options=replace(setup.options, tol=1e-9)), ["a"] * 5),
        fingerprint(replace(setup, options=replace(setup.options, start="random")), ["a"] * 5),
        fingerprint(replace(setup, graph=tt.Graph.path(5)), ["a"] * 5),
        fingerprint(replace(setup, method=noisier), ["a"] * 5),
        fingerprint(replace(setup, problem=larger), ["a"] * 5),
    ]
    assert len({own, *others}) == len(others) + 1


def test_states_of_an_interrupted_run_are_not_mixed_with_those_of_the_next(tmp_path):
    """A run that stops before its first checkpoint is complete leaves states of other settings behind."""
    problem = tt.Problem(make_sites(), loss=tt.Logistic(), C=20.0, regularization=0.5)
    left = Checkpoint(tmp_path, every=10)
    for first, last in ((0, 2), (2, 5)):
        wrong = np.full((last - first, 1, 6), 9.0)
        left.save_states(10, first, {"f": wrong, "lam": wrong, "heard": wrong})
    (tmp_path / "round-up.npz").write_bytes(b"a file of the user")
    given = {"rounds": 20, "seed": 1, "checkpoint": tmp_path, "threads": 1}
    whole = tt.simulate(problem, "ring", PP, **given)
    assert (tmp_path / "round-up.npz").exists()
    saved = left.load_states(20, range(5))
    assert np.array_equal(saved["f"], whole.coef.transpose(1, 0, 2))


@pytest.mark.parametrize("damage", ["states", "record", "cut", "flag", "twice"])
def test_missing_or_damaged_files_are_refused_in_one_line(setup, saver, tmp_path, damage):
    saver.save_states(10, 0, {"f": np.zeros((5, 2))})
    saver.finish(10, "mine", full_record(setup))
    if damage == "twice":
        saver.save_states(10, 0, {"f": np.zeros((3, 2))})
    elif damage == "cut":
        (tmp_path / "round10-sites0-5.npz").write_bytes(b"PK\x03\x04")
    elif damage == "flag":  # one bit, which says that the array is compressed in an unknown way
        file = tmp_path / "round10-sites0-5.npz"
        data = bytearray(file.read_bytes())
        data[data.index(b"PK\x01\x02") + 11] ^= 0x80
        file.write_bytes(data)
    else:
        next(tmp_path.glob(f"round10-{'record' if damage == 'record' else 'sites'}*")).unlink()
    with pytest.raises(ParameterError, match="`checkpoint` must be a folder with a complete checkpoint"):
        saver.restore(10, full_record(setup))
        saver.load_states(10, range(5))

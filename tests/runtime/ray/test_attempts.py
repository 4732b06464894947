"""Lost workers: the run continues while it makes progress, and else ends with one clear line."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from ray.exceptions import RayActorError

from support.raywork import PP
from support.sharded import setup_of
from taciturn.core.errors import WorkerLost
from taciturn.runtime.ray import RayEngine, engine


class Driver:
    """Starts at the newest checkpoint, and is lost some rounds later, or ends."""

    def __init__(self, start, ends):
        self.start = self.t = start
        self.ends = ends

    def run(self, step):
        if self.ends:
            return "the run"
        self.t += 3
        step(3)
        raise RayActorError


@pytest.fixture
def attempts(monkeypatch, problem, ring, tmp_path):
    """Run with drivers that start at the given rounds; the last one ends the run if `ends`."""
    shown = []
    monkeypatch.setattr(engine, "cluster", lambda address, cpus: nullcontext())
    monkeypatch.setattr(engine, "crew", lambda parts, problem: nullcontext([]))
    monkeypatch.setattr(engine, "progress", lambda *_, **__: nullcontext(shown.append))
    setup = setup_of(problem, ring, PP, rounds=60)

    def run(*starts, ends=True, checkpoint=True):
        drivers = [Driver(start, ends and k == len(starts) - 1) for k, start in enumerate(starts)]
        monkeypatch.setattr(engine, "_driver", lambda *_: drivers.pop(0))
        settings = {"checkpoint": tmp_path} if checkpoint else {}
        return RayEngine(shards=1, **settings).run(setup), sum(shown)

    return run


def test_run_continues_while_it_makes_progress(attempts):
    result, shown = attempts(0, 0, 10, 10, 20, 20, 30)
    assert result == "the run" and shown == 30, "the progress goes back with the run"


def test_run_gives_up_after_three_losses_in_the_same_round(attempts):
    said = r"3 attempts in a row from round .* the last one after round 13; call again to resume from"
    with pytest.raises(WorkerLost, match=said):
        attempts(0, 10, 10, 10, ends=False)


def test_without_a_checkpoint_one_loss_is_enough(attempts):
    with pytest.raises(WorkerLost, match="after round 3, so the run is lost; give the engine a `checkpoint`"):
        attempts(0, ends=False, checkpoint=False)


def test_workers_that_never_start(attempts, monkeypatch):
    def crew(parts, problem):
        raise RayActorError

    monkeypatch.setattr(engine, "crew", crew)
    with pytest.raises(WorkerLost, match="did not start or load their rows; `taciturn` must be installed"):
        attempts(checkpoint=False)

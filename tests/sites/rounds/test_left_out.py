"""A result of rounds in which not every site released something: all statements are valid."""

from contextlib import nullcontext

import pytest

from support.sitehub import start, statement, until, use_hub
from support.sitemasked import masked_network
from support.sitework import RING_OF_3, network
from taciturn.core.errors import TaciturnWarning
from taciturn.estimators import load_model
from taciturn.sites.files.site import load_site
from taciturn.sites.protocol.ending import Ending
from taciturn.sites.protocol.frames import Kind, decode

REAL = {"output_noise": {"kind": "gaussian", "std": 1e-3}, "budget": {"epsilon": 50.0}, "patience": 60.0}


@pytest.mark.parametrize("options", [{}, {"whiten": 0.5}], ids=["penalty", "whitened"])
def test_the_statement_of_a_site_that_released_fewer_rounds_is_valid(tmp_path, monkeypatch, options):
    """Without masks, a run ends after the last round that any site released, even if site-1 did not."""
    hub = use_hub(monkeypatch)
    paths = network(tmp_path, RING_OF_3, job=options | {"rounds": 8, "seed": None}, site=REAL)

    def lose(sender, to, data):
        frame = decode(data, largest=10**8)
        return None if to == "site-1" and frame.kind == Kind.MESSAGE and frame.t >= 4 else data

    hub.change = lose
    running = start(paths)
    until(lambda: any(frame.t == 5 for frame in hub.frames(0, Kind.MESSAGE)))
    for name in ("site-0", "site-1", "site-2"):
        hub.kill(name)
    for thread in running:
        thread.wait()
    hub.change = lambda sender, to, data: data
    assert [thread.code for thread in start(paths[:2], without=frozenset({"site-2"}))] == [0, 0]
    found = [statement(path) for path in paths[:2]]
    assert [facts["ended"]["round"] for facts in found] == [5, 5]
    assert [(facts["rounds"], facts.get("left_out")) for facts in found] == [(5, None), (4, 1)]


@pytest.mark.parametrize("rounds", [0, 3])
def test_the_statement_of_a_site_that_was_away_is_valid(tmp_path, monkeypatch, rounds):
    """A site that returns, or starts for the first time, after the others have finished."""
    hub = use_hub(monkeypatch)
    links = [(i, j) for i in range(5) for j in range(i)]
    paths = masked_network(tmp_path, links, job={"quorum": 4, "rounds": 8}, site={"patience": 2.0})

    def cut_off(sender, to, data):
        late = any(frame.t > rounds for frame in hub.frames(0, Kind.COMMIT))
        return None if late and "site-4" in (sender, to) else data

    hub.change = cut_off
    running = start(paths if rounds else paths[:4])
    assert [thread.code for thread in running[:4]] == [0] * 4
    for thread in running[4:]:
        hub.kill("site-4")
        thread.wait()
    hub.change = lambda sender, to, data: data
    (late,) = start(paths[4:])
    leave = Ending._tick_over  # the sites that have the result stay until site-4 has it too
    monkeypatch.setattr(
        Ending, "_tick_over", lambda self: leave(self) and not (self.setup.own < 4 and late.is_alive())
    )
    others = start(paths[:4])
    assert [thread.code for thread in (late, *others)] == [0] * 5
    assert len({load_site(path).state.joinpath("model.json").read_bytes() for path in paths}) == 1
    *complete, fewer = [statement(path) for path in paths]
    assert not any("left_out" in facts for facts in complete)
    assert fewer["rounds"] + fewer["left_out"] == 8 and fewer["left_out"] >= 7 - rounds
    assert (fewer["rounds"] > 0) == (rounds > 0)
    with nullcontext() if rounds else pytest.warns(TaciturnWarning, match="added nothing to the model"):
        model = load_model(load_site(paths[4]).state / "model.json")
    assert (model.certificate_ is not None) == (rounds > 0)

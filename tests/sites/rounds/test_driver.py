"""Sites from their first round to their last: real drivers, stores and accounts, in threads on one hub."""

import json
import shutil
import time

import numpy as np
import pytest

from support.siteend import in_process
from support.sitehub import Killed, start, statement, until, use_hub
from support.sitemasked import masked_network, model_in_process
from support.sitework import PATH_OF_3, RING_OF_3, network
from support.sitework import frame as signed_frame
from taciturn.core.errors import (
    BudgetExceeded,
    Contradiction,
    NeighbourFailed,
    ParameterError,
    RunOver,
    StateLost,
)
from taciturn.jobs.verify_run import verify_run
from taciturn.methods.admm.node import Node
from taciturn.methods.sums.attempt import SumsAttempt
from taciturn.sites.files.site import load_site
from taciturn.sites.protocol.events import Heard
from taciturn.sites.protocol.frames import Kind, encode
from taciturn.sites.protocol.rounds import GAVE_UP
from taciturn.sites.rounds.evidence import read_proof
from taciturn.sites.rounds.prepare import make_ready
from taciturn.sites.rounds.store import SiteStore, read_ledger
from taciturn.sites.state.account import open_account
from taciturn.sites.watch.status import completed_rounds, read_status
from taciturn.sites.wire.trust import load_trust

REAL = {"output_noise": {"kind": "gaussian", "std": 1e-3}, "budget": {"epsilon": 50.0}}
PAYS = {"budget": {"epsilon": 5.0, "colluding": 1}}  # for a few runs
KINDS = pytest.mark.parametrize("kind", ["penalty", "whitened", "masked"])


@pytest.fixture
def hub(monkeypatch):
    return use_hub(monkeypatch)


def make(folder, kind, links=RING_OF_3, *, site=None, **job):
    """The files of a small network of either method; with `seed=None`, real noise."""
    own = {"patience": 60.0} | (site or {})
    if kind == "masked":
        return masked_network(folder, links, job=job, site=PAYS | own)
    whiten = {"whiten": 0.5} if kind == "whitened" else {}
    return network(folder, links, job=whiten | job, site=REAL | own)


def slow(monkeypatch, seconds=0.05):
    """Rounds that take their time, so that a test can step in between."""
    for owner, name in ((Node, "primal"), (SumsAttempt, "message")):
        real = getattr(owner, name)

        def wait(*args, real=real):
            time.sleep(seconds)
            return real(*args)

        monkeypatch.setattr(owner, name, wait)


def models(paths):
    return {(path.parent / "state" / "model.json").read_bytes() for path in paths}


def agrees(model, expected, kind):
    """To the last bit, but where one process maps whitened vectors back before it takes their average."""
    found = np.array(json.loads(model)["coef"][0])
    if kind == "whitened":
        assert "whitening" in json.loads(model)
        return np.allclose(found, expected, rtol=1e-12, atol=0)
    return found.tobytes() == expected.tobytes()


def rounds(path):
    return sorted(body for body in read_ledger(load_site(path).database).columns(load_site(path).number).t)


def stopped(path):
    return statement(path, "stopped.json")


@KINDS
def test_a_network_has_the_bits_of_one_process_and_its_folders_fit_together(hub, tmp_path, kind):
    paths = make(tmp_path, kind, PATH_OF_3)
    assert [thread.code for thread in start(paths)] == [0] * 3
    sites = [load_site(path) for path in paths]
    (model,) = models(paths)
    expected = model_in_process(sites) if kind == "masked" else in_process(sites)[-1].mean(axis=0)
    assert agrees(model, expected, kind)
    for site, path in zip(sites, paths, strict=True):
        assert rounds(path) == list(range(1, site.job.rounds + 1))
        assert len(verify_run(site.state)[1]) == 4
        seen = read_status(site)
        assert seen.finished and seen.completed == seen.released == site.job.rounds
        assert {neighbour.heard for neighbour in seen.neighbours} == {site.job.rounds}


@KINDS
def test_a_site_that_is_stopped_and_started_again_sends_the_same_bytes(hub, tmp_path, kind, monkeypatch):
    """The noise is real: a second draw would give a second message of that round."""
    slow(monkeypatch)
    paths = make(tmp_path, kind, seed=None, rounds=8)
    running = start(paths)
    for stop_after in (1, 3, 5):
        until(lambda stop_after=stop_after: completed_rounds(load_site(paths[1])) >= stop_after)
        hub.kill("site-1")
        assert isinstance(running[1].wait(), Killed)
        (running[1],) = start(paths[1:2])
    assert [thread.code for thread in running] == [0] * 3
    assert len(models(paths)) == 1
    for number in range(3):
        sent = hub.frames(number, Kind.MESSAGE)
        assert sorted(frame.t for frame in sent) == list(range(1, 9))  # one for each round
        assert len({frame.scope for frame in sent}) == 1
    assert not any("at_least" in statement(path) for path in paths)


@KINDS
def test_a_silent_site_is_named_after_patience_and_the_same_command_goes_on(hub, tmp_path, kind, monkeypatch):
    slow(monkeypatch)
    paths = make(tmp_path, kind, rounds=6, site={"patience": 2.0})
    running = start(paths)
    until(lambda: completed_rounds(load_site(paths[0])) >= 2)
    hub.kill("site-2")
    for thread in running[:2]:
        error = thread.wait()
        assert isinstance(error, NeighbourFailed)
        assert "site-2 silent since" in str(error) and "stopped after 2 s" in str(error)
    seen = read_status(load_site(paths[0]))
    assert [n.name for n in seen.neighbours if n.silent_since is not None] == ["site-2"]
    assert [thread.code for thread in start(paths)] == [0] * 3
    sites = [load_site(path) for path in paths]
    expected = model_in_process(sites) if kind == "masked" else in_process(sites)[-1].mean(axis=0)
    assert agrees(models(paths).pop(), expected, kind)


@KINDS
def test_nothing_is_spent_before_all_sites_are_connected(hub, tmp_path, kind):
    paths = make(tmp_path, kind, seed=None, site={"patience": 1.0})
    for thread in start(paths[:2]):
        assert isinstance(thread.wait(), NeighbourFailed) and "the start of the run" in str(thread.outcome)
    assert [open_account(load_site(path)).place.exists() for path in paths] == [False] * 3
    assert not hub.frames(0, Kind.MESSAGE) and not hub.frames(0, Kind.COMMIT)


def test_error_names_the_difference_between_two_jobs(hub, tmp_path, caplog):
    paths = make(tmp_path, "penalty", [(0, 1)], site={"patience": 1.0})
    text = (tmp_path / "job.toml").read_text().replace("C = 10.0", "C = 11.0")
    (paths[1].parent / "job.toml").write_text(text)
    paths[1].write_text(paths[1].read_text().replace("../job.toml", "job.toml"))
    running = start(paths)
    assert [thread.code for thread in running] == [7, 7]
    assert "`C` is 11.0 in its job, 10.0 in" in caplog.text and "`C` is 11.0 in" in str(running[0].outcome)


@KINDS
def test_remaining_sites_finish_with_the_model_of_the_last_complete_round(hub, tmp_path, kind, monkeypatch):
    slow(monkeypatch)
    paths = make(tmp_path, kind, rounds=40, seed=None)
    running = start(paths)
    until(lambda: min(completed_rounds(load_site(path)) for path in paths) >= 3)
    for name in ("site-0", "site-1", "site-2"):
        hub.kill(name)
    for thread in running:
        thread.wait()
    left = start(paths[:2], without=frozenset({"site-2"}))
    assert [thread.code for thread in left] == [0, 0]
    assert left[0].outcome.reason == "all remaining sites agreed to finish, without site-2"
    assert len(models(paths[:2])) == 1
    for path in paths[:2]:
        facts = statement(path)
        assert facts["ended"]["sites"] == ["site-0", "site-1"]
        left_out, last = facts.get("left_out", 0), facts["ended"]["round"]
        assert left_out <= (kind != "masked")  # without masks, one site's round is enough to end after it
        assert 3 <= last <= len(rounds(path)) + left_out <= last + 1
        assert verify_run(load_site(path).state)[1]
    hub.sent.clear()
    assert [thread.code for thread in start(paths[:2])] == [0, 0]  # it is over, and says the same again
    assert not hub.frames(0, Kind.MESSAGE)


@KINDS
def test_end_before_the_first_model_states_the_cost(hub, tmp_path, kind):
    paths = make(tmp_path, kind, seed=None)
    errors = [thread.wait() for thread in start(paths, without=frozenset())]
    assert all(isinstance(error, RunOver) for error in errors), errors
    assert stopped(paths[0])["released"] == []


@KINDS
def test_a_claim_that_a_budget_is_spent_ends_the_run_of_that_site_only(hub, tmp_path, kind, monkeypatch):
    """The claim is signed but cannot be checked, so it does not end the runs of other sites."""
    paths = make(tmp_path, kind, rounds=5, seed=None, site={"patience": 2.0})
    real = SiteStore.write

    def claim(self, effect):
        if self.facts.name == "site-2" and any(release.charge.t == 3 for release in effect.releases):
            raise BudgetExceeded("the budget does not pay for another round.")
        real(self, effect)

    with monkeypatch.context() as lie:
        lie.setattr(SiteStore, "write", claim)
        outcomes = [thread.wait() for thread in start(paths)]
    assert [type(outcome) for outcome in outcomes] == [NeighbourFailed, NeighbourFailed, BudgetExceeded]
    assert [frame.payload for frame in hub.frames(2, Kind.LEAVE)] == [GAVE_UP]
    assert not any((path.parent / "state" / "model.json").exists() for path in paths)
    assert [thread.code for thread in start(paths)] == [0] * 3  # once the site takes part again
    assert len(models(paths)) == 1
    assert not any("ended" in statement(path) for path in paths)


def test_waiting_site_reports_which_sites_want_to_finish(hub, tmp_path, monkeypatch):
    slow(monkeypatch)
    paths = make(tmp_path, "penalty", rounds=60, site={"patience": 3.0})
    running = start(paths)
    until(lambda: completed_rounds(load_site(paths[0])) >= 1)
    hub.kill("site-0")
    running[0].wait()
    start(paths[:1], without=frozenset())
    error = running[1].wait()
    assert isinstance(error, NeighbourFailed)
    assert "site-0 will release nothing more, to finish the run now" in str(error)


def test_sites_left_out_must_leave_the_rest_connected(hub, tmp_path):
    paths = make(tmp_path, "penalty", PATH_OF_3)
    for number, absent in ((0, "nobody"), (0, "site-0"), (0, "site-1")):
        (thread,) = start([paths[number]], without=frozenset({absent}))
        assert isinstance(thread.wait(), ParameterError)


def restored(path, backup):
    state = load_site(path).state
    shutil.rmtree(state)
    shutil.copytree(backup, state)


def run_and_roll_back(hub, paths, folder, *, lose=False):
    """A run in which the state of site-1 is restored, or lost, while the others wait; its thread is dead."""
    running = start(paths)
    state = load_site(paths[1]).state
    until(lambda: completed_rounds(load_site(paths[1])) >= 2)
    hub.kill("site-1")
    running[1].wait()
    shutil.copytree(state, folder / "yesterday")
    (running[1],) = start(paths[1:2])
    until(lambda: completed_rounds(load_site(paths[1])) >= 6)
    hub.kill("site-1")
    running[1].wait()
    if lose:
        shutil.rmtree(state)
    else:
        restored(paths[1], folder / "yesterday")
    return running


@pytest.mark.parametrize("lose", [False, True])
def test_without_masks_a_restored_or_lost_state_needs_confirmation_by_its_owner(
    hub, tmp_path, monkeypatch, lose
):
    """No round is released twice, whatever neighbours report; the figures become 'at least'."""
    slow(monkeypatch)
    paths = make(tmp_path / "net", "penalty", seed=None, rounds=14)
    running = run_and_roll_back(hub, paths, tmp_path, lose=lose)
    (again,) = start(paths[1:2])
    error = again.wait()
    assert isinstance(error, StateLost) and "--newest-state" in str(error)
    assert stopped(paths[1])["at_least"] is True
    (running[1],) = start(paths[1:2], newest=True)
    assert [thread.code for thread in running] == [0] * 3
    assert len(models(paths)) == 1
    for number in range(3):
        sent = [frame.t for frame in hub.frames(number, Kind.MESSAGE)]
        assert len(sent) == len(set(sent))
    assert [statement(path).get("at_least", False) for path in paths] == [False, True, False]
    assert set(rounds(paths[1])) >= {frame.t for frame in hub.frames(1, Kind.MESSAGE)}


@pytest.mark.parametrize("lose", [False, True])
def test_with_masks_a_restored_or_lost_state_continues_in_a_new_attempt(hub, tmp_path, monkeypatch, lose):
    slow(monkeypatch)
    paths = make(tmp_path / "net", "masked", seed=None, rounds=14)
    running = run_and_roll_back(hub, paths, tmp_path, lose=lose)
    (running[1],) = start(paths[1:2])
    assert [thread.code for thread in running] == [0] * 3
    assert len(models(paths)) == 1
    assert [statement(path).get("at_least", False) for path in paths] == [False, True, False]
    for number in range(3):
        slots = [(frame.scope, frame.t) for frame in hub.frames(number, Kind.MESSAGE)]
        assert len(slots) == len(set(slots))
    assert len(statement(paths[0])["attempts"]) == 2


@pytest.mark.parametrize("kind", ["penalty", "masked"])
def test_a_site_that_has_seen_a_copy_of_itself_says_at_least_also_after_a_restart(
    hub, tmp_path, kind, monkeypatch
):
    slow(monkeypatch)
    paths = make(tmp_path, kind, seed=None, rounds=8)
    running = start(paths)
    until(lambda: len(hub.frames(0, Kind.MESSAGE)) > 1)
    last = hub.frames(0, Kind.MESSAGE)[-1]
    of_copy = signed_frame(
        load_site(paths[0]), Kind.MESSAGE, last.t + 4, attempt=last.attempt, scope=last.scope
    )
    hub.on["site-0"].tell(Heard(of_copy, 1))
    assert running[0].code == StateLost.exit_code and stopped(paths[0])["at_least"] is True
    running[0] = start(paths[:1])[0]
    assert [thread.code for thread in running] == [0] * 3
    assert [statement(path).get("at_least", False) for path in paths] == [True, False, False]


def test_owner_confirmation_has_no_effect_with_masks_and_is_refused(hub, tmp_path):
    paths = make(tmp_path, "masked")
    (thread,) = start(paths[:1], newest=True)
    assert isinstance(thread.wait(), ParameterError) and "newest-state" in str(thread.outcome)


@KINDS
def test_equivocation_ends_the_run_of_every_site_with_a_proof(hub, tmp_path, kind):
    paths = make(tmp_path, kind, rounds=6, site={"patience": 10.0})
    identity = make_ready(load_site(paths[2])).identity

    def two_stories(sender, to, data):
        frame = data[44:45] == bytes([Kind.MESSAGE]) and sender == "site-2" and to == "site-1"
        return another(data) if frame and data[49:53] == (3).to_bytes(4, "little") else data

    def another(data):
        frame = decode_any(data)
        changed = frame.payload[:-8] + bytes(8)
        return identity.seal(encode(frame.job, frame.slot, frame.scope, changed))

    hub.change = two_stories
    running = start(paths)
    honest = [thread.wait() for thread in running[:2]]
    assert all(isinstance(error, Contradiction) for error in honest), honest
    trust = load_trust(tmp_path / "authority.pem")
    for path in paths[:2]:
        state = load_site(path).state
        (proof,) = state.glob("proof-*.json")
        assert read_proof(proof, trust).owner == "site-2"
        assert not (state / "model.json").exists()
        assert stopped(path)["because_of"] == "site-2"
    (again,) = start(paths[:1])
    assert isinstance(again.wait(), Contradiction)


def decode_any(data):
    from taciturn.sites.protocol.frames import decode

    return decode(data, largest=10**8)


def test_a_vector_at_the_edge_of_the_range_stops_the_run_and_names_its_site(hub, tmp_path, monkeypatch):
    paths = make(tmp_path, "penalty", rounds=6, site={"patience": 5.0})
    real = Node.message

    def drive(node, state):
        vector = real(node, state)
        return np.full_like(vector, 63.99) if int(node.sites[0]) == 2 and state.t == 2 else vector

    monkeypatch.setattr(Node, "message", drive)
    errors = [thread.wait() for thread in start(paths)][:2]
    assert all(
        isinstance(error, Contradiction) and "The values of site-2 make" in str(error) for error in errors
    )
    assert not any((path.parent / "state" / "model.json").exists() for path in paths)


def test_failed_solve_is_charged_and_its_round_is_not_drawn_again(hub, tmp_path, monkeypatch):
    paths = make(tmp_path, "penalty", seed=None, site={"patience": 3.0})
    real = Node.message
    drawn = []

    def give_up(node, state):
        if int(node.sites[0]) != 0 or state.t < 2:
            return real(node, state)
        drawn.append(state.t)
        return None

    monkeypatch.setattr(Node, "message", give_up)
    running = start(paths)
    assert isinstance(running[0].wait(), RunOver)
    assert [thread.code for thread in running[1:]] == [7, 7]
    for _ in range(2):
        (again,) = start(paths[:1])
        assert isinstance(again.wait(), RunOver)
    assert rounds(paths[0]) == [1, 2, 3] and drawn == [2]

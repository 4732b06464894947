"""The protocol under simulated faults: invariants hold, and every planted bug is found by one of them."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tools.simulation import faults, world
from tools.simulation.__main__ import simulate
from tools.simulation.invariants import check, observed
from tools.simulation.memory import VirtualDisk
from tools.simulation.world import LARGEST, Plan, World

from taciturn.methods.admm.attempt import ADMMAttempt
from taciturn.methods.sums.attempt import SumsAttempt, SumsSite
from taciturn.sites.protocol import pads
from taciturn.sites.protocol.core import Core
from taciturn.sites.protocol.ending import Ending
from taciturn.sites.protocol.envelopes import Envelopes
from taciturn.sites.protocol.frames import Kind, decode
from taciturn.sites.protocol.machine import SiteProtocol
from taciturn.sites.protocol.meeting import Meeting
from taciturn.sites.protocol.membership import Past

RUNS = [
    (2, "masked", 900, 80),
    (3, "masked", 1000, 80),
    (4, "penalty", 1100, 80),
    (5, "masked", 1200, 180),
    (5, "masked", 1400, 180),
    (5, "masked", 1600, 180),
    (5, "penalty", 1800, 160),
    (8, "masked", 2000, 60),
    (20, "masked", 2100, 6),
    (20, "penalty", 2200, 2),
]


@pytest.mark.parametrize(("sites", "method", "first", "runs"), RUNS)
@pytest.mark.slow
def test_no_invariant_breaks_under_random_faults(sites: int, method: str, first: int, runs: int) -> None:
    for seed in range(first, first + runs):
        _, broken = simulate(seed, sites, method)
        again = f"python -m tools.simulation --replay {seed} --sites {sites} --method {method}"
        assert not broken, f"{broken[0]}: {again}"


FOUND = [
    (5, None, 203264),  # half of the sites complete a round before they learn that a member's key is revoked
    (5, None, 205384),
    (5, None, 208333),
    (5, None, 208603),
    (20, None, 300054),  # on a ring, all neighbours of a site took the result over, and none showed it on
    (20, None, 300075),
    (5, None, 400227),  # without masks, nobody kept on disk what a neighbour lacked of the round before
    (5, None, 600603),  # a meeting began while a result was being stored, and its site never said it
    (5, "penalty", 641184),  # two ended an attempt that the others had signed, and left too early
    (5, None, 807320),  # a site returned to an attempt without storing it, and restarted in another
    (5, None, 1006417),  # a site restored with its account took itself for new, and forgot two releases
    (5, None, 1301057),  # the same, but the site did not see its old hello: it asked only for those of others
    (5, None, 1238810),  # a total was lost, and no neighbour had a message of it under its sender's new key
    (5, None, 2006666),  # a site took over a result of fewer rounds than its own, and kept the totals beyond
    (5, None, 970780),  # a fault of the simulation: two copies of a site drew the same random numbers
    (5, None, 8001157),  # without masks, a statement of the result was not repeated to sites that were away
    (None, None, 7001875),  # the only neighbour of a site took the result over, but had stated another one
]


@pytest.mark.parametrize(("sites", "method", "seed"), FOUND)
def test_a_seed_that_broke_an_invariant_once_does_so_no_more(
    sites: int | None, method: str | None, seed: int
) -> None:
    assert not simulate(seed, sites, method)[1]


def test_a_seed_gives_the_same_run_twice() -> None:
    first, second = (simulate(77, 5, "masked", trace=True)[0] for _ in range(2))
    assert first.happened == second.happened
    one, other = ([line.split()[:4] for line in world.trace or ()] for world in (first, second))
    assert one == other


def complete(sites: int) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(j for j in range(sites) if j != i) for i in range(sites))


def test_a_site_that_vanishes_is_left_behind_without_an_operator() -> None:
    run = World(Plan(5, 5, 1, 4, 4, complete(5)))
    run.network.delay = lambda one, other: [0.05]

    def vanish() -> None:
        run.network.kill(run.sites[4], power=True)
        run.sites[4].away = True
        run.gone.add(4)

    run.fault(0.7, "s4 vanishes", vanish)
    run.run()
    results = [site.finished for site in run.sites[:4]]
    assert all(result is not None and result.members == (0, 1, 2, 3) for result in results)
    assert len({result.digest for result in results if result is not None}) == 1


def pads_without_commitments(patch: Any) -> None:
    """The masks of the protocol before: bound to the round, not to what both sites add."""

    def pad_key(key: bytes, scope: bytes, t: int, first: bytes, second: bytes) -> bytes:
        return hashlib.sha256(key + scope + bytes([t])).digest()

    patch.setattr(pads, "pad_key", pad_key)


def keys_on_disk(patch: Any) -> None:
    """Keys are kept with the state, as they were before."""

    def hold(self: Core, **entries: bytes | None) -> None:
        _hold(self, **entries)
        self.pending.update(entries)

    _hold = Core.hold
    patch.setattr(Core, "hold", hold)


def charge_after_sending(patch: Any) -> None:
    """A message leaves before its charge is on disk."""

    def store(self: Core, records: Any, then: Any, releases: Any = ()) -> None:
        then()
        _store(self, records, lambda: None, releases)

    _store = Core.store
    patch.setattr(Core, "store", store)


def no_charge_in_later_attempts(patch: Any) -> None:
    """Budgets: a release in a second attempt is not charged again."""
    charge = SiteProtocol._charge

    def skip(self: SiteProtocol, t: int) -> Any:
        (release,) = charge(self, t)
        return (release,) if self.number == 1 else (replace(release, attempt=1),)

    patch.setattr(SiteProtocol, "_charge", skip)


def full_budget_for_every_attempt(patch: Any) -> None:
    """Every attempt takes the whole budget again."""
    patch.setattr(SumsSite, "spent", lambda self, base, left, upto: 0.0)


def noise_for_too_many_sites(patch: Any) -> None:
    """The noise of an attempt counts sites that have left."""
    attempt = SumsSite.attempt

    def wrong(self: SumsSite, members: Any, base: int, left: float) -> Any:
        found = attempt(self, range(len(self.samples)), base, left)
        if found is None:
            return None
        right, tables = attempt(self, members, base, left), found.tables
        if right is not None:
            names = ("colluding", "program", "units", "largest", "data_norm")
            facts = (getattr(right.tables, name) for name in names)
            tables = type(tables)(tables.sums, right.tables.pairs, *facts)
        return SumsAttempt(self, tables, tuple(members), 1.0)

    patch.setattr(SumsSite, "attempt", wrong)


def accept_any_sum(patch: Any) -> None:
    """One member dictates the model."""
    patch.setattr(SumsAttempt, "impossible", lambda self, t, heard, messages: False)


def no_quorum(patch: Any) -> None:
    """Two groups go on, each without the other."""
    patch.setattr(Meeting, "_acceptable", lambda self, agreed: True)
    propose = Meeting._propose

    def alone(self: Meeting) -> None:
        object.__setattr__(self.setup, "quorum", 1)
        propose(self)

    patch.setattr(Meeting, "_propose", alone)


def result_without_comparing(patch: Any) -> None:
    """A site gives out its result without hearing what the others hold, and states are not compared."""
    patch.setattr(SiteProtocol, "_state_digest", lambda self, t: bytes(32))
    patch.setattr(SiteProtocol, "_end_digest", lambda self: bytes(32) if self.phase == "run" else self.digest)
    patch.setattr(SiteProtocol, "_hold_end", lambda self, key: True)
    patch.setattr(Core, "_contradicts", lambda self, frame, data: False)


def wait_for_ever(patch: Any) -> None:
    """A party that is gone for good holds up the run."""
    patch.setattr(SiteProtocol, "_tick_round", lambda self: self.ask(self._missing()))


def rolled_back_charges_forgotten(patch: Any) -> None:
    """A rolled-back site does not take over what the others state of its charges."""
    patch.setattr(Meeting, "raised", lambda self, stated, lived: ())
    patch.setattr(Meeting, "charged", lambda self, attempt: 10**6)


def message_before_all_commits(patch: Any) -> None:
    """Rushing: a message is sent before every commit is there."""

    def commits(self: SiteProtocol, t: int) -> Any:
        found = {
            i: self.find(Kind.COMMIT, self.number, t, i, self.scope) for i in self._needed(Kind.COMMIT, t)
        }
        return {i: bytes(32) if frame is None else frame.payload[:32] for i, frame in found.items()}

    patch.setattr(SiteProtocol, "_commits", commits)


def charge_at_the_meeting(patch: Any) -> None:
    """Every site pays when sites meet, even if nothing is ever released."""
    raised = Meeting.raised

    def early(self: Meeting, stated: Any, lived: Any) -> Any:
        everybody = tuple(range(len(self.setup.names)))
        node = self.method.attempt(everybody, 0, 1.0)
        entry = Past(self.number, everybody, 0, 1.0, 1)
        return (*raised(self, stated, lived), self.release(node, entry, b"", 1))

    patch.setattr(Meeting, "raised", early)


def believe_any_charge(patch: Any) -> None:
    """Whatever one member states is charged to all sites, even to those without a rollback."""
    patch.setattr(Meeting, "liars", 0)
    sign = Meeting._sign

    def forget(self: Meeting, agreed: Any) -> None:
        self.saved = {key: value for key, value in self.saved.items() if not key.startswith("sign/")}
        sign(self, agreed)

    patch.setattr(Meeting, "_sign", forget)


def rolled_back_to_any_round(patch: Any) -> None:
    """Without masks, a site that was restored goes on from its own state: no mark, and no word of others."""
    write = VirtualDisk.write

    def forget(self: VirtualDisk, effect: Any) -> None:
        write(self, effect)
        self.account_mark = 0

    patch.setattr(VirtualDisk, "write", forget)
    patch.setattr(Meeting, "_stated_past", lambda self: [])
    patch.setattr(Meeting, "_acceptable", lambda self, agreed: len(agreed.members) >= self.setup.quorum)


def values_at_the_edge(patch: Any) -> None:
    """Without masks: one member drives the model to the edge of the range."""
    patch.setattr(ADMMAttempt, "impossible", lambda self, t, heard, messages: False)


def blame_the_first(patch: Any) -> None:
    """Without masks: the first site is blamed for values at the edge."""
    blamed = ADMMAttempt.blamed

    def first(self: ADMMAttempt, t: int, messages: Any) -> int | None:
        return None if blamed(self, t, messages) is None else min(messages)

    patch.setattr(ADMMAttempt, "blamed", first)


def nothing_for_late_sites(patch: Any) -> None:
    """A site that comes back after the others have finished gets no result."""
    patch.setattr(Ending, "_take_over", lambda self, key, frames: False)
    patch.setattr(Ending, "_state_too", lambda self: False)


def keys_for_anyone(patch: Any) -> None:
    """A site gives the key of its envelopes to any certificate, also to a revoked one."""
    patch.setattr(Envelopes, "read", lambda self, data, via: decode(data, largest=LARGEST))


BUGS = [
    (pads_without_commitments, "pads", "masked", 561),
    (rolled_back_to_any_round, "once", "penalty", 2),
    (keys_on_disk, "keys", "masked", 0),
    (charge_after_sending, "ledger", "masked", 17),
    (no_charge_in_later_attempts, "ledger", "masked", 0),
    (rolled_back_charges_forgotten, "ledger", "masked", 265),
    (charge_at_the_meeting, "idle", "masked", 15),
    (believe_any_charge, "idle", "masked", 563),
    (full_budget_for_every_attempt, "epsilon", "masked", 2),
    (noise_for_too_many_sites, "epsilon", "masked", 2),
    (accept_any_sum, "sums", "masked", 56),
    (values_at_the_edge, "sums", "penalty", 35),
    (blame_the_first, "blame", "penalty", 35),
    (keys_for_anyone, "revoked", "masked", 6),
    (no_quorum, "model", "masked", 11),
    (result_without_comparing, "model", "masked", 0),
    (wait_for_ever, "end", "masked", 2),
    (message_before_all_commits, "end", "masked", 1),
    (nothing_for_late_sites, "end", "masked", 29),
]


@pytest.mark.parametrize(
    ("bug", "invariant", "method", "seed"), BUGS, ids=[bug.__name__ for bug, _, _, _ in BUGS]
)
def test_a_planted_bug_is_found(
    bug: Callable[[Any], None], invariant: str, method: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not simulate(seed, 5, method)[1]
    bug(monkeypatch)
    _, broken = simulate(seed, 5, method)
    assert any(line.startswith(invariant) for line in broken), broken


def broken_by(run: World) -> list[str]:
    """The invariants that a run with faults of its own breaks."""
    with observed(run) as observer:
        run.run()
    return check(run, observer)


def stolen_key() -> World:
    """The key of s2 is revoked, s2 has another, and a thief goes on signing with the first."""
    run, draw = World(Plan(5, 5, 1, 4, 4, complete(5)), sealed=True), random.Random(3)
    run.network.delay = lambda one, other: [0.02]

    def revoke() -> None:
        run.revoke(2, lambda: 0.0)
        run.network.kill(run.sites[2])
        run.add_thief(2)
        run.rekeyed.add(2)
        run.scheduler.after(0.1, lambda: run.network.start(run.sites[2]))

    run.fault(0.4, "the key of s2 is revoked", revoke)
    for k in range(20):
        run.fault(0.52 + 0.02 * k, "the thief speaks", lambda: faults._speak_as(run, run.sites[2], draw))
    return run


def test_stolen_revoked_key_has_no_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not broken_by(stolen_key())
    everybody = world.trust()
    monkeypatch.setattr(world, "trust", lambda revoked: everybody)  # planted: revoked keys are believed
    assert any(line.startswith("blame: s0 blames s2") for line in broken_by(stolen_key()))


def wrong_clock(method: str, expires: float, jumps: float) -> World:
    """The certificate of s1 ends, and s4, whose clock is wrong for a moment, alone takes its message."""
    run = World(Plan(5, 5, 2, 3, 4, complete(5), method=method))
    run.network.delay = lambda one, other: [0.1 if one == 1 else 0.01]
    run.fault(expires, "the certificate of s1 expires", lambda: run.expired.add(1))
    run.fault(jumps, "the clock of s4 jumps", lambda: run.clock.update({4: -3 * 86400.0}))
    run.fault(jumps + 1.0, "the clock of s4 is set right", run.clock.clear)
    return run


@pytest.mark.parametrize(
    ("method", "expires", "jumps"),
    [("masked", 0.48, 0.52), ("masked", 0.56, 0.62), ("penalty", 0.38, 0.38)],
    ids=["a round", "the last round", "the last round without masks"],
)
def test_a_round_that_one_site_alone_completed_is_completed_by_all(
    method: str, expires: float, jumps: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not broken_by(wrong_clock(method, expires, jumps))
    monkeypatch.setattr(SiteProtocol, "set_aside", Core.set_aside)  # planted: such a message is forgotten
    assert any(line.startswith("end:") for line in broken_by(wrong_clock(method, expires, jumps)))


def silent_at_the_end() -> World:
    """Without masks, on a ring: the certificate of s3 ends while the sites state their results."""
    links = tuple(tuple(sorted(((i - 1) % 5, (i + 1) % 5))) for i in range(5))
    run = World(Plan(5, 5, 0, 3, 3, links, method="penalty"))
    run.network.delay = lambda one, other: [0.01 + 0.02 * ((3 * one + other) % 5)]
    run.fault(0.68, "the certificate of s3 expires", lambda: run.expired.add(3))
    return run


def all_done(self: Ending) -> bool:
    """The rule before: only when every other member has stated its result is it final."""
    members = () if self.attempt is None else self.attempt.members
    others = [i for i in members if i != self.setup.own]
    return bool(others) and all(self.find(Kind.DONE, self.attempt.number, 0, i, self.scope) for i in others)


def test_site_states_at_most_one_result(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not broken_by(silent_at_the_end())
    monkeypatch.setattr(Ending, "advance_meeting", Meeting.advance_meeting)  # planted: it signs on
    monkeypatch.setattr(Ending, "_others_done", all_done)
    for name in ("_another_done", "_state_too"):
        monkeypatch.setattr(Ending, name, lambda self: False)
    monkeypatch.setattr(Ending, "_take_over", lambda self, key, frames: False)
    assert any(line.startswith("model:") for line in broken_by(silent_at_the_end()))

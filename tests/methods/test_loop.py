"""The loop stores, then sends: nothing that a node computes leaves before it is charged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from support.example_run import run_facts, site_facts
from taciturn.core.errors import BudgetExceeded, NotConverged
from taciturn.methods.loop import Send, Store, charge_again, charged, drive, loop
from taciturn.privacy.facts import RoundCharges
from taciturn.privacy.ledger.memory import MemoryLedger


@dataclass(frozen=True)
class State:
    """After t rounds, and what was heard in the last."""

    t: int
    heard: Any = None


@dataclass
class Node:
    """Sends its round; notes what it was asked for, in order."""

    rounds: int = 3
    fails_at: int | None = None
    asked: list[Any] = field(default_factory=list)

    def message(self, state: State) -> str | None:
        self.asked.append(("message", state.t + 1))
        return None if state.t + 1 == self.fails_at else f"message {state.t + 1}"

    def charges(self, t: int) -> RoundCharges:
        self.asked.append(("charges", t))
        return RoundCharges(t, np.array([0]), np.array([0.5]), np.array([3.0]), None)

    def after(self, state: State, message: str, heard: Any) -> State:
        self.asked.append(("after", state.t + 1))
        assert message == f"message {state.t + 1}"
        return State(state.t + 1, heard)


class Ledger(MemoryLedger):
    """Notes its charges among other events; refuses the given round."""

    def __init__(self, events: list[Any], refuses: int | None = None) -> None:
        super().__init__(run_facts(rounds=3), site_facts(1))
        self.events, self.refuses = events, refuses

    def charge_round(self, charges: RoundCharges) -> None:
        if charges.t == self.refuses:
            raise BudgetExceeded("no more")
        super().charge_round(charges)
        self.events.append(("charged", charges.t))


def events_of(steps: Any, *, refuses: int | None = None) -> tuple[list[Any], Any]:
    """What a driver sees of a loop, in order, and how the loop ended: its last state, or what it raised."""
    events: list[Any] = []

    def store(effect: Store) -> None:
        if effect.t == refuses:
            raise BudgetExceeded("no more")
        events.append(("store", effect.t, effect.message))

    def exchange(effect: Send) -> str:
        events.append(("send", effect.t, effect.message))
        return f"heard {effect.t}"

    try:
        return events, drive(steps, store=store, exchange=exchange)
    except (BudgetExceeded, NotConverged) as error:
        return events, error


def test_every_message_is_stored_and_then_sent() -> None:
    events, last = events_of(loop(Node(), State(0)))
    assert events == [(what, t, f"message {t}") for t in (1, 2, 3) for what in ("store", "send")]
    assert last == State(3, "heard 3")


def test_what_is_stored_is_the_state_before_the_round_and_its_charge() -> None:
    steps = loop(Node(), State(0))
    for t in (1, 2, 3):
        stored = steps.send(None if t == 1 else f"heard {t - 1}")
        assert isinstance(stored, Store) and stored.state.t == t - 1
        assert stored.t == stored.charges.t == t and not stored.charges.aborted
        sent = next(steps)
        assert isinstance(sent, Send) and (sent.t, sent.message, sent.state) == (
            t,
            stored.message,
            stored.state,
        )


def test_a_round_is_computed_once_before_it_is_charged_and_ended_after_it_was_heard() -> None:
    node = Node(rounds=2)
    events_of(loop(node, State(0)))
    assert node.asked == [(what, t) for t in (1, 2) for what in ("message", "charges", "after")]


@pytest.mark.parametrize("refuses", [1, 2, 3])
def test_nothing_is_sent_after_a_failed_store(refuses: int) -> None:
    node = Node()
    events, error = events_of(loop(node, State(0)), refuses=refuses)
    assert isinstance(error, BudgetExceeded)
    assert [event[:2] for event in events] == [
        (what, t) for t in range(1, refuses) for what in ("store", "send")
    ]
    assert ("after", refuses) not in node.asked and ("message", refuses + 1) not in node.asked


def test_aborted_message_is_stored_and_ends_the_run() -> None:
    steps = loop(Node(fails_at=2), State(0))
    next(steps), next(steps)
    stored = steps.send("heard 1")
    assert isinstance(stored, Store) and stored.message is None and stored.charges.aborted
    with pytest.raises(NotConverged, match="the solver failed in round 2"):
        next(steps)
    events, error = events_of(loop(Node(fails_at=2), State(0)))
    assert isinstance(error, NotConverged)
    assert events == [("store", 1, "message 1"), ("send", 1, "message 1"), ("store", 2, None)]


def test_a_finished_run_has_nothing_left_to_do() -> None:
    assert events_of(loop(Node(), State(3, "heard 3"))) == ([], State(3, "heard 3"))


def test_charged_shows_a_message_only_once_it_is_on_the_ledger() -> None:
    events: list[Any] = []
    ledger = Ledger(events)
    steps, answer = charged(loop(Node(), State(0)), ledger), None
    for t in (1, 2, 3):
        sent = steps.send(answer)
        assert isinstance(sent, Send) and sent.t == t and events == [("charged", k) for k in range(1, t + 1)]
        answer = f"heard {t}"
    with pytest.raises(StopIteration) as end:
        steps.send(answer)
    assert end.value.value == State(3, "heard 3") and ledger.columns(0).t.tolist() == [1, 2, 3]


def test_charged_stops_when_the_ledger_refuses() -> None:
    events: list[Any] = []
    steps = charged(loop(Node(), State(0)), Ledger(events, refuses=2))
    next(steps)
    with pytest.raises(BudgetExceeded):
        steps.send("heard 1")
    assert events == [("charged", 1)]
    with pytest.raises(StopIteration):
        next(steps)


def test_charged_records_a_failed_computation() -> None:
    ledger = Ledger([])
    steps = charged(loop(Node(fails_at=1), State(0)), ledger)
    with pytest.raises(NotConverged):
        next(steps)
    assert ledger.aborted and ledger.columns(0).t.tolist() == [1]


def test_rounds_before_a_checkpoint_are_charged_again_once_each() -> None:
    ledger, node = Ledger([]), Node()
    charge_again(node, ledger, 2)
    assert ledger.columns(0).t.tolist() == [1, 2]
    assert all(what == "charges" for what, _ in node.asked), "nothing is computed"

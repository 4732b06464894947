"""The loop over the rounds of a node.

A node is an object that computes some sites of a run, in one process or on a cluster.

    for t in the rounds that remain:
        message = what the node computes from its rows and its state
        Store(charges, message, state)      store the message, and charge a ledger
        heard = Send(t, message)            only now, send the message
        state = the state after round t, from the message sent and the messages received

The loop does no I/O. It yields the steps `Store` and `Send`, and the caller carries them out (`drive`).
The node defines what `message`, `heard` and `state` contain. A charge is the privacy cost of a message; a
ledger adds up charges. Every message is charged before it is sent. So after a crash the ledger may contain
too much, but never too little. A site with a process of its own follows the same order, but its protocol also
has to resume after a crash (`sites/protocol`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from ..core.errors import NotConverged
from ..privacy.facts import RoundCharges
from ..privacy.ledger.memory import Ledger
from .base import Stepping


@dataclass(frozen=True, eq=False)
class Store:
    """Store this charge, this message and the state before this message. Only then may the message be sent.

    A message of None means that the computation failed. The failure is charged too, and the loop ends.
    """

    charges: RoundCharges
    message: Any | None
    state: Any

    @property
    def t(self) -> int:
        return self.charges.t


@dataclass(frozen=True, eq=False)
class Send:
    """Send the stored message. The caller replies with what the node received."""

    t: int
    message: Any
    state: Any


Loop = Generator[Store | Send, Any, Any]
"""A generator that runs the rounds of one node and returns the last state."""


def loop(node: Stepping, state: Any) -> Loop:
    """Rounds state.t + 1 .. T of a node, as a generator of `Store` and `Send` steps."""
    for t in range(state.t + 1, node.rounds + 1):
        message = node.message(state)
        yield Store(node.charges(t)._replace(aborted=message is None), message, state)
        if message is None:
            raise NotConverged(
                f"the solver failed in round {t}, and the run ends. This round is charged, none of its "
                "results were sent, and it is never repeated. Start a new run with a larger `tol`."
            )
        heard = yield Send(t, message, state)
        state = node.after(state, message, heard)
    return state


def stored(steps: Loop, keep: Callable[[Store], None]) -> Generator[Send, Any, Any]:
    """The loop `steps`, with `keep` called for every `Store`. The caller has to carry out only `Send`."""
    answer = None
    while True:
        try:
            effect = steps.send(answer)
        except StopIteration as end:
            return end.value
        if isinstance(effect, Send):
            answer = yield effect
        else:
            answer = None
            keep(effect)


def charged(steps: Loop, ledger: Ledger) -> Generator[Send, Any, Any]:
    """The loop `steps`, with every charge made to this ledger. The caller has to carry out only `Send`."""
    return stored(steps, lambda effect: ledger.charge_round(effect.charges))


def charge_again(node: Stepping, ledger: Ledger, upto: int) -> None:
    """Charge the rounds before a checkpoint to the new ledger of a resumed simulation."""
    for t in range(1, upto + 1):
        ledger.charge_round(node.charges(t))


def drive(steps: Loop, *, store: Callable[[Store], None], exchange: Callable[[Send], Any]) -> Any:
    """Run a loop to its end. `store` and `exchange` carry out its steps; `exchange` returns the answer."""
    sends = stored(steps, store)
    answer = None
    while True:
        try:
            effect = sends.send(answer)
        except StopIteration as end:
            return end.value
        answer = exchange(effect)

"""The loop of a node: compute, store the charge and the bytes, send, hear. The one place that orders them.

    for t in the rounds that are left:
        message = what the node computes from its rows and its state
        Store(charges, message, state)      a ledger's charge, or a site's transaction with its bytes
        heard = Send(t, message)            only now may the message go anywhere
        state = the state after round t, from what was sent and heard

The loop does no I/O. It yields effects, and its driver carries them out: immediately in one process and in a
cluster (`charged`), or on the disk and the network of a site. The node defines what `message`, `heard` and
`state` are. Every message is charged before it is sent: a crash over-counts, it never under-counts.
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
    """Store this charge, this message and the state before it.

    Nothing of the round may leave the site until they are stored.

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
    """Send the stored message; the answer is what was received."""

    t: int
    message: Any
    state: Any


Loop = Generator[Store | Send, Any, Any]
"""The rounds of one node; its return value is the last state."""


def loop(node: Stepping, state: Any, *, released: Any | None = None) -> Loop:
    """Rounds state.t + 1 .. T of a node, as effects.

    `released` is the message of round state.t + 1 if it was stored before a crash. It is sent again
    unchanged, and neither computed nor charged again.
    """
    for t in range(state.t + 1, node.rounds + 1):
        if released is None:
            message = node.message(state)
            yield Store(node.charges(t)._replace(aborted=message is None), message, state)
            if message is None:
                raise NotConverged(
                    f"the solver failed in round {t}, and the run ends: the round is charged, nothing of it "
                    "was sent, and it is never repeated. Start a new run with a larger `tol`."
                )
        else:
            message, released = released, None
        heard = yield Send(t, message, state)
        state = node.after(state, message, heard)
    return state


def stored(steps: Loop, keep: Callable[[Store], None]) -> Generator[Send, Any, Any]:
    """The same loop with each charge and message stored immediately: only `Send` is left to carry out."""
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
    """The same loop with every charge made immediately, on a ledger that answers immediately."""
    return stored(steps, lambda effect: ledger.charge_round(effect.charges))


def charge_again(node: Stepping, ledger: Ledger, upto: int) -> None:
    """Charge the rounds before a checkpoint to the new ledger of a resumed simulation."""
    for t in range(1, upto + 1):
        ledger.charge_round(node.charges(t))


def drive(steps: Loop, *, store: Callable[[Store], None], exchange: Callable[[Send], Any]) -> Any:
    """Run a loop to its end: `store` writes to disk, `exchange` sends and returns what was received."""
    sends = stored(steps, store)
    answer = None
    while True:
        try:
            effect = sends.send(answer)
        except StopIteration as end:
            return end.value
        answer = exchange(effect)

"""What a node and its driver agree on: a generator that yields releases and is sent what it hears.

    for t in the rounds that are left:
        message = what the node computes from its rows and its state
        release = Release(charge, message, state)
        commit(release)             a ledger's charge, or a site's transaction with the bytes it will send
        heard = yield release       only now may the message go anywhere
        state = the state after round t, from what was released and heard
    return state

The loop knows its method; what `message`, `heard` and `state` are is its own affair: a vector and the sum of
the neighbours', or whole numbers and the sum of everybody's. The driver knows where messages go. It sends
`release.message`, and may store `release.state`, the state after the round before: a loop begun with that
goes on as this one does. So one loop serves the laboratory and the open network (`admm/batch.py` is many of
them side by side). A message that was yielded has been committed: a crash over-counts, never under-counts.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Generic, NamedTuple, TypeVar

from .facts import Charge

Message = TypeVar("Message")
Heard = TypeVar("Heard")
State = TypeVar("State")


class Release(NamedTuple, Generic[Message, State]):
    """One round of one node: what it costs, what is sent, and the state after the round before."""

    charge: Charge
    message: Message
    state: State

    @property
    def t(self) -> int:
        """The round, 1, 2, ..."""
        return self.charge.t


Loop = Generator[Release[Message, State], Heard, State]
"""The rounds of one node."""


def drive(loop: Loop[Message, State, Heard], exchange: Callable[[Release[Message, State]], Heard]) -> State:
    """Run one loop to its end; `exchange` sends a release and returns what was heard. The last state."""
    release = next(loop)
    while True:
        heard = exchange(release)
        try:
            release = loop.send(heard)
        except StopIteration as end:
            last: State = end.value
            return last

"""A user's own method: the user writes the noisy message of a round, and proves the privacy cost of a round.

Between rounds a site keeps only the vectors that it last sent and received. It keeps nothing else that was
computed from its rows. So the cost of a run is the composition of the costs of its rounds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import ParameterError
from ..core.types import Array
from ..privacy.facts import RoundCharges, SiteFacts
from ..privacy.stated_cost import OWN, StatedCost
from ..rng import Streams, streams_of
from .admm.tables import loss_facts
from .base import UNSAID, Audience, Network, PreparedMethod, RunOptions, site_metrics, site_numbers


class OwnMethod(ABC):
    """Your own method for `simulate` and `train`: write `message`, and state its `cost`.

    Every certificate of such a run says 'not proven by taciturn'. A method without a `cost` is refused.
    """

    cost: StatedCost | None = None

    @abstractmethod
    def message(self, rows: Any, own: Array, heard: Array, t: int, generator: np.random.Generator) -> Array:
        """The noisy message of a site in round t: a vector of d numbers, which becomes the site's model.

        rows : the site's objective. `rows.value(F)` and `rows.gradient(F)` evaluate it at models F, an array
            (k, d); `rows.samples` is the number of rows, or of persons.
        own, heard : the site's last vector, and the mean of its neighbours' last vectors; zeros in round 1.
        generator : the source of all noise; it is secret in a real run, and seeded in a simulation.
        """

    def prepare(self, network: Network, rounds: int, options: RunOptions = UNSAID) -> PreparedOwn:
        options.refuse("tol", "start", "strict", "idealised", of="your own method")
        if not isinstance(self.cost, StatedCost):
            raise ParameterError(
                f"`cost` must be a StatedCost, which states the cost of one round for any one record; got "
                f"{type(self.cost).__name__}. A run can be certified only if this cost is stated."
            )
        return PreparedOwn(network, self, self.cost, rounds)


@dataclass(frozen=True, eq=False)
class OwnState:
    """The state of sites after t rounds: their last vectors, and sums of their neighbours' last vectors."""

    t: int
    sent: Array
    heard: Array


@dataclass(frozen=True, eq=False)
class OwnNode:
    """Some sites of a run of a user's own method. Arrays are (sites, repeats, d)."""

    sites: NDArray[np.int64]
    objectives: Sequence[Any]
    degrees: NDArray[np.int64]
    method: OwnMethod
    rounds: int
    streams: Streams

    def start(self, first: Array | None, heard: Array | None) -> OwnState:
        """The state before round 1: zeros, or the public start vectors `first`."""
        zeros = np.zeros((len(self.sites), 1, self.objectives[0].dimension)) if first is None else first
        return OwnState(0, zeros, zeros)

    def message(self, state: OwnState) -> Array:
        """The message of each site in each repeat."""
        t, sent = state.t + 1, np.empty(state.sent.shape)
        for i, r in np.ndindex(sent.shape[:2]):
            generator = self.streams.generator(repeat=r, site=int(self.sites[i]), purpose="noise", t=t)
            own, heard = state.sent[i, r].copy(), state.heard[i, r] / self.degrees[i]
            found = np.asarray(self.method.message(self.objectives[i], own, heard, t, generator))
            if found.shape != own.shape:
                raise ParameterError(
                    f"`message` must return an array of shape {own.shape}; got {found.shape}."
                )
            sent[i, r] = found
        return sent

    def charges(self, t: int) -> RoundCharges:
        """One release by each site; its cost is the `StatedCost` in the facts of the run."""
        return _charges(self.sites, t)

    def after(self, state: OwnState, message: Array, heard: Array) -> OwnState:
        return OwnState(state.t + 1, message, heard)

    def models(self, state: OwnState) -> Array:
        return state.sent

    def metrics(self, models: Array) -> tuple[Array, Array]:
        return site_metrics(self.objectives, models)


@dataclass(frozen=True, eq=False)
class PreparedOwn(PreparedMethod):
    """One run of a user's own method."""

    network: Network
    method: OwnMethod
    cost: StatedCost
    length: int

    @property
    def rounds(self) -> int:
        return self.length

    def hears(self, t: int) -> Audience:
        return "neighbours"

    def first(self, sites: Sequence[int], repeats: int, seed: int | None) -> Array:
        return np.broadcast_to(0.0, (len(sites), repeats, self.network.dimension))

    def nodes(
        self, objectives: Sequence[Any], cuts: Sequence[range], *, seed: int | None, repeats: int
    ) -> list[OwnNode]:
        numbers, degrees = site_numbers(self.network), np.array(self.network.degrees, dtype=np.int64)
        streams = streams_of(seed)
        return [
            OwnNode(numbers[at], objectives[at], degrees[at], self.method, self.rounds, streams)
            for at in (slice(own.start, own.stop) for own in cuts)
        ]

    def part(self, own: range) -> PreparedOwn:
        return replace(self, network=self.network.part(own))

    def charges(self, t: int) -> RoundCharges:
        return _charges(site_numbers(self.network), t)

    def site_facts(self) -> list[SiteFacts]:
        """The facts of each site, with constant schedules, because every round has the same cost."""
        return [replace(facts, dual_step=(1.0,), eta=(1.0,), scale=(1.0,)) for facts in super().site_facts()]

    def method_facts(self, *, simulated: bool) -> dict[str, Any]:
        return {"method": OWN, "noise": OWN, "loss": loss_facts(self.network.loss), "stated": self.cost}


def _charges(sites: NDArray[np.int64], t: int) -> RoundCharges:
    return RoundCharges(t, sites, np.ones(len(sites)), np.ones(len(sites)), None)

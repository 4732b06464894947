"""A node of its own for every site of a run: what every engine must repeat to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from taciturn.core.types import Array
from taciturn.methods.loop import Send, Store, loop
from taciturn.runtime.setup import Setup


def lone_nodes(setup: Setup) -> list[Any]:
    """One node for each site, made of what that site alone must know."""
    nodes = []
    for i in range(setup.graph.n):
        part = setup.prepared.part(range(i, i + 1))
        nodes += part.nodes([setup.problem.site(i)], [range(1)], seed=setup.seed, repeats=setup.repeats)
    return nodes


def oracle(setup: Setup) -> tuple[Array, list[tuple[int, int]]]:
    """((rounds, repeats, sites, d) of what the nodes released, the charges in order): one node at a time."""
    charged: list[tuple[int, int]] = []
    n, adjacency = setup.graph.n, setup.graph.sparse_adjacency
    first = setup.prepared.first(range(n), setup.repeats, setup.seed)
    assert first is not None

    def near(f: Array) -> Array:
        """What each site hears, (sites, repeats, d)."""
        return np.asarray(adjacency @ f.reshape(n, -1)).reshape(f.shape)

    def sent(steps: Any, answer: Any) -> Array:
        """The next message of a loop, (repeats, d)."""
        effect = steps.send(answer)
        assert isinstance(effect, Store)
        charged.extend((effect.t, charge.site) for charge in effect.charges.each())
        effect = next(steps)
        assert isinstance(effect, Send)
        return np.asarray(effect.message[0])

    heard = near(first)
    loops = [
        loop(node, node.start(first[i : i + 1], heard[i : i + 1])) for i, node in enumerate(lone_nodes(setup))
    ]
    released = []
    for t in range(setup.rounds):
        f = np.stack([sent(steps, heard[i : i + 1] if t else None) for i, steps in enumerate(loops)])
        heard = near(f)
        released.append(f.transpose(1, 0, 2))
    return np.stack(released), charged

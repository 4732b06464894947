"""The loops of all nodes of a run, one node at a time: what every engine must repeat to the last bit."""

from __future__ import annotations

import numpy as np

from taciturn.admm.node import Node, NodeState, loop
from taciturn.engines.setup import Setup
from taciturn.types import Array


def oracle(setup: Setup) -> tuple[Array, list[tuple[int, int]]]:
    """((rounds, repeats, sites, d) of what the loops released, the charges in order): one node at a time."""
    charged: list[tuple[int, int]] = []
    adjacency, f = setup.graph.sparse_adjacency, setup.start_vectors()
    heard = (adjacency @ f.reshape(len(f), -1)).reshape(f.shape)
    loops = [
        loop(
            Node(
                site=i,
                objective=setup.problem.site(i),
                degree=int(setup.graph.degrees[i]),
                tables=setup.tables.site(i),
                tol=setup.tol,
                streams=setup.streams(),
                repeats=setup.repeats,
                refresh=setup.refresh,
            ),
            NodeState.start(f[i], heard[i]),
            commit=lambda release: charged.append((release.t, release.charge.site)),
        )
        for i in range(setup.graph.n)
    ]
    released = []
    for t in range(setup.rounds):
        steps = [next(site) if t == 0 else site.send(heard[i]) for i, site in enumerate(loops)]
        f = np.stack([release.message for release in steps])
        heard = (adjacency @ f.reshape(len(f), -1)).reshape(f.shape)
        released.append(f.transpose(1, 0, 2))
    return np.stack(released), charged

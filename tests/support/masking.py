"""Pair keys for all sites of a small network."""

import hashlib

from taciturn.methods.sums.masks import PairKeys
from taciturn.methods.sums.pairs import PairGraph

RUN = b"run 1"


def all_keys(sites, connectivity=None, run=RUN):
    """One `PairKeys` per site; both ends of a pair hold the same key."""
    pairs = PairGraph(sites, connectivity or sites - 1)

    def key(i, j):
        return hashlib.sha256(repr(sorted((i, j))).encode()).digest()

    return [PairKeys(i, {j: key(i, j) for j in pairs.partners(i)}, run=run) for i in range(sites)]

"""A site whose solve gives up, restarted by force. Run as a script: FOLDER ROUND STARTS; prints JSON.

Each start is a forked process that drives the real rounds against neighbours who send zeros. The fault is put
in from out here: in round ROUND the solver raises, as it does where floats cannot certify its tolerance.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

import taciturn.admm.node as node_module
from support.sitework import PATH_OF_3, sites
from taciturn.errors import NotConverged, TaciturnError
from taciturn.rng import SecureStreams
from taciturn.sites.rounds.driver import Rounds, open_store
from taciturn.sites.rounds.prepare import make_ready

SECRET = "0.774 was reached"


class Wire:
    """Stands in for the exchange: nobody is missing, and no link ever changes."""

    links = 0

    def __init__(self, ready: Any) -> None:
        self.ready, self.session = ready, self

    def missing(self) -> list[str]:
        return []

    def seal(self, t: int, message: bytes) -> bytes:
        return bytes(self.ready.seal(t, message))


def live(ready: Any, folder: Path, failing: int) -> str:
    """One life of the site; the last line is what an operator reads."""
    draw, solve = SecureStreams.generator, node_module.minimise
    last = [0]

    def drawn(self: SecureStreams, **name: Any) -> Any:
        with (folder / "draws").open("a") as file:
            file.write(f"{name['t']} {name['purpose']}\n")
        last[0] = name["t"]
        return draw(self, **name)

    def solved(*args: Any, **options: Any) -> Any:
        if last[0] == failing:
            raise NotConverged(SECRET)
        return solve(*args, **options)

    SecureStreams.generator = drawn  # type: ignore[method-assign]
    node_module.minimise = solved
    try:
        with open_store(ready) as store:
            rounds = Rounds(ready, store, Wire(ready), lambda steps: None)  # type: ignore[arg-type]
            zeros = np.zeros((1, ready.site.job.dimension))
            rounds.hear = lambda release: zeros  # type: ignore[method-assign]
            rounds.run(store.resume())
    except TaciturnError as error:
        trail = [error, error.__context__, error.__cause__]
        return " | ".join(repr(link) for link in trail if link is not None)
    return "done"


def restarted(folder: Path, failing: int, starts: int) -> dict[str, Any]:
    output = {"output_noise": {"kind": "gaussian", "std": 1e-3}}
    ready = make_ready(sites(folder, PATH_OF_3, job={"seed": None, "tol": 1e-7}, site=output)[0])
    told = []
    for _ in range(starts):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(write, live(ready, folder, failing).encode())
            finally:
                os._exit(0)
        os.close(write)  # or a child that dies without a word would be waited for, for ever
        os.waitpid(child, 0)
        told.append(os.read(read, 10_000).decode())
    with open_store(ready) as store:
        charged = store.ledger.columns(0).t.tolist()
        aborted = store.ledger.aborted
    draws = [line.split() for line in (folder / "draws").read_text().splitlines()]
    return {"told": told, "charged": charged, "aborted": aborted, "draws": draws}


if __name__ == "__main__":
    print(json.dumps(restarted(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))

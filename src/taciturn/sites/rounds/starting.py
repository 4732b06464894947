"""Before a site goes on the network: is its run over, is its state the newest, and what had it said?"""

from __future__ import annotations

import os
import struct

from ...core.errors import Contradiction, RunOver, StateLost
from ..protocol.core import SiteSetup
from ..protocol.frames import decode, signed_with
from ..protocol.machine import SiteProtocol
from ..protocol.pads import RoundKeys
from ..state.high_water import HighWaterMark
from .charging import read_mark
from .evidence import find_proof, state_released
from .prepare import PreparedSite
from .store import SiteStore, unreadable_as

OWN_FRAMES = {"hello", "sign", "commit", "message", "done", "left"}  # records that are frames of this site


def recall(
    ready: PreparedSite, store: SiteStore, setup: SiteSetup, volatile: dict[str, bytes]
) -> SiteProtocol:
    """The protocol as it was left; what waits to be sent is sealed with the certificate of today."""
    records = store.records()
    with unreadable_as(store.path):
        for key in OWN_FRAMES & records.keys():
            frame = decode(records[key], largest=setup.largest)
            own = (frame.job, frame.sender) == (setup.job, setup.own)
            if not own or not signed_with(frame, frame.certificate):
                raise ValueError("not the frame that was kept")
            if frame.certificate != ready.identity.certificate:
                records[key] = ready.identity.seal(frame.content)
        return SiteProtocol(setup, records, volatile)


def without_secrets(protocol: SiteProtocol) -> dict[str, bytes]:
    """What the protocol of a job without masks would hold, had it not been stopped: which round it is in.

    Such a job has no secrets: whether its state may go on, the high-water mark says.
    """
    number, t = protocol.number, protocol.completed[1] + 1
    return {"secret": struct.pack("<I", number) + os.urandom(32), "keys": RoundKeys(number, t, {}).pack()}


def check_start(ready: PreparedSite, store: SiteStore, marks: HighWaterMark | None, *, newest: bool) -> bool:
    """A run that is over does not begin again, and a state below its mark only where its owner says so.

    Returns whether the state is the newest that there was, by its mark.
    """
    proof = find_proof(ready)
    if proof is not None:
        said = state_released(ready, store, proof[1].owner)
        raise Contradiction(
            f"{proof[1].owner} signed two frames that contradict each other; both are in {proof[0]}, for "
            f"anyone to check. {said}. The run has ended for all sites."
        )
    lost = next((body["round"] for body in store.charges if body.get("charge", {}).get("aborted")), None)
    if lost is not None:
        raise RunOver(
            f"the solver failed in round {lost}. The round is charged and is never repeated, so this run has "
            "ended; agree on a new job, with a larger `tol`, and a new `state` folder."
        )
    try:
        return read_mark(ready, store, marks, newest=newest)
    except StateLost as error:
        store.at_least = True
        raise StateLost(f"{state_released(ready, store, ready.site.name)}. {error}") from error

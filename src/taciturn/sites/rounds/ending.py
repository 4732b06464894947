"""The start and the end of a run.

Before a site connects, it checks whether its run is over and whether its state is the newest, and loads what
it has sent. Rounds belong to attempts: sequences of rounds with fixed members. If a member drops out, the
others start a new attempt. At the end all members of the last attempt have the same result, and each of them
writes it.
"""

from __future__ import annotations

import logging
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.errors import Contradiction, RunOver, StateLost
from ...core.files import reserve_descriptors, retry_for_descriptors
from ...core.types import Array
from ...privacy.sums import SumFacts
from ..protocol.core import SiteSetup
from ..protocol.events import Finished
from ..protocol.frames import decode, signed_with
from ..protocol.machine import SiteProtocol
from ..protocol.membership import Past
from ..protocol.pads import RoundKeys
from ..state.account import Account
from .charging import look_at_mark, read_mark
from .evidence import find_proof, state_released
from .prepare import PreparedSite
from .results import write_results
from .store import SiteStore, unreadable_as

log = logging.getLogger("taciturn.site")


@dataclass(frozen=True)
class SiteResult:
    """The result of a site; `reason` says why the run ended early, or which sites dropped out."""

    model: Array
    epsilon: float
    delta: float
    folder: Path
    reason: str = ""
    early: bool = False


def end_run(
    ready: PreparedSite,
    store: SiteStore,
    protocol: SiteProtocol,
    effect: Finished,
    *,
    account: Account | None,
) -> SiteResult | RunOver:
    """Write the result. If the run ended before there was a model, return an error that states the cost."""
    ended = _ended(effect, ready.site.job.names)
    if effect.early:
        store.end_early(_rest(protocol, ready.site.job.names))
        log.warning("the run ends after round %d of %d: %s", effect.rounds, ready.run.rounds, ended["reason"])
    if effect.early and effect.rounds < protocol.method.least:
        told = state_released(ready, store, str(ended["reason"]))
        return RunOver(f"the run ends before there is a model: {ended['reason']}. {told}.")
    model = protocol.method.result(effect.state, protocol.last_vectors())
    look_at_mark(store, account)  # a copy of this site may have changed the mark
    coordinates = protocol.method.coordinates(effect.state)
    certificate = retry_for_descriptors(
        lambda: write_results(ready, store, model, ended=ended or None, coordinates=coordinates)
    )
    if account is not None and store.charges:
        account.finish(store.id)
    facts = {"event": "done", "epsilon": certificate.epsilon, "delta": certificate.delta}
    log.info("the run is done; the results are written", extra={"facts": facts})
    reason = str(ended.get("reason", ""))
    return SiteResult(
        model, certificate.epsilon, certificate.delta, ready.site.state, reason, early=effect.early
    )


def _ended(effect: Finished, names: tuple[str, ...]) -> dict[str, Any]:
    """The last round, its sites and the reason; empty if all sites completed all rounds."""
    absent = [name for i, name in enumerate(names) if i not in effect.members]
    if not effect.early and not absent:
        return {}
    without = f", without {', '.join(absent)}" if absent else ""
    reason = (
        f"all remaining sites agreed to finish{without}" if effect.early else f"sites dropped out{without}"
    )
    return {"round": effect.rounds, "sites": [names[i] for i in effect.members], "reason": reason}


def _rest(protocol: SiteProtocol, names: tuple[str, ...]) -> tuple[SumFacts, ...]:
    """The planned but unreleased rounds of the last attempt; a certificate states them after an early end."""
    method, past = protocol.method, protocol.past
    last = past[max(past)] if past else Past(0, tuple(range(len(names))), 0, 1.0, 0)
    node = method.attempt(last.members, last.base, last.left)
    rounds = () if node is None else range(last.charged + 1, method.rounds + 1)
    return tuple(facts for t in rounds if (facts := node.sum_facts(t)) is not None)


OWN_FRAMES = {"hello", "sign", "commit", "message", "done", "left"}  # records of messages of this site


def recall(
    ready: PreparedSite, store: SiteStore, setup: SiteSetup, volatile: dict[str, bytes]
) -> SiteProtocol:
    """Load the protocol from the store. If this site has a new certificate, sign its messages again."""
    records = store.records()
    with unreadable_as(store.path):
        for key in OWN_FRAMES & records.keys():
            frame = decode(records[key], largest=setup.largest)
            own = (frame.job, frame.sender) == (setup.job, setup.own)
            if not own or not signed_with(frame, frame.certificate):
                raise ValueError("a stored frame is not of this job and site, or its signature is wrong")
            if frame.certificate != ready.identity.certificate:
                records[key] = ready.identity.seal(frame.content)
        return SiteProtocol(setup, records, volatile)


def without_secrets(protocol: SiteProtocol) -> dict[str, bytes]:
    """The volatile memory with which a job continues after a restart if no masks hide its messages.

    Such a job keeps no secrets. So the entries state the attempt and the round, with random bytes in place of
    a private key.
    """
    number, t = protocol.number, protocol.completed[1] + 1
    return {"secret": struct.pack("<I", number) + os.urandom(32), "keys": RoundKeys(number, t, {}).pack()}


def check_start(ready: PreparedSite, store: SiteStore, account: Account | None, *, newest: bool) -> bool:
    """Raise an error if the run has ended or must not continue; return whether the state is the newest.

    `read_mark` explains which states are refused, and what `newest` confirms.
    """
    reserve_descriptors()  # kept free for writing the results
    proof = find_proof(ready)
    if proof is not None:
        said = state_released(ready, store, proof[1].owner)
        raise Contradiction(
            f"{proof[1].owner} signed two messages (frames) that contradict each other. Both are in "
            f"{proof[0]}; anyone who has this file can check them. {said}. The run has ended for all sites."
        )
    if store.over is not None:
        raise Contradiction(f"this run has ended for this site: {store.over} Agree on a new job.")
    lost = next((body["round"] for body in store.charges if body.get("charge", {}).get("aborted")), None)
    if lost is not None:
        raise RunOver(
            f"the solver failed in round {lost}. The round is charged and is never repeated, so this run has "
            "ended; agree on a new job, with a larger `tol`, and a new `state` folder."
        )
    try:
        return read_mark(ready, store, account, newest=newest)
    except StateLost as error:
        store.at_least = True
        raise StateLost(f"{state_released(ready, store, ready.site.name)}. {error}") from error

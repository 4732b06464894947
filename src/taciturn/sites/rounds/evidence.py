"""Evidence: what a site does when the run must not go on, and what it then knows to have been released.

Two frames that contradict each other, both signed by one site, are written to the state folder and shown to
the neighbours, who check them and do the same: the run ends for everybody, with that site's name. A frame of
this site that only a neighbour knows of ends it for this site: its state was lost, put back from a backup, or
copied. Either way the site signs what it has really released, `stopped.json`, and no model is written; one
that was written a moment before, while neighbours still need this site, is deleted with its statement.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from ...diskfile import write_whole
from ...errors import Contradiction, SiteError, StateLost
from ...privacy.accounting.shown import rounded_up, shown_delta
from ...privacy.certificate.certificate import Certificate
from ...privacy.ledger.memory import MemoryLedger
from ..files.toml import about_files
from ..wire.form import contradict, rounds_of
from ..wire.frame import Frame, FrameRefused, decode
from ..wire.mailbox import Caught, Forgotten, Letter
from ..wire.trust import Trust
from .exchange import Exchange
from .prepare import Ready
from .results import CERTIFICATE, MODEL, SIGNED_AT, STATEMENT, read_text, sign_facts
from .results import STOPPED as STOPPED_FORMAT
from .store import SiteStore

FORMAT = "taciturn-proof/1"
STOPPED = "stopped.json"
STAY = 60.0  # seconds at most for the neighbours to show that they have the proof too
LARGEST, BRACKETS = 2**26, 4  # bytes of a proof, and what it has of [ and {

log = logging.getLogger("taciturn.site")


def stop_for(trouble: Caught | Forgotten, exchange: Exchange) -> NoReturn:
    """End the run: keep the evidence, state what was released, tell the neighbours, say why."""
    ready, own = exchange.ready, exchange.ready.site.name
    if isinstance(trouble, Forgotten):
        written = write_forgotten(ready, trouble)
        said = state_released(ready, exchange.store, trouble.letter.frame, str(trouble.holder), at_least=True)
        raise StateLost(
            f"{trouble.holder} holds a frame of this site, of {_round(trouble.letter.frame)}, that this site "
            f"does not know of: its `state` was lost, put back from a backup, or copied. {said}. Nothing "
            f"more is released; the frame is kept in {written.name}."
        )
    exchange.session.show_proof(trouble.first.data, trouble.second.data)  # before anybody goes on
    written = write_proof(ready.site.state, ready.site.job.name, trouble)
    for name in (MODEL, CERTIFICATE, STATEMENT):  # where it came to light only after the results were there
        (ready.site.state / name).unlink(missing_ok=True)
    told = trouble.first if trouble.second.frame.attempt else trouble.second  # a frame of the run itself
    mine = told.frame if trouble.owner == own else None
    said = state_released(ready, exchange.store, mine, trouble.owner)
    log.error("%s signed two frames that contradict each other: %s", trouble.owner, written)
    stay(exchange, trouble)
    whose = "this site itself, or a copy of it," if trouble.owner == own else trouble.owner
    raise Contradiction(
        f"{whose} signed two frames that contradict each other, of {_round(trouble.first.frame)}; both are "
        f"in {written}, for anyone to check. {said}. The run is over for everybody, and no model is written."
    )


def stay(exchange: Exchange, caught: Caught) -> None:
    """Show the proof to whoever asks until each neighbour but the culprit has it too; at most a minute."""
    site, session = exchange.ready.site, exchange.session
    end = time.monotonic() + min(STAY, site.file.patience)
    others = set(site.neighbours) - {caught.owner}
    while others - session.proved and time.monotonic() < end:
        exchange.mailbox.wait(0.5)
    time.sleep(0.2)  # for what is on its way


def write_proof(folder: Path, job: str, caught: Caught) -> Path:
    """Two frames that contradict each other, as a file that anyone can check."""
    rounds = rounds_of(caught.first.frame, caught.second.frame)
    facts = {
        "format": FORMAT,
        "site": caught.owner,
        "job": {"name": job, "sha256": caught.first.frame.job.hex()},
        "rounds": list(rounds),
        "frames": [caught.first.data.hex(), caught.second.data.hex()],
    }
    path = folder / f"proof-{caught.owner}-{max(rounds)}.json"
    return write_whole(path, json.dumps(facts, indent=1) + "\n")


def find_proof(ready: Ready) -> Caught | None:
    """A proof that this site holds from before: its run is over."""
    for path in sorted(ready.site.state.glob("proof-*.json")):
        caught = read_proof(path, ready.trust)
        if caught.first.frame.job == ready.site.job.hash:
            return caught
    return None


@about_files
def read_proof(path: Path, trust: Trust) -> Caught:
    """Check a proof: two frames of one job, signed by the site it names, that contradict each other."""
    try:
        text = read_text(path, LARGEST, "a proof")
        if text.count("[") + text.count("{") > BRACKETS:  # before it takes memory
            raise ValueError("brackets")
        facts = json.loads(text)
        name, (first, second) = str(facts["site"]), [bytes.fromhex(text) for text in facts["frames"]]
        letters = [Letter(data, decode(data, largest=len(data))) for data in (first, second)]
        for letter in letters:
            trust.check(letter.frame, name, ever=True)
    except FrameRefused as error:
        raise SiteError(f"{path}: proves nothing: {error}.") from error
    except SiteError:
        raise
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise SiteError(f"{path}: not a proof.") from error
    if not contradict(letters[0].frame, letters[1].frame):
        raise SiteError(f"{path}: proves nothing: the two frames do not contradict each other.")
    return Caught(name, letters[0], letters[1])


def write_forgotten(ready: Ready, forgotten: Forgotten) -> Path:
    """The frame of this site that a neighbour holds, as it came."""
    frame = forgotten.letter.frame
    return write_whole(ready.site.state / f"recalled-{frame.attempt}.{frame.t}.bin", forgotten.letter.data)


def rounds_released(store: SiteStore[Any], rounds: int, found: Frame | None) -> list[int]:
    """The rounds that left this site, each as often as two frames of it may have.

    With a frame that the outbox does not hold, all rounds up to it have left. Where the outbox holds another
    frame of that round, two stories were told, from a round on that nobody knows: at worst from the first.
    """
    own = sorted(t for t in store.charged() if t <= rounds)
    if found is None or found.t < 1:
        return own
    told = list(range(1, min(found.t, rounds) + 1))
    if store.frame(found.t) is None:
        return sorted({*own, *told})
    return sorted([*own, *told])


def cost_of(ready: Ready, released: Sequence[int]) -> float:
    """epsilon of these releases together, a round that left twice counted twice.

    Two messages of one masked round have the same masks, which then hide nothing: as if all others colluded.
    """
    if not released:
        return 0.0
    sums = tuple(
        replace(ready.run.sums[t - 1], t=k) for k, t in enumerate(released, start=1) if ready.run.masked
    )
    run = replace(ready.run, rounds=len(released), sums=sums)
    ledger = MemoryLedger(run, [ready.facts])
    for k, t in enumerate(released, start=1):
        ledger.charge(ready.node.charge_of(t)._replace(t=k))
    certificate = Certificate.from_ledger(ledger, delta=ready.site.job.delta)
    if ready.run.masked and len(set(released)) < len(released):
        return certificate.epsilon_against(None)
    return certificate.epsilon


def state_released(
    ready: Ready, store: SiteStore[Any], found: Frame | None, cause: str, *, at_least: bool = False
) -> str:
    """Sign what was really released, and say it.

    `at_least` where that is known from others alone: what came to them and was not on their disks yet when
    they lost power nobody knows of, two rounds at most.
    """
    released = rounds_released(store, ready.site.job.rounds, found)
    epsilon = cost_of(ready, released)
    facts: dict[str, Any] = {
        "format": STOPPED_FORMAT,
        "site": ready.site.name,
        "job": {"name": ready.site.job.name, "sha256": ready.site.job.hash.hex()},
        "because_of": cause,
        "released": released,
        "at_least": at_least,
        "epsilon": epsilon,
        "delta": ready.site.job.delta,
        "simulated": ready.site.job.simulated,
        "files": {},
        "signed_at": time.strftime(SIGNED_AT, time.gmtime()),
    }
    write_whole(ready.site.state / STOPPED, json.dumps(sign_facts(ready, facts), indent=1) + "\n")
    times = f"{len(released)} releases" if len(released) != 1 else "1 release"
    at = shown_delta(ready.site.job.delta)
    cost = f"epsilon {rounded_up(epsilon)} at delta {at}" if released else "nothing spent"
    return f"What has left this site: {'at least ' if at_least and released else ''}{times}, {cost}"


def _round(frame: Frame) -> str:
    return "the opening" if frame.t < 1 else f"round {frame.t}"

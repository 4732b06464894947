"""What a site writes when a run must stop: a proof of a contradiction, and a report of its own releases.

If a site signed two frames (messages) that contradict each other, every site that receives both writes them
to its state folder and shows them to its neighbours. The run ends for all sites, and the error names the
culprit. Each site states what it has actually released, in the signed file `stopped.json`, and writes no
model. A site that already has its result, and keeps running only for its neighbours, deletes the result.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...core.errors import SiteError
from ...core.files import write_whole
from ...core.formatting import format_cost, format_delta
from ...jobfile.toml_files import about_files
from ...privacy.certificate.certificate import Certificate
from ...privacy.ledger.memory import MemoryLedger
from ..protocol.frames import FrameRefused, SignedFrame, contradict, decode
from ..wire.trust import Trust
from .prepare import PreparedSite
from .results import SIGNED_AT, read_text, sign_facts
from .results import STOPPED as STOPPED_FORMAT
from .store import CERTIFICATE, MODEL, RESULT, STATEMENT, SiteStore

FORMAT = "taciturn-proof/2"
STOPPED = "stopped.json"
LARGEST, BRACKETS = 2**26, 4  # the most bytes of a proof, and the most characters [ and { in it


@dataclass(frozen=True)
class Equivocation:
    """Two frames of `owner` that contradict each other."""

    owner: str
    frames: tuple[SignedFrame, SignedFrame]

    @property
    def t(self) -> int:
        """The later round of the two frames; 0 for frames about the end of the run."""
        return max(frame.t for frame in self.frames)


def write_proof(folder: Path, job: str, owner: str, data: Sequence[bytes]) -> Path:
    """Write two contradictory frames to a file that anyone can check."""
    first, second = (decode(entry, largest=len(entry)) for entry in data)
    t = max(first.t, second.t)
    facts = {
        "format": FORMAT,
        "site": owner,
        "job": {"name": job, "sha256": first.job.hex()},
        "round": t,
        "frames": [entry.hex() for entry in data],
    }
    path = folder / f"proof-{owner}-{first.attempt}.{t}.json"
    return write_whole(path, json.dumps(facts, indent=1) + "\n")


def find_proof(ready: PreparedSite) -> tuple[Path, Equivocation] | None:
    """A proof of a contradiction in this job, which ended the run; None if no process has stored one."""
    for path in sorted(ready.site.state.glob("proof-*.json")):
        caught = read_proof(path, ready.trust)
        if caught.frames[0].job == ready.site.job.hash:
            return path, caught
    return None


@about_files
def read_proof(path: Path, trust: Trust) -> Equivocation:
    """Read and check a proof: two frames that contradict each other, signed by the site that it names."""
    try:
        text = read_text(path, LARGEST, "a proof")
        if text.count("[") + text.count("{") > BRACKETS:  # refuse deep nesting before parsing
            raise ValueError("brackets")  # becomes a `SiteError` below
        facts = json.loads(text)
        name, (one, other) = str(facts["site"]), [bytes.fromhex(text) for text in facts["frames"]]
        first, second = (decode(data, largest=len(data)) for data in (one, other))
        for frame in (first, second):
            trust.check(frame, name, ever=True)
    except FrameRefused as error:
        raise SiteError(f"{path} proves nothing: {error}.") from error
    except SiteError:
        raise
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise SiteError(f"{path} is not a proof.") from error
    if not contradict(first, second):
        raise SiteError(f"{path} proves nothing: its two messages (frames) do not contradict each other.")
    return Equivocation(name, (first, second))


def take_back_results(folder: Path) -> None:
    """Delete the results (model or answer, certificate, statement), which must not remain after the stop."""
    for name in (MODEL, RESULT, CERTIFICATE, STATEMENT):
        (folder / name).unlink(missing_ok=True)


def cost_of(ready: PreparedSite, released: Sequence[int]) -> float:
    """The joint epsilon of releases in these rounds; a round that was released twice counts twice."""
    if not released:
        return 0.0
    run, charges = ready.prepared.released(ready.run, released)
    # `released` may contain a round twice, but planned schedules have each round once: leave them out
    unplanned = replace(ready.facts, eta=(), scale=(), output_scale=())
    ledger = MemoryLedger(run, [unplanned])
    for charge in charges:
        ledger.charge(charge)
    return Certificate.from_ledger(ledger, delta=ready.site.job.delta).charged_epsilon


def state_released(ready: PreparedSite, store: SiteStore, cause: str, *, twice: int | None = None) -> str:
    """Write a signed report of what this site has actually released, and return its content as text.

    twice : a round in which this site signed two frames; 0 for the end of the run. A copy of the site may
        have sent every round up to this one, so each of them counts twice, and the figures are lower bounds.
    """
    released, at_least = store.rounds, store.at_least or twice is not None
    if twice is not None:
        last = min(twice or ready.site.job.rounds, ready.site.job.rounds)
        released = sorted([*released, *range(1, last + 1)])
        epsilon = cost_of(ready, released)
    else:
        certificate = Certificate.from_ledger(store.ledger, delta=ready.site.job.delta)
        epsilon = certificate.charged_epsilon if released else 0.0
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
    at = format_delta(ready.site.job.delta)
    cost = f"epsilon {format_cost(epsilon)} at delta {at}" if released else "nothing spent"
    return f"This site has made {'at least ' if at_least and released else ''}{times}: {cost}"

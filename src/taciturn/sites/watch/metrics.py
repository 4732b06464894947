"""The metrics and the health of a running site, which its process serves to a monitoring system over HTTP.

The metrics have the text format of Prometheus. No library is needed to write a dozen numbers.
"""

from __future__ import annotations

import datetime
import json
import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from ...core.formatting import format_at_least, format_cost
from ..rounds.driver import SiteDriver
from ..rounds.waiting import SAY
from ..wire.whereabouts import seen
from .serving import JSON, TEXT, Answer, Pages, parse_place, read_token, serving
from .status import Status, pages, read_status

DAY = datetime.timedelta(days=1)
STRANGER = "a stranger"  # all unknown senders are counted under this name, so that they cannot add names


@dataclass(frozen=True)
class Live:
    """Facts that only the running process knows; the state file does not contain them.

    links : for every neighbour, and for the relay, whether it is connected.
    waits : the sites that this site waits for, and for how many seconds it has waited.
    refused : the number of refusals for each sender and kind.
    """

    links: dict[str, bool]
    waits: dict[str, float]
    refused: dict[tuple[str, str], int]
    certificate_days: float
    descriptors: int
    most_descriptors: int

    @property
    def healthy(self) -> bool:
        """Whether this site has waited less than `SAY` seconds for each site that it waits for."""
        return all(seconds < SAY for seconds in self.waits.values())


def live(driver: SiteDriver) -> Live:
    """The current facts of a running site."""
    site, links = driver.ready.site, driver.links
    network, connected = seen(driver.room.whereabouts), links.connected()
    own = network.of(site.name)
    refused: Counter[tuple[str, str]] = Counter()
    for (sender, kind), count in links.refusals.counts().items():
        refused[sender if sender in site.job.names else STRANGER, kind] += count
    left = driver.ready.trust.ends(driver.ready.identity.certificate) - datetime.datetime.now(datetime.UTC)
    relay = [] if site.job.relay is None else [site.job.relay.name]
    return Live(
        links={name: name in connected for name in (*site.neighbours, *relay)},
        waits={name: max(0.0, time.time() - network.since) for name in (own.waits_for if own else ())},
        refused=dict(refused),
        certificate_days=left / DAY,
        descriptors=_descriptors(),
        most_descriptors=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    )


def prometheus(status: Status, now: Live) -> str:
    """The metrics as text for Prometheus. Spent epsilon is rounded up, and remaining epsilon down."""
    lines: list[str] = []
    for name, kind, words, values in _families(status, now):
        lines += [f"# HELP taciturn_{name} {words}", f"# TYPE taciturn_{name} {kind}"]
        for labels, value in values:
            inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
            lines.append(f"taciturn_{name}{{{inside}}} {value!r}")
    return "\n".join(lines) + "\n"


Family = tuple[str, str, str, list[tuple[dict[str, str], float]]]


def _families(status: Status, now: Live) -> Iterator[Family]:
    me = {"job": status.job, "site": status.site}

    def one(name: str, value: float, words: str) -> Family:
        return name, "gauge", words, [(me, float(value))]

    yield one("rounds", status.rounds, "Rounds of the job.")
    yield one("rounds_completed", status.completed, "Rounds that are complete at this site.")
    yield one("rounds_released", status.released, "Rounds that this site has charged and released.")
    yield one("finished", int(status.finished), "1 once the results are written.")
    yield one("epsilon_spent", float(format_cost(status.epsilon)), "Epsilon spent so far, rounded up.")
    yield one(
        "epsilon_left", float(format_at_least(status.left)), "Epsilon left of the budget, rounded down."
    )
    yield one("delta", status.delta, "The delta for which epsilon is computed.")
    yield one("certificate_days_left", now.certificate_days, "Days until this site's certificate expires.")
    yield one("descriptors", now.descriptors, "Open file descriptors of the process.")
    yield one("descriptors_limit", now.most_descriptors, "Limit of open file descriptors.")
    waits = [({**me, "for": name}, seconds) for name, seconds in now.waits.items()]
    yield "waiting_seconds", "gauge", "Seconds of waiting for a message of another site.", waits
    holds = [({**me, "by": name}, 1.0) for name in status.network.blockers]
    yield "held_up", "gauge", "1 for each site that delays this site, as neighbours report.", holds
    links = [({**me, "to": name}, float(up)) for name, up in now.links.items()]
    yield "link_up", "gauge", "1 if a neighbour, or the relay, is connected with its certificate.", links
    refused = [({**me, "from": who, "kind": kind}, float(n)) for (who, kind), n in now.refused.items()]
    yield "refusals_total", "counter", "Refused frames and connections.", refused


def health(status: Status, now: Live) -> Answer:
    """Answer with code 200, or with 503 once this site has waited `SAY` seconds for another site."""
    facts = {
        "healthy": now.healthy,
        "round": status.completed,
        "rounds": status.rounds,
        "finished": status.finished,
        "waiting_for": {name: round(seconds, 1) for name, seconds in now.waits.items()},
        "held_up_by": list(status.network.blockers),
    }
    return Answer(200 if now.healthy else 503, JSON, json.dumps(facts) + "\n")


def watched(
    place: str | None, token_file: Path | None = None
) -> Callable[[SiteDriver], AbstractContextManager[None]] | None:
    """Make the argument `show` of `run_site`, which serves the pages at `place`; None if `place` is None."""
    if place is None:
        return None
    token = None if token_file is None else read_token(token_file)
    parse_place(place, token)  # refuses a wrong place before the site connects
    return lambda driver: serving(_live_pages(driver), place, driver.ready.site.folder, token)


def _live_pages(driver: SiteDriver) -> Pages:
    def read() -> Status:
        return read_status(driver.ready.site, seen(driver.room.whereabouts, driver.room.heard))

    return {
        **pages(read),
        "/metrics": lambda: Answer(200, f"{TEXT}; version=0.0.4", prometheus(read(), live(driver))),
        "/health": lambda: health(read(), live(driver)),
    }


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

"""A site that is killed between charge, outbox and wire. Run as a script; prints the sent messages as JSON.

    python crashing_site.py FOLDER points         kill -9 at each point of each round, once per fresh folder
    python crashing_site.py FOLDER random SEED    kill -9 from outside at random moments, until it is done
    python crashing_site.py FOLDER careless       `points`, for a site that releases before it charges

Children are forked, so that one start of the interpreter serves many deaths.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from taciturn.core.errors import LedgerError
from taciturn.privacy.facts import Charge, RunFacts, SiteFacts
from taciturn.privacy.ledger.disk import SqliteLedger
from taciturn.privacy.loss_facts import LossFacts

ROUNDS = 4
RUN = RunFacts(
    "penalty",
    "norm",
    LossFacts("logistic", 1.0, 0.25),
    3,
    ROUNDS,
    105,
    1750.0,
    0.0,
    simulated=False,
    where="folders",
)
SITE = SiteFacts(0, 9044, 2, (0.5,))
POINTS = 5  # places in a round where it may die


def live(folder: Path, point: Callable[[], None], careless: bool = False) -> None:
    """One life of the site: it resumes from its file, and dies when `point` says so."""
    with SqliteLedger(folder / "state.sqlite", RUN, [SITE]) as ledger:
        with ledger.transaction() as db:
            db.execute("CREATE TABLE IF NOT EXISTS outbox (t INTEGER PRIMARY KEY, frame TEXT)")
        for t in range(1, ROUNDS + 1):
            sent = db.execute("SELECT frame FROM outbox WHERE t = ?", (t,)).fetchone()
            if sent is None:
                point()
                frame = os.urandom(8).hex()  # stands for a minimiser with fresh noise
                if careless:
                    release(folder, t, frame)
                    point()
                with ledger.transaction():
                    ledger.charge(Charge(0, t, 0.5, 3.0))
                    point()
                    db.execute("INSERT INTO outbox VALUES (?, ?)", (t, frame))
                    point()
                point()
            else:
                frame = sent[0]
            release(folder, t, frame)
            point()


def release(folder: Path, t: int, frame: str) -> None:
    """What the neighbours see, for good."""
    with open(folder / "wire", "a") as wire:
        wire.write(f"{t} {frame}\n")
        wire.flush()
        os.fsync(wire.fileno())


def forked(task: Callable[[], None]) -> int:
    """The number of the child that does the task."""
    child = os.fork()
    if child == 0:
        try:
            task()
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
        os._exit(0)
    return child


def ended(child: int) -> str:
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return f"exit {os.WEXITSTATUS(status)}"


def death_at(number: int) -> Callable[[], None]:
    count = itertools.count()

    def point() -> None:
        if next(count) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return point


def report(folder: Path) -> dict[str, Any]:
    """What was charged and what was seen, at this moment."""
    wire = folder / "wire"
    seen = [line.split() for line in wire.read_text().splitlines()] if wire.exists() else []
    return {"charged": charged(folder / "state.sqlite"), "seen": [[int(t), frame] for t, frame in seen]}


def charged(path: Path) -> list[int]:
    """The rounds in the ledger; none if it died before there was one."""
    if not path.exists():
        return []
    try:
        with SqliteLedger(path, readonly=True) as ledger:
            return list(ledger.columns(0).t.tolist())
    except LedgerError as error:
        if "no ledger here yet" not in str(error):
            raise
        return []


def at_every_point(folder: Path, careless: bool) -> list[dict[str, Any]]:
    lives = []
    for number in range(ROUNDS * POINTS):
        place = folder / str(number)
        place.mkdir()
        first = ended(forked(lambda p=place, n=number: live(p, death_at(n), careless)))  # type: ignore[misc]
        after = report(place)
        second = ended(forked(lambda p=place: live(p, death_at(-1), careless)))  # type: ignore[misc]
        lives.append({"ends": [first, second], "after": [after, report(place)]})
    return lives


def slowly(stop: float) -> Callable[[], None]:
    """A point takes a moment; at the one with number `stop` the site stands still until it is killed."""
    count = itertools.count()
    return lambda: time.sleep(0.001 if next(count) < stop else 3600.0)


def at_random(folder: Path, seed: int) -> list[dict[str, Any]]:
    """The first five lives come to no end, however late they are killed."""
    rng, ends, after = random.Random(seed), [], []
    while "exit 0" not in ends:
        stop = rng.randrange(3) if len(ends) < 5 else float("inf")
        child = forked(lambda stop=stop: live(folder, slowly(stop)))  # type: ignore[misc]
        patience = 0.002 * 1.1 ** len(ends) * rng.random()
        time.sleep(patience)
        os.kill(child, signal.SIGKILL)  # not reaped yet, so the number is still its own
        ends.append(ended(child))
        after.append(report(folder))
    return [{"ends": ends, "after": after}]


if __name__ == "__main__":
    where, what = Path(sys.argv[1]), sys.argv[2]
    result = (
        at_random(where, int(sys.argv[3])) if what == "random" else at_every_point(where, what == "careless")
    )
    print(json.dumps(result))

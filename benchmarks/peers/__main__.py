"""`python -m benchmarks.peers`: compare taciturn with other packages (peers), and write docs/compared.md.

    python -m benchmarks.peers [--only NAME] [--section NAME] [--again] [--results FOLDER] [--out docs]

The results folder keeps all results, and a second call continues from them. With `--again`, a call first
deletes the results that it measures again. The page says in how many calls its results were measured; to
measure everything in one call, start with an empty results folder. The page is written to docs only after
every section of every peer was tried; until then it is written to the results folder. Results of another
version of a peer, or of another commit of taciturn, are measured again.
The command needs root, for network namespaces with only loopback, and Debian's openmpi-bin for disropt.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from taciturn import __version__
from taciturn.objective import one_blas_thread

from .page import write_page
from .pins import PINS, Environment, environment
from .results import OURS, Finding, begin, end, forget, obtain, read, read_all, state_of
from .running.sandbox import refusal
from .sections import counters, faults, locks, privacy, solving, work
from .whole import lacking

FEDERATED = ("flwr", "nvflare", "appfl")
Step = tuple[str, str, Callable[[], Any]]
_ROOT = Path(__file__).resolve().parents[2]
DOCS = _ROOT / "docs"


def steps(peer: str, env: Environment, base: Path, kept: Path) -> Iterator[Step]:
    """The sections in which a peer takes part."""
    if peer in FEDERATED:
        yield peer, "work", partial(work.measure, peer, env, base)
    if peer == "flwr":
        yield peer, "privacy", partial(privacy.measure_flower, env, base)
    if peer == "appfl":
        yield peer, "privacy", partial(privacy.measure_appfl, env, base)
    if peer in FEDERATED:
        for what in ("kill", "stranger", "late"):
            yield peer, what, partial(faults.measure, peer, what, env, base, kept)
        yield peer, "budget", partial(counters.measure, peer, env, base)
    if peer == "nvflare":
        yield peer, "strict", partial(faults.measure, peer, "strict", env, base, kept)
    if peer in locks.GUARDED:
        yield peer, "guarded", partial(locks.measure, peer, env, base, kept)
    if peer == "diffprivlib":
        yield peer, "work", partial(work.measure_pooled, env, base)
        yield peer, "privacy", partial(privacy.measure_diffprivlib, env, base)
    if peer == "disropt":
        yield peer, "solving", partial(solving.measure, env, base)


def our_steps(base: Path) -> Iterator[Step]:
    """The sections of taciturn: all of them."""
    yield OURS, "work", partial(work.measure_ours, "masked", base)
    yield OURS, "workpenalty", partial(work.measure_ours, "penalty", base)
    yield OURS, "workopen", work.measure_open
    yield OURS, "faults", partial(faults.measure_ours, base)
    yield OURS, "privacy", privacy.measure_ours
    yield OURS, "solving", solving.measure_ours


def expected() -> dict[str, tuple[str, ...]]:
    """The names of the sections of each package, taciturn first."""
    nowhere = Path()
    todo = {OURS: our_steps(nowhere)} | {
        peer: steps(peer, Environment(peer, None, "", 0.0), nowhere, nowhere) for peer in PINS
    }
    return {peer: tuple(section for _, section, _ in sections) for peer, sections in todo.items()}


def main() -> None:
    """Measure everything that has no result yet, then write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--only", action="append", choices=(OURS, *PINS), help="only this; can be repeated")
    names = dict.fromkeys(section for sections in expected().values() for section in sections)
    parser.add_argument("--section", choices=tuple(names), help="this section only")
    parser.add_argument("--again", action="store_true", help="delete earlier results and measure again")
    parser.add_argument("--results", type=Path, default=_ROOT / "build" / "peers")
    parser.add_argument("--out", type=Path, default=DOCS)
    options = parser.parse_args()
    why = refusal()
    if why is not None:
        sys.exit(f"python -m benchmarks.peers {why}")
    base, kept = options.results.resolve() / "runs", options.results.resolve() / "results"
    commit = state_of(_ROOT)
    begin(kept, __version__, commit)
    with one_blas_thread():
        for peer in options.only or (OURS, *PINS):
            if options.again:
                forget(kept, peer, options.section)
            _measure(peer, base, kept, options.section, commit)
    end(kept)
    shutil.rmtree(base, ignore_errors=True)
    publish(read_all(kept), options.out.resolve(), options.results.resolve())


def publish(findings: list[Finding], out: Path, results: Path) -> None:
    """Write the page: to docs if all results are there, else to the results folder."""
    lacks = lacking(findings, expected()) if out == DOCS else []
    if lacks:
        print(f"the page is in the results folder, and docs are unchanged: {'; '.join(lacks)}")
        out = results
    print(write_page(findings, out))


def _measure(peer: str, base: Path, kept: Path, only: str | None, commit: str) -> None:
    if peer == OURS:
        version, error, todo = __version__, None, our_steps(base)
    else:
        env = environment(peer)
        version, error, todo = env.version, env.error, steps(peer, env, base, kept)
        if env.python is not None:
            note_packages(kept, peer, version, list(env.packages), commit)
    for name, section, measure in todo:
        if only not in (None, section):
            continue
        print(f"{_clock()} {name:12} {section:12} ...", flush=True)
        found = obtain(kept, name, section, version, measure, error, commit)
        print(
            f"{_clock()} {name:12} {section:12} load {found.load:4.1f}  {found.error or 'done'}", flush=True
        )


def note_packages(kept: Path, peer: str, version: str, installed: list[str], commit: str) -> None:
    """Store the list of packages for compared.json; results with other packages are deleted."""
    known = read(kept / f"{peer}-packages.json")
    if known is not None and known.result != installed:
        forget(kept, peer, None)
    obtain(kept, peer, "packages", version, lambda: installed, commit=commit)


def _clock() -> str:
    return time.strftime("%H:%M:%S")


if __name__ == "__main__":
    main()

"""docs/compared.md and compared.json, from the findings alone."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from .cells import Found, not_installed, peers_in, version_of
from .results import OURS, RUN, Finding
from .tables import (
    faults_table,
    privacy_table,
    solving_table,
    summary,
    work_notes,
    work_table,
)
from .words import (
    AT_LEAST,
    EXPECTED,
    FAULTS,
    FLARE_BACK,
    NAMES,
    PARAGRAPHS,
    PRIVACY,
    SOLVING,
    SUMMARY,
    WEAKER,
    WORK,
)

IDLE = 0.7  # below this load, the machine did no other work


def write_page(findings: Iterable[Finding], out: Path) -> Path:
    """Write both files; return the path of the page."""
    found = by_section(findings)
    out.mkdir(parents=True, exist_ok=True)
    kept = [asdict(entry) for _, entry in sorted(found.items())]
    (out / "compared.json").write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    path = out / "compared.md"
    path.write_text(page(found), encoding="utf-8")
    return path


def by_section(findings: Iterable[Finding]) -> Found:
    """The findings, keyed by peer and section."""
    return {(entry.peer, entry.section): entry for entry in findings}


def page(found: Found) -> str:
    """The whole page."""
    parts = [
        "# Compared with other packages",
        "After this page you know when to choose another package. Each package does the same work on one "
        "machine, set up as its own guide shows: logistic regression on Adult's 30,162 training rows, "
        "distributed evenly over five sites.",
        summary(found),
        SUMMARY,
        how(found),
        *paragraphs(found),
        WEAKER,
        "## The work",
        *told(WORK),
        work_table(found),
        work_notes(found),
        "## Privacy",
        *told(PRIVACY + ((AT_LEAST,) if "at least" in privacy_table(found) else ())),
        privacy_table(found),
        "## Faults",
        *told(FAULTS),
        faults_table(found),
        FLARE_BACK if ("nvflare", "strict") in found else "",
        "## Solving",
        SOLVING,
        solving_table(found),
        *failures(found),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def how(found: Found) -> str:
    """A paragraph about the run: its dates, the machine and its load at the start, and the versions."""
    versions = ", ".join(f"{NAMES[peer]} {version_of(found, peer)}".strip() for peer in peers_in(found))
    cores = max(entry.cores for entry in found.values())
    run = found.get((OURS, RUN))
    if run is None:
        dates = " and ".join(sorted({entry.date for entry in found.values()}))
        when, load = f"parts of runs, {dates}", max(entry.load for entry in found.values())
    else:
        facts = run.result
        runs = "one run" if facts["calls"] == 1 else f"{facts['calls']} runs"
        when = f"{runs}, begun {facts['begun']} and ended {facts['ended']} UTC, {facts['python']}"
        load = facts["load"]
    busy = "" if load < IDLE else ", due to other work: CPU seconds are more reliable than wall-clock seconds"
    return (
        f"`python -m benchmarks.peers` writes this page ({when}). The machine had {cores} cores, and a load "
        f"of {load:.1f} at the start{busy}. Versions: {versions}. Every package ran in a network namespace "
        "that has only loopback, with telemetry and update checks switched off."
    )


def told(words: tuple[str, ...]) -> list[str]:
    """The introduction of a section, and the list that explains the words of its table."""
    first, *meanings = words
    return [first, "\n".join(meanings)]


def paragraphs(found: Found) -> list[str]:
    """One paragraph for each peer that was run."""
    return [f"**{NAMES[peer]}** {PARAGRAPHS[peer]}" for peer in peers_in(found) if peer in PARAGRAPHS]


def failures(found: Found) -> list[str]:
    """A section about everything that failed or is not measured yet."""
    skipped = {peer: why for peer in peers_in(found) if (why := not_installed(found, peer))}
    lines = [f"- {NAMES[peer]}: not installed: {why}" for peer, why in skipped.items()] + [
        f"- {NAMES[peer]}, {section}: {entry.error}"
        for (peer, section), entry in sorted(found.items())
        if entry.error is not None and peer not in skipped
    ]
    for peer, sections in EXPECTED.items():
        missing = [section for section in sections if (peer, section) not in found]
        if missing:
            lines.append(
                f"- {NAMES[peer]}, {', '.join(missing)}: not measured yet; run the same command again."
            )
    return ["## What did not run", "\n".join(lines)] if lines else []

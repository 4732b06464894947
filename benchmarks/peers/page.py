"""docs/compared.md and compared.json, and the five rows of the README, from the findings alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from taciturn.privacy.accounting.shown import rounded_up

from .results import OURS, Finding
from .words import BUDGET, EXPECTED, NAMES, PARAGRAPHS, TLS, WEAKER

Found = Mapping[tuple[str, str], Finding]
Show = Callable[[dict[str, Any]], str]
_NONE = "–"
MOST_ROUNDS = 30  # that section 2 tries for a peer


def write_page(findings: Iterable[Finding], out: Path) -> Path:
    """Both files; the path of the page."""
    found = {(entry.peer, entry.section): entry for entry in findings}
    out.mkdir(parents=True, exist_ok=True)
    kept = [asdict(entry) for _, entry in sorted(found.items())]
    (out / "compared.json").write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    path = out / "compared.md"
    path.write_text(page(found), encoding="utf-8")
    return path


def page(found: Found) -> str:
    """The whole page."""
    parts = [
        "# Beside the others",
        "The real packages, each as its own guide shows it, doing the same work on one machine: logistic "
        "regression on "
        "Adult's 30,162 training rows, dealt evenly to five sites. " + _how(found),
        summary(found),
        *paragraphs(found),
        WEAKER,
        "## The work",
        _WORK,
        work_table(found),
        "## Privacy",
        _PRIVACY,
        privacy_table(found),
        "## Faults",
        _FAULTS,
        faults_table(found),
        "## Solving",
        _SOLVING,
        solving_table(found),
        *_failures(found),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


_WORK = (
    "Real processes on loopback, one server and five clients, or five peers. Seconds of a round: from "
    "the end of the first round to the end of the last, on average. To the model: from the first process "
    "to the model, with all starting. CPU: of all processes together, which other work on the machine "
    "disturbs least. Bytes: what the namespace's loopback carried, headers and TLS included, both ways, "
    "per site and round. Memory: the most that one process held. Install: the files of the peer with all "
    "that it needs, without Python. Lines: what a user writes, as in `benchmarks/peers/adapters`. The "
    "peers train without noise here, by scikit-learn's solver at each site (FLARE: Newton steps); our "
    "real sites never do."
)
_PRIVACY = (
    "At (1, 10⁻⁵) for the whole run, ten seeds (Flower and APPFL five). Ours are planned, never tuned. A "
    "peer takes the best of a grid of rounds (10 or 30) and steps, or of C, on the test rows, and where "
    "it counts in another way our accountant gives it the least noise that a record needs: both flatter "
    "it. Where 30 rounds were best, the model lacks rounds more than it suffers from noise: with more of "
    "them, at the price of a round, it would be better, which `at least` says. `prints` is what the "
    "package itself says at these settings, and of what; `whole run` is what the same noise costs a "
    "record over the run by our accountant, rounded up. The peers' noise runs through their own classes "
    "in one process."
)
_FAULTS = (
    "The same runs (ours: a masked one, rehearsed with a seed so that models can be compared). One party "
    "is killed with -9 after the first round and started again two seconds later; or comes 20 seconds "
    "late; or a sixth party, whose labels are turned round, connects without having been asked (at ours: "
    "under the name of a site, with a key of another authority). `same` is the model of the undisturbed "
    "run. FLARE's late party and stranger were not played: its clients come with the certificates of its "
    "provisioning tool, and a handshake without one is in the last row."
)
_SOLVING = (
    "50 rounds of ADMM on a ring, no noise, mean loss with 0.001 ‖f‖² / 2, every fourth row. Distance: "
    "of the worst site from the optimum of all these rows, as a share of its length. Each side has the "
    "best of five penalties (disropt's chosen on every twentieth row). disropt runs five MPI processes, "
    "over shared memory, and solves each step with cvxpy; `simulate` is one process with a solver for "
    "this very problem, so that this is a comparison of purposes as much as of programs."
)


def _how(found: Found) -> str:
    dates = sorted({entry.date for entry in found.values()})
    loads = [entry.load for entry in found.values()]
    cores = max(entry.cores for entry in found.values())
    when = dates[0] if len(set(dates)) == 1 else f"{dates[0]} to {dates[-1]}"
    return (
        f"Made by `python -m benchmarks.peers` on {when}, on {cores} cores that were shared "
        f"(load {min(loads):g} to {max(loads):g}): "
        "compare the seconds with each other rather than with a watch. Everything ran in a network "
        "namespace with loopback and nothing else, telemetry switched off."
    )


def _result(found: Found, peer: str, section: str) -> Any:
    entry = found.get((peer, section))
    return None if entry is None else entry.result


def _cell(found: Found, peer: str, section: str, show: Show) -> str:
    entry = _faults(found, peer) if section == "faults" else found.get((peer, section))
    if entry is None:
        return _NONE
    if entry.error is not None:
        return "failed"
    try:
        return show(entry.result)
    except KeyError:
        return _NONE


def _faults(found: Found, peer: str) -> Finding | None:
    """All that is known of a peer's disturbed runs, the undisturbed one being that of the work."""
    work = found.get((peer, "work"))
    if (peer, "faults") in found or work is None or not work.result or "tls" not in work.result:
        return found.get((peer, "faults"))
    plain = {"ended": True, "seconds": work.result["seconds"], "tls": work.result["tls"]}
    parts = {what: _result(found, peer, what) for what in ("kill", "late", "stranger")}
    known = {what: result for what, result in parts.items() if result}
    return replace(work, section="faults", result={"plain": plain} | known)


def _version(found: Found, peer: str) -> str:
    return next((entry.version for (name, _), entry in found.items() if name == peer and entry.version), "")


def peers_in(found: Found) -> list[str]:
    """Those that were run, in the page's order."""
    return [peer for peer in NAMES if any(name == peer for name, _ in found)]


def table(head: list[str], rows: Iterable[list[str]]) -> str:
    """Markdown."""
    lines = [f"| {' | '.join(head)} |", f"|---|{'---|' * (len(head) - 1)}"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


def summary(found: Found, only: Iterable[str] | None = None) -> str:
    """The table that the page begins with: a line for a question, a column for a package."""
    peers = peers_in(found)
    head = ["", *(f"{NAMES[peer]} {_version(found, peer)}".strip() for peer in peers)]
    chosen = [(name, ask) for name, ask in QUESTIONS if only is None or name in only]
    return table(head, [[name, *(ask(found, peer) for peer in peers)] for name, ask in chosen])


def readme_rows(found: Found) -> str:
    """The five rows that the README has."""
    return summary(found, IN_README)


def _work(show: Show) -> Callable[[Found, str], str]:
    def ask(found: Found, peer: str) -> str:
        section = "solving" if (peer, "work") not in found else "work"
        return _cell(found, peer, section, show)

    return ask


def _best_private(found: Found, peer: str) -> str:
    entries = _result(found, peer, "privacy")
    good = [entry for entry in entries or [] if entry["whole_run"] <= 1.0]
    return accuracy(max(good, key=lambda entry: entry["accuracy"])) if good else _NONE


def accuracy(entry: dict[str, Any]) -> str:
    """Of a private model; at least so much where the most rounds that were tried were the best."""
    unsure = entry.get("setting", "").startswith(f"{MOST_ROUNDS} rounds")
    return f"{'at least ' * unsure}{entry['accuracy']:.3f}"


def _printed(found: Found, peer: str) -> str:
    units = dict.fromkeys(entry["unit"] for entry in _result(found, peer, "privacy") or [])
    return "; ".join(units) or _NONE


def _after_kill(found: Found, peer: str) -> str:
    return _cell(found, peer, "faults", lambda result: outcome(result["kill"], result["plain"]))


def _stranger(found: Found, peer: str) -> str:
    return _cell(found, peer, "faults", lambda result: stranger(result["stranger"]))


def _carried(sent: float) -> str:
    """What the loopback carried; nothing, where processes on one machine talk through its memory."""
    return f"{sent:,.0f}" if sent else "through memory"


QUESTIONS: tuple[tuple[str, Callable[[Found, str], str]], ...] = (
    ("accuracy without privacy", lambda found, peer: _NONE if peer == OURS else _accuracy(found, peer)),
    ("best accuracy at (1, 10⁻⁵), whole run", _best_private),
    ("its epsilon is of", _printed),
    ("CPU seconds a round, all processes", _work(lambda result: seconds(result["round_cpu"]))),
    ("seconds a round", _work(lambda result: seconds(result["round_seconds"]))),
    ("seconds to the model", _work(lambda result: seconds(result["seconds"]))),
    ("bytes per site and round", _work(lambda result: _carried(result["round_bytes"]))),
    ("largest process, MB", _work(lambda result: f"{result['largest']:.0f}")),
    ("install, MB", _work(lambda result: f"{result['install']:,.0f}")),
    ("lines a user writes", _work(lambda result: str(result["lines"]))),
    ("after kill -9 of one party", _after_kill),
    ("a stranger", _stranger),
    (
        "a handshake without a certificate finds",
        lambda found, peer: _cell(found, peer, "faults", lambda result: result["plain"]["tls"]),
    ),
)


IN_README = (
    "best accuracy at (1, 10⁻⁵), whole run",
    "its epsilon is of",
    "CPU seconds a round, all processes",
    "after kill -9 of one party",
    "a stranger",
)


def _accuracy(found: Found, peer: str) -> str:
    section = "work" if (peer, "work") in found else "solving"
    return _cell(found, peer, section, lambda result: f"{result['accuracy']:.3f}")


def seconds(value: float) -> str:
    """Two figures are enough.

    >>> seconds(0.02567), seconds(9.31), seconds(123.4)
    ('0.026', '9.3', '123')
    """
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def outcome(disturbed: dict[str, Any], plain: dict[str, Any]) -> str:
    """What became of a disturbed run, and how much longer it took."""
    if not disturbed["ended"]:
        return "no end within 600 s" if disturbed["seconds"] >= 600 else "the run fails"
    more = max(0.0, disturbed["seconds"] - plain["seconds"])
    model = "same model" if disturbed.get("same") else f"another model (by {disturbed['gap']:.2g})"
    return f"{model}, {seconds(more)} s more"


def stranger(disturbed: dict[str, Any]) -> str:
    """Whether somebody who was not asked had a part in the model."""
    if not disturbed["ended"]:
        return "stops the run"
    return "kept out" if disturbed.get("same") else f"takes part (model moved by {disturbed['gap']:.2g})"


def paragraphs(found: Found) -> list[str]:
    """One for each peer that was run."""
    return [f"**{NAMES[peer]}** {PARAGRAPHS[peer]}" for peer in peers_in(found) if peer in PARAGRAPHS]


def work_table(found: Found) -> str:
    """Section 1."""
    head = [
        "",
        "rounds",
        "accuracy",
        "test loss",
        "CPU s a round",
        "s a round",
        "s to the model",
        "CPU s",
        "bytes",
        "MB",
        "processes",
    ]
    rows = []
    for peer, section, name in _workers(found):
        entry = found[(peer, section)]
        result = entry.result or {}

        def show(key: str, form: str, result: dict[str, Any] = result) -> str:
            return format(result[key], form) if key in result else _NONE

        rows.append(
            [
                name,
                show("rounds", ".0f"),
                show("accuracy", ".4f"),
                show("loss", ".4f"),
                seconds(result["round_cpu"]) if "round_cpu" in result else _NONE,
                seconds(result["round_seconds"]) if "round_seconds" in result else _NONE,
                seconds(result["seconds"]) if "seconds" in result else _NONE,
                show("cpu", ".0f"),
                show("round_bytes", ",.0f"),
                show("largest", ".0f"),
                show("processes", ".0f"),
            ]
        )
    return table(head, rows)


def _workers(found: Found) -> list[tuple[str, str, str]]:
    names = [
        (OURS, "work", "taciturn, masked, ε = 1"),
        (OURS, "workpenalty", "taciturn, trusting nobody, ε = 1"),
        *((peer, "work", NAMES[peer]) for peer in PARAGRAPHS if peer != "diffprivlib"),
        ("diffprivlib", "work", "diffprivlib, pooled, hardly any noise"),
    ]
    return [entry for entry in names if entry[:2] in found and found[entry[:2]].error is None]


def privacy_table(found: Found) -> str:
    """Section 2."""
    head = ["", "trusts", "prints", "of", "whole run", "accuracy", "test loss", "setting"]
    rows = []
    for peer in peers_in(found):
        for entry in _result(found, peer, "privacy") or []:
            prints = "nothing" if entry["prints"] is None else rounded_up(entry["prints"])
            rows.append(
                [
                    f"{NAMES[peer]}, {entry['contender']}",
                    entry["trusts"],
                    prints,
                    _NONE if entry["prints"] is None else entry["unit"],
                    rounded_up(entry["whole_run"]),
                    accuracy(entry),
                    f"{entry['loss']:.4f} ± {entry['loss_std']:.4f}",
                    entry.get("setting", _NONE),
                ]
            )
    return table(head, rows)


def faults_table(found: Found) -> str:
    """Section 3."""
    peers = [peer for peer in peers_in(found) if _faults(found, peer)]
    head = ["", *(NAMES[peer] for peer in peers)]

    def row(name: str, show: Show) -> list[str]:
        return [name, *(_cell(found, peer, "faults", show) for peer in peers)]

    return table(
        head,
        [
            row("kill -9, restart", lambda result: outcome(result["kill"], result["plain"])),
            row("20 s late", lambda result: outcome(result["late"], result["plain"])),
            row("a stranger", lambda result: stranger(result["stranger"])),
            ["budget known after the kill", *(_budget(found, peer) for peer in peers)],
            ["TLS by default", *(TLS[peer] for peer in peers)],
            row("a handshake without a certificate finds", lambda result: result["plain"]["tls"]),
        ],
    )


def _budget(found: Found, peer: str) -> str:
    def spent(result: dict[str, Any]) -> str:
        return f"yes, {rounded_up(result['kill']['epsilon'])}, from the ledger on disk"

    return BUDGET.get(peer) or _cell(found, peer, "faults", spent)


def solving_table(found: Found) -> str:
    """Section 4."""
    rows = []
    for peer, name in ((OURS, "taciturn, `simulate`, one process"), ("disropt", "disropt, five processes")):
        result = _result(found, peer, "solving")
        if result:
            rows.append(
                [
                    name,
                    seconds(result["round_cpu"]),
                    seconds(result["round_seconds"]),
                    f"{result['distance']:.1e}",
                    f"{result['accuracy']:.4f}",
                ]
            )
    return table(["", "CPU s a round", "s a round", "distance", "accuracy"], rows)


def _failures(found: Found) -> list[str]:
    """What failed, and what nobody has measured yet."""
    lines = [
        f"- {NAMES[peer]}, {section}: {entry.error}"
        for (peer, section), entry in sorted(found.items())
        if entry.error is not None
    ]
    for peer, sections in EXPECTED.items():
        missing = [section for section in sections if (peer, section) not in found]
        if missing:
            lines.append(
                f"- {NAMES[peer]}, {', '.join(missing)}: not measured yet; the same command goes on."
            )
    return ["## What did not run", "\n".join(lines)] if lines else []

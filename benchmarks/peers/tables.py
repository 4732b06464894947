"""The tables of the page, one function each, from the findings alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from taciturn.core.formatting import format_cost

from .cells import (
    NONE,
    Found,
    Show,
    accuracy,
    after_kill,
    came_late,
    carried,
    cell,
    counted,
    faults_of,
    not_installed,
    outcome,
    peers_in,
    result_of,
    seconds,
    settled,
    shortened,
    stranger,
    stranger_at_locks,
    table,
    tried,
    version_of,
)
from .results import OURS
from .words import COUNTED, COUNTERS, ELSEWHERE, LOCKED, NAMES, PARAGRAPHS, TLS


def summary(found: Found) -> str:
    """The first table of the page: one line for each question, one column for each package."""
    peers = peers_in(found)
    head = ["", *(f"{NAMES[peer]} {version_of(found, peer)}".strip() for peer in peers)]
    rows = [[name, *(ask(found, peer) for peer in peers)] for name, ask in QUESTIONS]
    for place, peer in enumerate(peers, start=1):
        why = not_installed(found, peer)
        for number, row in enumerate(rows if why else ()):
            row[place] = NONE if number else shortened(why or "")
    return table(head, rows)


def _work(show: Show) -> Callable[[Found, str], str]:
    def ask(found: Found, peer: str) -> str:
        section = "solving" if (peer, "work") not in found else "work"
        return cell(found, peer, section, show)

    return ask


def _best_private(found: Found, peer: str) -> str:
    entries = result_of(found, peer, "privacy")
    good = [entry for entry in entries or [] if entry["whole_run"] <= 1.0]
    return accuracy(max(good, key=lambda entry: entry["accuracy"])) if good else ELSEWHERE.get(peer, NONE)


def _after_kill(found: Found, peer: str) -> str:
    return cell(found, peer, "faults", lambda result: outcome(result["kill"], result["plain"]))


def _stranger(found: Found, peer: str) -> str:
    return cell(found, peer, "faults", stranger_at_locks)


QUESTIONS: tuple[tuple[str, Callable[[Found, str], str]], ...] = (
    ("accuracy without privacy", lambda found, peer: _accuracy(found, peer)),
    ("best accuracy at (1, 10⁻⁵), whole run", _best_private),
    ("what its epsilon counts", lambda found, peer: COUNTED.get(peer, NONE)),
    ("CPU seconds a round, all processes", _work(lambda result: seconds(result["round_cpu"]))),
    ("seconds a round", _work(lambda result: seconds(result["round_seconds"]))),
    ("seconds to the model", lambda found, peer: _to_model(found, peer)),
    ("bytes per site and round", _work(lambda result: carried(result["round_bytes"]))),
    ("largest process, MB", _work(lambda result: f"{result['largest']:.0f}")),
    ("install, MB", _work(lambda result: f"{result['install']:,.0f}")),
    ("lines a user writes", _work(lambda result: str(result["lines"]))),
    ("after kill -9 of one party", _after_kill),
    ("an unauthenticated client", _stranger),
    (
        "result of a TLS handshake without a certificate",
        lambda found, peer: cell(found, peer, "faults", lambda result: result["plain"]["tls"]),
    ),
)


def _accuracy(found: Found, peer: str) -> str:
    section = "work" if (peer, "work") in found else "solving"
    ours = (result_of(found, OURS, "solving") or {}).get("accuracy")
    there = "" if ours is None else f" (taciturn on that problem: {ours:.3f})"
    note = {OURS: " in `simulate`", "disropt": f" on another problem{there}"}.get(peer, "")
    section = "workopen" if peer == OURS else section
    return cell(found, peer, section, lambda result: f"{result['accuracy']:.3f}{note}")


def _to_model(found: Found, peer: str) -> str:
    """The seconds to the model; empty for packages that solved another problem."""
    return cell(found, peer, "work", lambda result: seconds(settled(result)))


def work_table(found: Found) -> str:
    """The table of section 1."""
    head = [
        "",
        "rounds",
        "accuracy",
        "test loss",
        "CPU s a round",
        "s a round",
        "s to the model",
        "s in all",
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
            return format(result[key], form) if key in result else NONE

        rows.append(
            [
                name,
                show("rounds", ".0f"),
                show("accuracy", ".4f"),
                show("loss", ".4f"),
                seconds(result["round_cpu"]) if "round_cpu" in result else NONE,
                seconds(result["round_seconds"]) if "round_seconds" in result else NONE,
                seconds(settled(result)) if "seconds" in result else NONE,
                seconds(result["seconds"]) if "seconds" in result else NONE,
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
        (OURS, "workpenalty", "taciturn, trusting no other site, ε = 1"),
        (OURS, "workopen", "taciturn, `simulate`, no noise"),
        *((peer, "work", NAMES[peer]) for peer in PARAGRAPHS if peer != "diffprivlib"),
        ("diffprivlib", "work", "diffprivlib, pooled, almost no noise"),
    ]
    return [entry for entry in names if entry[:2] in found and found[entry[:2]].error is None]


def work_notes(found: Found) -> str:
    """How each peer trained, if it was recorded."""
    told = {peer: (result_of(found, peer, "work") or {}).get("how") for peer in PARAGRAPHS}
    return " ".join(f"{NAMES[peer]}: {text}." for peer, text in told.items() if text)


def privacy_table(found: Found) -> str:
    """The table of section 2."""
    head = ["", "trusts", "prints", "of", "whole run", "accuracy", "test loss", "setting"]
    rows = []
    for peer in peers_in(found):
        for entry in result_of(found, peer, "privacy") or []:
            prints = "nothing" if entry["prints"] is None else _printed(entry["prints"])
            rows.append(
                [
                    f"{NAMES[peer]}, {entry['contender']}",
                    entry["trusts"],
                    prints,
                    NONE if entry["prints"] is None else entry["unit"],
                    format_cost(entry["whole_run"]),
                    accuracy(entry),
                    f"{entry['loss']:.4f} ± {entry['loss_std']:.4f}",
                    tried(entry),
                ]
            )
    return table(head, rows)


def _printed(epsilon: float) -> str:
    """The epsilon that a package prints; large numbers without digits after the point."""
    return f"{math.ceil(epsilon):,}" if epsilon >= 1000 else format_cost(epsilon)


def faults_table(found: Found) -> str:
    """The table of section 3."""
    peers = [peer for peer in peers_in(found) if faults_of(found, peer)]
    head = ["", *(NAMES[peer] for peer in peers)]

    def row(name: str, show: Show) -> list[str]:
        return [name, *(cell(found, peer, "faults", show) for peer in peers)]

    return table(
        head,
        [
            row("kill -9, restart", after_kill),
            row("one party a minute late", came_late),
            row("an unauthenticated client", lambda result: stranger(result["stranger"])),
            [
                "an unauthenticated client, authentication enabled",
                *(_locked(found, peer, _guarded) for peer in peers),
            ],
            ["its counter of epsilon, killed and started again", *(_counter(found, peer) for peer in peers)],
            ["where that counter is", *(COUNTERS[peer] for peer in peers)],
            row("result of a TLS handshake without a certificate", lambda result: result["plain"]["tls"]),
            [
                "result of that handshake, authentication enabled",
                *(_locked(found, peer, _door) for peer in peers),
            ],
            ["TLS by default", *(TLS[peer] for peer in peers)],
        ],
    )


def _locked(found: Found, peer: str, show: Show) -> str:
    """The findings with authentication enabled, for peers that do not always enable it."""
    return LOCKED if peer in (OURS, "nvflare") else cell(found, peer, "faults", show)


def _guarded(result: dict[str, Any]) -> str:
    return stranger(result["guarded"])


def _door(result: dict[str, Any]) -> str:
    guarded = result["guarded"]
    text = "failed, see below" if "failed" in guarded else str(guarded["tls"])
    return text + (
        f"; without `--insecure` and certificates it {guarded['bare']}" if "bare" in guarded else ""
    )


def _counter(found: Found, peer: str) -> str:
    if peer != OURS:
        return cell(found, peer, "faults", lambda result: counted(result["budget"]))

    def both(result: dict[str, Any]) -> dict[str, Any]:
        return {"counter": result["kill"]["epsilon"], "whole": result["plain"]["epsilon"]}

    return cell(found, peer, "faults", lambda result: counted(both(result)))


def solving_table(found: Found) -> str:
    """The table of section 4."""
    rows = []
    for peer, name in ((OURS, "taciturn, `simulate`, one process"), ("disropt", "disropt, five processes")):
        result = result_of(found, peer, "solving")
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

"""Write the cells of the page's tables. They depend on the findings alone."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from taciturn.core.formatting import format_cost

from .results import Finding
from .words import NAMES

Found = Mapping[tuple[str, str], Finding]
Show = Callable[[dict[str, Any]], str]
NONE = "–"
DISTURBED = ("kill", "late", "stranger", "strict", "guarded", "budget")


def result_of(found: Found, peer: str, section: str) -> Any:
    """The result of a peer in a section, or None."""
    entry = found.get((peer, section))
    return None if entry is None else entry.result


def cell(found: Found, peer: str, section: str, show: Show) -> str:
    """One cell of a table: a result in the form of `show`, or a dash if there is no result."""
    entry = faults_of(found, peer) if section == "faults" else found.get((peer, section))
    if entry is None:
        return NONE
    if entry.error is not None:
        return "failed, see below"
    try:
        return show(entry.result)
    except KeyError:
        return NONE


def faults_of(found: Found, peer: str) -> Finding | None:
    """All findings about a peer's disturbed runs, with the run of section 1 as the undisturbed run."""
    work = found.get((peer, "work"))
    if (peer, "faults") in found or work is None or not work.result or "tls" not in work.result:
        return found.get((peer, "faults"))
    plain = {"ended": True, "seconds": work.result["seconds"], "tls": work.result["tls"]}
    parts = {what: found[(peer, what)] for what in DISTURBED if (peer, what) in found}
    known = {what: part.result or {"failed": True} for what, part in parts.items()}
    return replace(work, section="faults", result={"plain": plain} | known)


def version_of(found: Found, peer: str) -> str:
    """The version that was run."""
    return next((entry.version for (name, _), entry in found.items() if name == peer and entry.version), "")


def peers_in(found: Found) -> list[str]:
    """The peers that were run, in the order of the page."""
    return [peer for peer in NAMES if any(name == peer for name, _ in found)]


def not_installed(found: Found, peer: str) -> str | None:
    """Why a peer was skipped: every section has the same error, and no version was run."""
    entries = [entry for (name, section), entry in found.items() if name == peer and section != "packages"]
    errors = {entry.error for entry in entries}
    skipped = len(errors) == 1 and not any(entry.version for entry in entries)
    return errors.pop() if skipped else None


def shortened(error: str) -> str:
    """An error, shortened for a cell.

    >>> shortened("needs the command mpirun, which is not installed")
    'not installed: needs the command mpirun, ...'
    """
    return "not installed: " + textwrap.shorten(error.replace("|", "/"), 32, placeholder=" ...")


def table(head: list[str], rows: Iterable[list[str]]) -> str:
    """The rows as a Markdown table."""
    lines = [f"| {' | '.join(head)} |", f"|---|{'---|' * (len(head) - 1)}"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


def accuracy(entry: dict[str, Any]) -> str:
    """The accuracy of a private model, with "at least" if more rounds might have been better."""
    return f"{'at least ' * unsure(entry)}{entry['accuracy']:.3f}"


def unsure(entry: dict[str, Any]) -> bool:
    """Whether the largest number of rounds tried beats the next smaller one by more than the seeds differ.

    >>> found = {"setting": "1000 rounds", "loss_std": 0.002, "ladder": [[300, 0.359], [1000, 0.358]]}
    >>> unsure(found), unsure(found | {"loss_std": 0.0001}), unsure({"setting": "300 rounds"}), unsure({})
    (False, True, True, False)
    """
    if "setting" not in entry:
        return False
    ladder = entry.get("ladder")
    if ladder is None:
        return True  # the other numbers of rounds were not recorded
    return len(ladder) > 1 and bool(ladder[-2][1] - ladder[-1][1] > entry["loss_std"])


def tried(entry: dict[str, Any]) -> str:
    """The setting of a private model, and the numbers of rounds or epochs that were tried."""
    ladder = entry.get("ladder") or []
    others = f" (best of {', '.join(f'{count:g}' for count, _ in ladder)})" if len(ladder) > 1 else ""
    return entry.get("setting", NONE) + others


def carried(sent: float) -> str:
    """The bytes on loopback, or "through memory" if the processes communicate through shared memory."""
    return f"{sent:,.0f}" if sent else "through memory"


def settled(result: dict[str, Any]) -> float:
    """The seconds until the model is available: after the last round, or after the first if it is enough."""
    return float(result.get("settled", result["seconds"]))


def seconds(value: float) -> str:
    """Seconds with two significant digits.

    >>> seconds(0.02567), seconds(9.31), seconds(123.4)
    ('0.026', '9.3', '123')
    """
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def share(value: float) -> str:
    """A share as a percentage with two significant digits.

    >>> share(0.00904), share(0.273)
    ('0.9%', '27%')
    """
    return f"{100 * value:.2g}%"


def outcome(disturbed: dict[str, Any], plain: dict[str, Any]) -> str:
    """The outcome of a disturbed run, and the additional time that it took."""
    if "failed" in disturbed:
        return "failed, see below"
    if not disturbed["ended"]:
        patience = disturbed.get("patience", 600.0)
        return f"no end within {patience:.0f} s" if disturbed["seconds"] >= patience else "the run fails"
    more = max(0.0, disturbed["seconds"] - plain["seconds"])
    model = "same model" if disturbed.get("same") else f"another model (by {share(disturbed['gap'])})"
    model = "same model, bit for bit" if disturbed.get("gap") == 0 else model
    return f"{model}, {seconds(more)} s more"


def came_late(result: dict[str, Any]) -> str:
    """The outcome of a run in which one party arrived late."""
    late = result["late"]
    if "failed" in late or not late["ended"]:
        return outcome(late, result["plain"])
    model = outcome(late, result["plain"]).rpartition(", ")[0]
    return f"{model}, {seconds(late['since'])} s after it arrived"


def after_kill(result: dict[str, Any]) -> str:
    """The outcome after kill -9, with the settings for this case and the status that the peer reports."""
    text = outcome(result["kill"], result["plain"])
    kill, strict = result["kill"], result.get("strict")
    if kill.get("set"):
        text += f", {kill['set']}"
    if kill.get("status") not in (None, "COMPLETED"):
        text += f"; the package calls the job {kill['status']}"
    if strict:
        text += f". With the recipe unchanged: {outcome(strict, result['plain'])}"
    return text


def stranger(disturbed: dict[str, Any]) -> str:
    """Whether an unauthenticated client was accepted and changed the model."""
    if "failed" in disturbed:
        return "failed, see below"
    if not disturbed["ended"]:
        return "stops the run"
    if not disturbed.get("same"):
        return f"accepted (model moved by {share(disturbed['gap'])})"
    return "accepted, but does not affect the model" if "lets" in disturbed.get("door", "") else "rejected"


def stranger_at_locks(result: dict[str, Any]) -> str:
    """As `stranger`; also with authentication enabled, if the peer does not always enable it."""
    text = stranger(result["stranger"])
    return (
        f"{text}; with authentication enabled: {stranger(result['guarded'])}" if "guarded" in result else text
    )


def counted(budget: dict[str, Any]) -> str:
    """The epsilon that a counter reports after it was killed, and the epsilon that was spent.

    >>> counted({"counter": 0.5, "whole": 0.75, "kept": 0.75})
    '0.500 of 0.750; 0.750 if its state is saved every round'
    """
    if "failed" in budget:
        return "failed, see below"
    text = f"{format_cost(budget['counter'])} of {format_cost(budget['whole'])}"
    return text + (
        f"; {format_cost(budget['kept'])} if its state is saved every round" if "kept" in budget else ""
    )

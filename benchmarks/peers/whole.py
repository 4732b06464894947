"""Check that the findings are complete: an existing page is not replaced by a less complete one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .results import OURS, Finding


def lacking(findings: Iterable[Finding], expected: Mapping[str, tuple[str, ...]]) -> list[str]:
    """What is missing: a section that was not tried, two versions in one column, or all peers.

    A failed section counts as tried. If nothing of taciturn ran, or no peer, then the machine failed.
    """
    found = {(entry.peer, entry.section): entry for entry in findings}
    lacks, ran = [], set()
    for peer, sections in expected.items():
        known = [found[(peer, section)] for section in sections if (peer, section) in found]
        good = [entry for entry in known if entry.error is None]
        missing = [section for section in sections if (peer, section) not in found]
        if missing:
            lacks.append(f"{peer} has no {', '.join(missing)}")
        if len({(entry.version, entry.commit if peer == OURS else "") for entry in good}) > 1:
            lacks.append(f"the results of {peer} are of several versions")
        if good:
            ran.add(peer)
    if OURS not in ran:
        lacks.append(f"nothing of {OURS} ran")
    if not ran - {OURS}:
        lacks.append("none of the peers ran")
    return lacks

"""The end of a run: all members hold the same, and each writes its model, certificate and statement."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.errors import RunOver
from ...core.formatting import format_cost, format_delta
from ...core.types import Array
from ...privacy.sums import SumFacts
from ..protocol.events import Finished
from ..protocol.machine import SiteProtocol
from ..state.account import Account
from ..state.high_water import HighWaterMark
from .charging import look_at_mark
from .evidence import state_released
from .prepare import PreparedSite
from .results import write_results
from .store import SiteStore

log = logging.getLogger("taciturn.site")


@dataclass(frozen=True)
class SiteResult:
    """What a site holds at the end; `reason` says why, where that is not after the last round."""

    model: Array
    epsilon: float
    delta: float
    folder: Path
    reason: str = ""


def end_run(
    ready: PreparedSite,
    store: SiteStore,
    protocol: SiteProtocol,
    effect: Finished,
    *,
    account: Account | None,
    marks: HighWaterMark | None,
) -> SiteResult | RunOver:
    """All members hold the same: write it down. Where there is no model yet, say what was spent."""
    ended = _ended(effect, ready.site.job.names)
    if effect.early:
        store.end_early(_rest(ready, store, protocol))
        log.warning("the run ends after round %d of %d: %s", effect.rounds, ready.run.rounds, ended["reason"])
    if effect.early and effect.rounds < (2 if ready.site.job.masked else 1):  # one masked sum is no model
        told = state_released(ready, store, str(ended["reason"]))
        return RunOver(f"the run ends before there is a model: {ended['reason']}. {told}.")
    model = protocol.method.result(effect.state, protocol.last_vectors())
    look_at_mark(store, marks)  # a copy of this site may have run meanwhile
    certificate = write_results(ready, store, model, ended=ended or None)
    if account is not None and store.charges:
        account.finish(store.id)
    text = "done: epsilon %s at delta %s; results in %s"
    log.info(text, format_cost(certificate.epsilon), format_delta(certificate.delta), ready.site.state)
    reason = str(ended.get("reason", ""))
    return SiteResult(model, certificate.epsilon, certificate.delta, ready.site.state, reason)


def _ended(effect: Finished, names: tuple[str, ...]) -> dict[str, Any]:
    """After which round, with which sites and for which reason, if not after the last with all."""
    absent = [name for i, name in enumerate(names) if i not in effect.members]
    if not effect.early and not absent:
        return {}
    without = f", without {', '.join(absent)}" if absent else ""
    reason = (
        f"all that are left agreed to finish{without}" if effect.early else f"sites were left behind{without}"
    )
    return {"round": effect.rounds, "sites": [names[i] for i in effect.members], "reason": reason}


def _rest(ready: PreparedSite, store: SiteStore, protocol: SiteProtocol) -> tuple[SumFacts, ...]:
    """What the last attempt had planned and did not release: it counts where a run ended early."""
    if not ready.site.job.masked:
        return ()
    if not protocol.past:
        return tuple(store.run.sums)
    last = protocol.past[max(protocol.past)]
    node = protocol.method.attempt(last.members, last.base, last.left)
    return () if node is None else tuple(node.tables.sums[last.charged :])

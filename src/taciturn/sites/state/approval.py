"""Approval: a site runs no job, except a rehearsal, without approval by its owner or by rules in site.toml.

The table's audit log has every answer to a job (approved or refused). Each entry of the log contains the hash
of the previous entry.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from ...core.canonical import digest
from ...core.errors import BudgetExceeded, LedgerError, WrongFiles
from ...core.formatting import format_cost, format_delta, format_given
from ...jobfile.job_format import TRAIN
from ...privacy.ledger import chain
from ...privacy.ledger.budget_file import make_rows, open_rows
from ...privacy.ledger.pricing import Planned
from ..files.database import wrong_ledger_as
from ..files.site import ApprovalRules, Site
from .account import Account, AccountSeen

APPROVED, REFUSED = "approved", "refused"
FORMAT = "taciturn-audit/1"


@dataclass(frozen=True)
class JobQuestion:
    """What a job asks of a table: the kinds of questions, the columns, and the cost to one record or person.

    programs : the SHA-256 of every installed program that the job runs.
    by_site : whether the result has separate figures for each site, including this site.
    epsilon, against : the cost under the owner's assumption about colluders, and that assumption as text.
    """

    job: str
    name: str
    kinds: tuple[str, ...]
    columns: tuple[str, ...]
    programs: tuple[str, ...]
    by_site: bool
    rounds: int
    unit: str
    epsilon: float
    delta: float
    against: str

    def lines(self, account: AccountSeen) -> list[str]:
        """The text for the owner, before anything is spent."""
        cost = f"epsilon {format_cost(self.epsilon)} at delta {format_delta(self.delta)}"
        return [
            f"job {self.name}, {self.job[:16]}, asks: {', '.join(self.kinds)}, in {self.rounds} rounds",
            f"  of the columns {', '.join(self.columns)}",
            *(f"  by an installed program with the SHA-256 {one}" for one in self.programs),
            *["  with figures for every single site"] * self.by_site,
            f"  at a cost of {cost} for any one {self.unit}, {self.against}",
            f"  {account.line()}",
        ]


class Decision(NamedTuple):
    """Whether a site may take part in a job, and why or why not."""

    allowed: bool
    why: str


def question(site: Site, planned: Planned) -> JobQuestion:
    """What a site's job asks; `planned` has the cost of the job under the owner's assumptions."""
    job, run = site.job, planned.run
    asked = () if job.kind == TRAIN else job.asking.questions
    others = run.sites - 1
    number = others if run.colluding is None else run.colluding
    against = "even if all" if number == others else f"if at most {number} of the {others}"
    return JobQuestion(
        job=job.hash.hex(),
        name=job.name,
        kinds=tuple(dict.fromkeys(one.kind for one in asked)) or (job.kind,),
        columns=_columns(site),
        programs=tuple(one.digest for one in asked if one.digest is not None),
        by_site=any(one.names_sites for one in asked),
        rounds=run.rounds,
        unit=run.unit,
        epsilon=planned.epsilon,
        delta=site.file.budget.delta,
        against=f"{against} other sites collude",
    )


def _columns(site: Site) -> tuple[str, ...]:
    """The columns that a job reads; arrays are read whole."""
    job = site.job
    columns: tuple[str, ...] = ("X", "y") if job.kind == TRAIN else ("X",)
    if job.table is not None and job.kind != TRAIN:
        columns = job.asking.reads
    elif job.label is not None:
        columns = (*job.schema_.names, job.label.column)
    return tuple(dict.fromkeys((*columns, *([] if job.person is None else [job.person]))))


@dataclass(frozen=True)
class AuditLog:
    """The audit log of a table, a file beside the account of the table (the file of all its privacy costs).

    If an entry is changed, the hashes no longer fit.
    """

    path: Path

    def entries(self) -> list[dict[str, Any]]:
        """All answers, in order; empty if there is no file yet."""
        if not self.path.exists():
            return []
        with self._rows() as db:
            return self._read(db)[0]

    def append(self, entry: dict[str, Any]) -> None:
        """Append an answer; it is on disk on return."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self.path.exists():
            with wrong_ledger_as(self.path):
                make_rows(self.path, _first_rows)
        with self._rows() as db:
            _, head = self._read(db)
            chain.append(db, head, {"at": datetime.now(UTC).isoformat(timespec="seconds"), **entry})

    @contextmanager
    def _rows(self) -> Iterator[sqlite3.Connection]:
        with wrong_ledger_as(self.path), open_rows(self.path) as db:
            yield db

    def _read(self, db: sqlite3.Connection) -> tuple[list[dict[str, Any]], chain.Head]:
        bodies, head = chain.verify_rows(db) if chain.exists(db) else ([], chain.EMPTY)
        if not bodies or bodies[0].get("format") != FORMAT:
            raise LedgerError("this file is not an audit log: it was emptied, or is another file.")
        return bodies[1:], head


def _first_rows(db: sqlite3.Connection) -> None:
    chain.create(db)
    chain.append(db, chain.EMPTY, {"format": FORMAT})


def audit_log(account: Account) -> AuditLog:
    """The log of all answers about the account's table."""
    return AuditLog(account.beside("audit.sqlite"))


def decide(
    site: Site, planned: Planned, account: Account, *, charged: bool = False, log: bool = True
) -> Decision:
    """Decide whether the site may take part now. A run that is already `charged` is not paid for again.

    An answer that differs from the previous answer is written to the audit log, unless `log` is False.
    """
    account.check_place()
    asked, answers = question(site, planned), audit_log(account)
    number = _number(site, asked)
    before = [entry for entry in answers.entries() if entry.get("question") == number]
    by_hand = [entry["answer"] for entry in before if entry.get("by") == "hand"]
    failed = list(_misses(site.file.approve, asked))
    if by_hand:
        allowed, why, by = by_hand[-1] == APPROVED, f"{by_hand[-1]} by hand", "hand"
    elif not failed:
        allowed, why, by = True, "approved by the rules in site.toml", "rules"
    else:
        allowed, by = False, "rules"
        why = f"{failed[0]}; to see the job and approve it: taciturn site approve site.toml"
    try:
        if not charged:
            account.can_pay(planned, what_for(site))
    except BudgetExceeded as error:
        allowed, why, by = False, str(error), "account"
    answer = APPROVED if allowed else REFUSED
    if log and (not before or (before[-1]["answer"], before[-1].get("by")) != (answer, by)):
        _write(answers, number, asked, answer, by)
    return Decision(allowed, why)


def answer_by_hand(site: Site, planned: Planned, account: Account, *, approve: bool) -> None:
    """Write the owner's own answer to the audit log; the owner's latest answer counts."""
    asked = question(site, planned)
    _write(audit_log(account), _number(site, asked), asked, APPROVED if approve else REFUSED, "hand")


def require(site: Site, planned: Planned, account: Account, *, charged: bool = False) -> None:
    """Raise an error if the site may not take part. This charges and sends nothing."""
    decision = decide(site, planned, account, charged=charged)
    if not decision.allowed:
        if not charged:
            account.can_pay(planned, what_for(site))  # a cost above the budget is `BudgetExceeded`
        raise WrongFiles(f"the job {site.job.name} is not approved by the owner of the table: {decision.why}")


def _misses(rules: ApprovalRules | None, asked: JobQuestion) -> Iterator[str]:
    """The rules that a job does not meet."""
    if rules is None:
        yield "site.toml has no rules in `approve`, and the job was not approved by hand"
        return
    if other := sorted(set(asked.kinds) - set(rules.kinds)):
        yield f"`approve.kinds` does not allow {', '.join(other)}"
    if other := sorted(set(asked.programs) - set(rules.programs)):
        yield f"`approve.programs` does not allow the program {other[0]}"
    if asked.by_site and not rules.by_site:
        yield "`approve.by_site` does not allow figures for single sites"
    unknown = () if rules.columns is None else sorted(set(asked.columns) - set(rules.columns))
    if unknown:
        yield f"`approve.columns` does not allow {', '.join(unknown)}"
    if rules.epsilon is not None and asked.epsilon > rules.epsilon:
        most = format_given(rules.epsilon)
        yield f"the job costs epsilon {format_cost(asked.epsilon)}, and `approve.epsilon` is {most}"


def _number(site: Site, asked: JobQuestion) -> str:
    """What an approval holds for: a hash of the question, its cost, the penalty, the noise, and the path of
    the rows' file (or the address of their database)."""
    facts = {**_plain(asked), "schedules": site.schedules.hex(), "rows": site.rows.fingerprint}
    return digest(facts)[:32]


def _write(log: AuditLog, number: str, asked: JobQuestion, answer: str, by: str) -> None:
    log.append({"question": number, "answer": answer, "by": by, **_plain(asked)})


def _plain(asked: JobQuestion) -> dict[str, Any]:
    """The question as JSON values; an infinite epsilon becomes None."""
    return asdict(asked) | {"epsilon": asked.epsilon if math.isfinite(asked.epsilon) else None}


def what_for(site: Site) -> str:
    """The text that names the site and its job in the account; all runs of the job share it."""
    return f"site {site.name} in job {site.job.name}, {site.job.hash.hex()[:12]}"

"""The JSON form of a certificate: the facts, the numbers, the texts, and a SHA-256 over all of them.

An epsilon of null means that no finite bound is known. A Renyi order of null means that epsilon is not a
Renyi bound. A table is a schedule: it has one number per round, and its last number also holds for all later
rounds. Sites with equal schedules share a table.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...core import checks
from ...core.canonical import digest
from ...core.errors import CertificateError, ParameterError
from ...core.types import Array
from ...core.versions import versions
from ..costs import ACCOUNTANTS, SiteCost
from ..facts import Columns, SiteFacts
from ..facts_json import budget_from, run_from, site_from, to_plain
from ..ledger.chain import Head
from ..mechanisms import MECHANISMS, Mechanism
from . import assumptions
from .claims import LATEST, Claims
from .released import Released
from .statement import statement

FORMATS = {f"taciturn certificate {number}": number for number in range(1, LATEST + 1)}
_PLANNED = ("eta", "scale", "output_scale")
_TEXTS = ("theorems", "conditions", "statement")
_LARGEST = 10_000_000  # the largest number of sites times rounds, which takes about a minute to verify
_MOST_MASKED = 10_000  # the most sites of a masked run, because `epsilon_against` has an entry for each site
_SHA256 = re.compile("[0-9a-f]{64}")
_CLOSE = 1e-9  # relative tolerance: another build of the special functions may differ in the last digits


# -- writing ----------------------------------------------------------------------------------------


def document(claims: Claims) -> dict[str, Any]:
    """The certificate as plain JSON values."""
    tables, new = _Tables(claims.form), claims.form > 1
    rows = zip(claims.sites, claims.budgets, claims.releases, claims.costs, strict=True)
    sites = [
        tables.site(facts, columns)
        | {"budget": None if limit is None else to_plain(limit)}
        | {name: _number(value) for name, value in cost._asdict().items()}
        for facts, limit, columns, cost in rows
    ]
    body: dict[str, Any] = {
        "format": f"taciturn certificate {claims.form}",
        "epsilon": _number(claims.epsilon),
        **({"charged_epsilon": _number(claims.charged_epsilon)} if new else {}),
        "delta": claims.delta,
        "pure_epsilon": _number(claims.pure_epsilon),
        "paper_epsilon": _number(claims.paper_epsilon),
        "mu": _number(claims.mu),
        "epsilon_against": [_number(epsilon) for epsilon in claims.against],
        "worst_site": claims.worst_site,
        "accountant": claims.accountant,
        "status": assumptions.status(claims),
        "statement": statement(claims),
        "theorems": assumptions.theorems(claims),
        "conditions": assumptions.conditions(claims),
        "run": to_plain(claims.run),
        "tables": tables.entries,
        "sites": sites,
        "ledger_head": None if claims.head is None else claims.head._asdict(),
        **({"released": None if claims.released is None else claims.released.to_plain()} if new else {}),
    }
    return body | {"sha256": digest(body)}


def text(body: Mapping[str, Any]) -> str:
    """The JSON text, with one line per entry, table and site."""
    lines = []
    for key, value in body.items():
        rows = value if key in ("tables", "sites") else ()
        entries = [json.dumps(entry, allow_nan=False) for entry in rows]
        shown = "[\n  " + ",\n  ".join(entries) + "\n ]" if entries else json.dumps(value, allow_nan=False)
        lines.append(f" {json.dumps(key)}: {shown}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


class _Tables:
    """The schedules of all sites as tables; equal schedules are stored once."""

    def __init__(self, form: int) -> None:
        self._form = form
        self.entries: list[list[float]] = []
        self._index: dict[bytes, int] = {}

    def site(self, facts: SiteFacts, columns: Columns) -> dict[str, Any]:
        """A site's facts and charges; each schedule is given by the index of its table."""
        plain = to_plain(facts)
        planned = {f"planned_{name}": self._place(np.array(plain.pop(name))) for name in _PLANNED}
        plain["dual_step"] = self._place(np.array(facts.dual_step))
        plain |= planned if self._form > 1 else {}
        plain["charged_rounds"] = int(columns.t.size)
        for name in ("eta", "scale", "output_scale", "degree"):
            plain[f"charged_{name}"] = self._place(getattr(columns, name))
        return plain

    def _place(self, values: Array) -> int | None:
        """The index of the table of a schedule; None for an empty one."""
        if values.size == 0:
            return None
        changes = np.flatnonzero(values[1:] != values[:-1])
        short = values[: changes[-1] + 2 if changes.size else 1]
        key = short.dtype.char.encode() + short.tobytes()
        if key not in self._index:
            self._index[key] = len(self.entries)
            self.entries.append(short.tolist())
        return self._index[key]


def _number(value: float | str | None) -> float | str | None:
    """The value itself; None for a number that is not finite."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


# -- reading ----------------------------------------------------------------------------------------


def read(source: str) -> dict[str, Any]:
    """The values in a certificate's JSON text. A duplicate key is refused."""
    try:
        body = json.loads(source, object_pairs_hook=_once, parse_constant=_refuse, parse_int=_whole)
    except (json.JSONDecodeError, RecursionError) as error:
        raise CertificateError(
            f"this is not a certificate: not valid JSON ({type(error).__name__})."
        ) from error
    if not isinstance(body, dict) or body.get("format") not in list(FORMATS):
        raise CertificateError(
            f"this is not a certificate: its `format` must be one of {', '.join(FORMATS)}."
        )
    return body


def checked_size(body: Mapping[str, Any]) -> None:
    """Raise if a certificate states too many releases or sites to verify, or numbers that do not agree."""
    planned, sites = body["run"]["rounds"], len(body["sites"])
    if not 0 < sites * checks.whole("rounds", planned, least=1) <= _LARGEST:
        raise CertificateError(
            f"the number of sites times rounds in the certificate must be between 1 and {_LARGEST:,}."
        )
    if MECHANISMS.get(str(body["run"]["method"]), Mechanism()).summed:
        network = checks.whole("sites", body["run"]["sites"], least=1)
        if network > _MOST_MASKED or len(body["epsilon_against"]) != network:
            raise CertificateError(
                f"the certificate of a masked run must state 1 to {_MOST_MASKED:,} sites, and one entry of "
                "`epsilon_against` for each site."
            )
    for entry in body["sites"]:
        if checks.whole("charged_rounds", entry["charged_rounds"]) > planned:
            raise CertificateError("the certificate states more charged rounds than were planned.")


def fields(body: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `Certificate`, from the JSON values."""
    try:
        checked_size(body)
        form = FORMATS[body["format"]]
        tables = [np.array(table, dtype=np.float64) for table in body["tables"]]
        return {
            "run": run_from(body["run"]),
            "sites": tuple(_site(entry, tables, form) for entry in body["sites"]),
            "budgets": tuple(budget_from(entry["budget"]) for entry in body["sites"]),
            "releases": tuple(_columns(entry, tables) for entry in body["sites"]),
            "costs": tuple(_cost(entry) for entry in body["sites"]),
            "head": _head(body["ledger_head"]),
            "form": form,
            "charged_epsilon": _bound(body["epsilon" if form == 1 else "charged_epsilon"]),
            "released": Released(**body["released"]) if form > 1 and body["released"] is not None else None,
            "delta": body["delta"],
            "worst_site": body["worst_site"],
            "against": tuple(_bound(epsilon) for epsilon in body["epsilon_against"]),
        } | {name: _bound(body[name]) for name in ("epsilon", "pure_epsilon", "paper_epsilon")}
    except KeyError as error:
        raise CertificateError(f"the certificate has no entry {error}.") from error
    except (TypeError, IndexError, ValueError, OverflowError) as error:
        reason = str(error) if isinstance(error, ParameterError) else "an entry has the wrong type."
        raise CertificateError(f"the certificate cannot be read: {reason}") from error


def _head(entry: Any) -> Head | None:
    if entry is None:
        return None
    head = Head(**entry)
    if checks.whole("ledger_head.rows", head.rows, least=1) and not _SHA256.fullmatch(head.digest):
        raise CertificateError("the certificate's `ledger_head` has no valid SHA-256.")
    return head


def _site(entry: Mapping[str, Any], tables: list[Array], form: int) -> SiteFacts:
    numbers = {"dual_step": entry["dual_step"]}
    numbers |= {name: None if form == 1 else entry[f"planned_{name}"] for name in _PLANNED}
    schedules = {name: () if row is None else tables[row].tolist() for name, row in numbers.items()}
    return site_from({name: entry[name] for name in ("site", "samples", "degree", "name")} | schedules)


def _columns(entry: Mapping[str, Any], tables: list[Array]) -> Columns:
    t = np.arange(1, entry["charged_rounds"] + 1)
    columns = []
    for name in ("eta", "scale", "output_scale", "degree"):
        number = entry[f"charged_{name}"]
        table = np.zeros(0) if number is None else tables[number]
        columns.append(table[np.minimum(t, len(table)) - 1])
    if not np.all((columns[3] < 2**31) & (np.floor(columns[3]) == columns[3])):
        raise CertificateError("the certificate contains a degree that is not a whole number.")
    return Columns(t, columns[0], columns[1], columns[2], columns[3].astype(np.int64))


def _cost(entry: Mapping[str, Any]) -> SiteCost:
    bound = {name: _bound(entry[name]) for name in ("paper_epsilon", "pure_epsilon", "epsilon")}
    accountant = entry["accountant"]
    if accountant is not None:
        checks.choice("accountant", accountant, ACCOUNTANTS)
    condition, order, mu = bool(entry["paper_condition"]), entry["order"], entry["mu"]
    return SiteCost(**bound, paper_condition=condition, order=order, accountant=accountant, mu=mu)


def _bound(value: Any) -> float:
    return math.inf if value is None else float(value)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise CertificateError("the certificate has the same key twice.")
    return entries


def _whole(digits: str) -> int:
    if len(digits) > 18:
        raise CertificateError("the certificate contains a whole number with more than 18 digits.")
    return int(digits)


def _refuse(name: str) -> float:
    raise CertificateError(
        f"the certificate contains {name}, which is not valid JSON; use null if there is no finite bound."
    )


# -- comparing --------------------------------------------------------------------------------------


def compare(stated: Mapping[str, Any], fresh: Mapping[str, Any]) -> None:
    """Raise unless all stated values equal the recomputed values; the error names the first difference."""
    skip = {"sha256", *_TEXTS} if notes(stated) else {"sha256"}
    _compare("", _without(stated, skip), _without(fresh, skip))
    if stated.get("sha256") != digest(_without(stated, {"sha256"})):
        raise CertificateError(
            "the certificate was changed after it was written: its `sha256` does not match."
        )


def notes(stated: Mapping[str, Any]) -> list[str]:
    """Notes on the check: texts that were not compared, and entries that an older format does not have."""
    version, found = stated["run"].get("versions", {}).get("taciturn", "unknown"), []
    if version != versions()["taciturn"]:
        found.append(
            f"The file says that version {str(version)[:20]!r} of taciturn wrote it. The texts in the file "
            "were not compared."
        )
    if FORMATS[stated["format"]] < LATEST:
        found.append(
            f"{stated['format']!r} is an earlier format: the texts in the file were not compared. A "
            "certificate of this format does not identify the model or the counts that were released. For a "
            "run that ended early, it counts only the charged rounds."
        )
    return found


def _without(body: Mapping[str, Any], keys: set[str]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key not in keys}


def _compare(path: str, stated: Any, fresh: Any) -> None:
    if isinstance(stated, Mapping) and isinstance(fresh, Mapping):
        odd = sorted(set(stated) ^ set(fresh))
        if odd:
            where = f"{path}.{odd[0]}" if path else odd[0]
            raise CertificateError(
                f"`{where[:60]}` is {'missing' if odd[0] in fresh else 'not an entry of a certificate'}."
            )
        for key in fresh:
            _compare(f"{path}.{key}" if path else key, stated[key], fresh[key])
    elif isinstance(stated, list) and isinstance(fresh, list) and len(stated) == len(fresh):
        for index, (old, new) in enumerate(zip(stated, fresh, strict=True)):
            _compare(f"{path}[{index}]", old, new)
    elif not _equal(stated, fresh):
        raise CertificateError(f"`{path}` is stated as {_short(stated)}, but the facts give {_short(fresh)}.")


def _equal(stated: Any, fresh: Any) -> bool:
    """Whether two values are equal. Floats may differ in their last digits, whole numbers may not."""
    numbers = [isinstance(value, int | float) and not isinstance(value, bool) for value in (stated, fresh)]
    if all(numbers) and isinstance(fresh, float):
        return math.isclose(stated, fresh, rel_tol=_CLOSE, abs_tol=1e-12)
    return type(stated) is type(fresh) and bool(stated == fresh)


def _short(value: Any) -> str:
    shown = json.dumps(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."

"""Ledger: an append-only record of the releases of every site, round by round.

A release is charged before it is made, and no charge is ever taken back. So a crash between the charge and
the release can only overstate the cost.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ...core import checks
from ...core.errors import LedgerError, ParameterError
from ...core.types import Array
from ..facts import Charge, Columns, RoundCharges, RunFacts, SiteBudget, SiteFacts
from .filter import filters

SiteBudgets = SiteBudget | Sequence[SiteBudget | None] | None
"""One budget for all sites; a list with a budget (or None) for each site; or None if no site has a budget."""

_ENTRY = np.dtype([("charged", "?"), ("eta", "f8"), ("scale", "f8"), ("output", "f8"), ("degree", "i8")])


class ChargedRun(Protocol):
    """The facts of a run, which a ledger and a certificate share."""

    @property
    def run(self) -> RunFacts: ...
    @property
    def sites(self) -> tuple[SiteFacts, ...]: ...
    @property
    def budgets(self) -> tuple[SiteBudget | None, ...]: ...


@runtime_checkable
class Ledger(ChargedRun, Protocol):
    """The interface of a ledger, to which releases are charged. The facts in a ledger never change."""

    @property
    def aborted(self) -> bool:
        """Whether a solver failed after its noise was drawn, at any site and for any output."""
        ...

    def charge(self, charge: Charge) -> None:
        """Record one release before it happens.

        Raises `BudgetExceeded` if the charge would exceed the site's budget, and `LedgerError` if this site
        was already charged for this round. After an error nothing is recorded, and nothing may be released.
        """
        ...

    def charge_round(self, charges: RoundCharges) -> None:
        """Charge several sites at once: all sites, or none if one of the charges is refused."""
        ...

    def columns(self, site: int) -> Columns:
        """All charges of a site so far."""
        ...


class Book(ABC):
    """The base class of the ledgers: it keeps all charges, and what each site has spent, in memory.

    A subclass may also store the charges elsewhere. `sites` need not contain all sites of the network.
    """

    def __init__(self, run: RunFacts, sites: Sequence[SiteFacts], budget: SiteBudgets = None) -> None:
        self.run = run
        self.sites = checked_sites(run, sites)
        self.budgets = checked_budgets(run, budget, len(self.sites))
        self.aborted = False
        self._filters = filters(run, self.sites, self.budgets)
        self._log = np.zeros((len(self.sites), run.rounds), dtype=_ENTRY)
        self._degrees = np.array([facts.degree for facts in self.sites])
        self._row = {facts.site: row for row, facts in enumerate(self.sites)}
        self._lock = threading.RLock()

    def charge(self, charge: Charge) -> None:
        self.charge_all([charge])

    def charge_round(self, charges: RoundCharges) -> None:
        """Record one release of each of several sites in one round, as `charge_all` does."""
        self.charge_all(list(charges.each()))

    def charge_all(self, charges: Sequence[Charge]) -> None:
        """Record one release of each of several sites: all releases, or none if one charge is refused."""
        if len({charge.site for charge in charges}) < len(charges):
            raise ParameterError("`charges` must contain at most one charge per site.")
        with self._lock:
            self._store(charges)

    @abstractmethod
    def _store(self, charges: Sequence[Charge]) -> None:
        """Admit and record these charges: all of them, or none."""

    def columns(self, site: int) -> Columns:
        row = self._row_of(site)
        with self._lock:
            at = np.flatnonzero(self._log["charged"][row])
            return Columns(at + 1, *(self._log[name][row, at] for name in (_ENTRY.names or ())[1:]))

    def _row_of(self, site: int) -> int:
        if site not in self._row:
            raise ParameterError(f"`site` must be one of the ledger's {len(self.sites)} sites; got {site}.")
        return self._row[site]

    def _admit(self, charge: Charge) -> Any:
        """What the site will have spent after this charge; None if the site has no budget. Raises if the
        charge is not allowed."""
        row = self._row_of(charge.site)
        check_charge(self.run, self.sites[row], self.budgets[row], charge)
        if self._log["charged"][row, charge.t - 1]:
            raise LedgerError(
                f"{self.sites[row].name} has been charged for round {charge.t} already. Send the same "
                "message again; do not draw fresh noise."
            )
        limit = self._filters[row]
        return None if limit is None else limit.after(charge)

    def _record(self, charge: Charge, spent: Any) -> None:
        row = self._row_of(charge.site)
        degree = charge.degree or self.sites[row].degree
        self._log[row, charge.t - 1] = (True, charge.eta, charge.scale, charge.output_scale or 0.0, degree)
        self.aborted = self.aborted or charge.aborted
        limit = self._filters[row]
        if limit is not None and spent is not None:
            limit.spent = spent


class MemoryLedger(Book):
    """A ledger in memory, for simulations, plans and tests. Its charges are lost when the process ends."""

    def charge_round(self, charges: RoundCharges) -> None:
        """Like `charge_all`, but a valid round of many sites without budgets is recorded in one step."""
        rows = np.array([self._row.get(site, -1) for site in charges.sites.tolist()])
        with self._lock:
            if not self._sound(charges, rows):
                super().charge_round(charges)  # charges site by site, and raises for the first invalid charge
                return
            values = (True, charges.eta, charges.scale, charges.output_scale, self._degrees[rows])
            for name, value in zip(_ENTRY.names or (), values, strict=True):
                self._log[name][rows, charges.t - 1] = 0.0 if value is None else value
            self.aborted = self.aborted or charges.aborted

    def _sound(self, charges: RoundCharges, rows: NDArray[np.int64]) -> bool:
        """Whether `check_charge` allows every charge, no site has a budget, and the round releases no sum."""
        run, t = self.run, charges.t
        if not len(self.run.sums) < t <= run.rounds or any(limit is not None for limit in self._filters):
            return False
        if not len(rows) or rows.min() < 0 or len(np.unique(rows)) < len(rows):
            return False
        if self._log["charged"][rows, t - 1].any():
            return False
        wanted = (True, run.noise != "none", run.output_noise is not None)
        given = (charges.eta, charges.scale, charges.output_scale)
        return all(
            values is None if not want else values is not None and bool(np.all(_in_range(values)))
            for values, want in zip(given, wanted, strict=True)
        )

    def _store(self, charges: Sequence[Charge]) -> None:
        admitted = [self._admit(charge) for charge in charges]
        for charge, spent in zip(charges, admitted, strict=True):
            self._record(charge, spent)


def _in_range(numbers: Array) -> NDArray[np.bool_]:
    return (numbers >= checks.LEAST) & (numbers <= checks.MOST)


def checked_sites(run: RunFacts, sites: Sequence[SiteFacts]) -> tuple[SiteFacts, ...]:
    """The sites as a tuple. Raises if a site is listed twice or does not belong to the network."""
    facts = tuple(sites)
    numbers = [entry.site for entry in facts]
    if not facts or len(set(numbers)) < len(facts):
        raise ParameterError(
            f"`sites` must contain at least one site, and no site twice; got {len(facts)} entries."
        )
    checks.among_sites("site", max(numbers), run.sites)
    checks.among_sites("degree", max(entry.degree for entry in facts), run.sites)
    summed = run.mechanism.summed
    if min(entry.degree for entry in facts) == 0 and not (summed and run.sites == 1):
        raise ParameterError("`degree`, the number of neighbours of a site, must be at least 1; got 0.")
    odd = [entry.name for entry in facts if bool(entry.dual_step) == summed]
    if odd:
        needs = "must be left out with masked sums" if summed else "must be given"
        raise ParameterError(f"`dual_step` of {odd[0]} {needs}.")
    if run.sums:
        _check_total(run, [entry.samples for entry in facts])
    return facts


def _check_total(run: RunFacts, samples: Sequence[int]) -> None:
    """Raise unless the numbers of records (or persons) of these sites agree with the total in the facts.

    A person may have rows at several sites; then the total is only compared with the largest site.
    """
    stated, name = (run.persons, "persons") if run.unit == "person" else (run.records, "records")
    known = sum(samples) if run.sites_per_person == 1 else max(samples)
    whole = len(samples) == run.sites and run.sites_per_person == 1
    if stated is None or known > stated or (whole and known != stated):
        have = "the given sites together have" if run.sites_per_person == 1 else "one of the given sites has"
        raise ParameterError(
            f"`{name}` must be the total over all sites of the network; got {stated}, but {have} {known}."
        )
    if run.largest is None or run.largest < max(samples):
        raise ParameterError(
            f"`largest` must be at least {max(samples)}, the number of {name} at the largest site; "
            f"got {run.largest}."
        )


def checked_budgets(run: RunFacts, budget: SiteBudgets, sites: int) -> tuple[SiteBudget | None, ...]:
    """One budget, or None, for each site."""
    if budget is None or isinstance(budget, SiteBudget):
        limits: tuple[SiteBudget | None, ...] = (budget,) * sites
    else:
        limits = tuple(budget)
    if len(limits) != sites:
        raise ParameterError(f"`budget` must have one entry per site, {sites}; got {len(limits)}.")
    if run.mechanism.summed and any(limit is not None and limit.order is not None for limit in limits):
        raise ParameterError("`order` must be None for masked sums: a budget for masked sums needs no order.")
    return limits


def check_charge(run: RunFacts, site: SiteFacts, budget: SiteBudget | None, charge: Charge) -> None:
    """Raise unless the numbers of a charge fit the run's facts."""
    if not 1 <= charge.t <= run.rounds:
        raise ParameterError(f"`t` must be within the planned rounds 1..{run.rounds}; got {charge.t}.")
    if charge.t <= len(run.sums):
        _check_masked(run, site, charge)
        return
    checks.magnitude("eta", charge.eta)
    _check_scale("scale", charge.scale or None, run.noise != "none", charge.t)
    _check_scale("output_scale", charge.output_scale, run.output_noise is not None, charge.t)
    if charge.degree is None or charge.degree == site.degree:
        return
    if not 1 <= charge.degree < run.sites:
        raise ParameterError(f"`degree` must be within 1..{run.sites - 1}; got {charge.degree}.")
    if budget is None or budget.order is None:
        raise LedgerError(
            f"{site.name} has {site.degree} neighbours (its degree), but the charge of round {charge.t} "
            f"states {charge.degree}. If the degree of a site may change, give the site a `SiteBudget` with "
            "an `order` that is fixed before the run."
        )


def _check_masked(run: RunFacts, site: SiteFacts, charge: Charge) -> None:
    """Raise unless the charge of a sum has the noise that the facts state for the round, and nothing else."""
    planned = run.sums[charge.t - 1].std
    if charge.eta != 0 or charge.output_scale is not None or charge.degree not in (None, site.degree):
        raise ParameterError(
            f"the charge of a sum must state only `site`, `t` and `scale`; check round {charge.t}."
        )
    if charge.scale != planned:
        raise ParameterError(
            f"`scale` must be {planned:g}, as the run's facts state; got {charge.scale:g} at t={charge.t}."
        )


def _check_scale(name: str, scale: float | None, noisy: bool, t: int) -> None:
    if not noisy and scale is not None:
        missing = "output noise" if name == "output_scale" else "noise in the updates"
        raise ParameterError(
            f"`{name}` must be left out: the facts of the run state no {missing}; got {scale:g} at t={t}."
        )
    if noisy:
        checks.magnitude(name, 0.0 if scale is None else scale)

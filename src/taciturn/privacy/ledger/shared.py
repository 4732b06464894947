"""A ledger that K runs (outputs) on the same records share. One charge covers one round of all K."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...core.errors import LedgerError
from ..facts import Charge, Columns, RoundCharges, RunFacts, SiteBudget, SiteFacts
from .memory import Ledger


class SharedLedger:
    """A ledger in which the first release of a site in a round is charged for all outputs, as in one-vs-rest.

    The facts of the ledger state the number of outputs that a charge covers. In each round a site may make
    this number of releases. The ledger refuses further releases, and releases that differ from the charge.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._left: dict[tuple[int, int], tuple[Charge, int]] = {}
        self._aborted = False
        self._lock = threading.Lock()

    @property
    def run(self) -> RunFacts:
        return self.ledger.run

    @property
    def sites(self) -> tuple[SiteFacts, ...]:
        return self.ledger.sites

    @property
    def budgets(self) -> tuple[SiteBudget | None, ...]:
        return self.ledger.budgets

    @property
    def aborted(self) -> bool:
        return self._aborted or self.ledger.aborted

    def charge(self, charge: Charge) -> None:
        """Count a release of one output before it happens. Only a site's first one in a round is charged."""
        self._charge([charge], lambda _: self.ledger.charge(charge))

    def charge_round(self, charges: RoundCharges) -> None:
        """Count a release of each of several sites: all releases, or none if one of them is refused."""
        self._charge(list(charges.each()), lambda new: self.ledger.charge_round(_only(charges, new)))

    def columns(self, site: int) -> Columns:
        return self.ledger.columns(site)

    def _charge(self, charges: list[Charge], pay: Callable[[NDArray[np.bool_]], None]) -> None:
        """Count one output for each charge. `pay` records the charges that are not in the ledger yet."""
        with self._lock:
            found = [self._left.get((charge.site, charge.t)) for charge in charges]
            for charge, known in zip(charges, found, strict=True):
                paid, left = known or (charge, 1)
                if not left or paid._replace(aborted=False) != charge._replace(aborted=False):
                    raise LedgerError(
                        f"the ledger was charged for {self.run.outputs} releases in round {charge.t} of site "
                        f"{charge.site}, all with the same settings. This release is refused: either "
                        f"{self.run.outputs} releases were made already, or this release has settings "
                        "other than those in the charge."
                    )
            new = np.array([known is None for known in found])
            if new.any():
                pay(new)
            for charge, known in zip(charges, found, strict=True):
                paid, left = known or (charge, self.run.outputs)
                self._left[charge.site, charge.t] = paid, left - 1
                self._aborted = self._aborted or charge.aborted


def _only(charges: RoundCharges, keep: NDArray[np.bool_]) -> RoundCharges:
    """The charges of the sites for which `keep` is True."""
    return charges._replace(
        sites=charges.sites[keep],
        eta=charges.eta[keep],
        scale=None if charges.scale is None else charges.scale[keep],
        output_scale=None if charges.output_scale is None else charges.output_scale[keep],
    )

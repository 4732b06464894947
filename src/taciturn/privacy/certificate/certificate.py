"""Certificate: the privacy guarantee of a run; every number is computed from the facts in the certificate."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...core.errors import CertificateError, ParameterError, TaciturnWarning
from ...core.formatting import format_cost, format_delta
from ...core.notebook import Panel, Picture, draw_panels, facts_table
from ..facts import ABORTED
from ..ledger.memory import Ledger
from ..marks import NOT_PROVEN
from . import assumptions, document
from .claims import LATEST, Claims, epsilon_curve
from .released import Released, check_fits
from .statement import statement
from .summary import cost_line, epsilon_scale


@dataclass(frozen=True, eq=False, repr=False)
class Certificate(Claims):
    """The (epsilon, delta) of the least protected site, and all facts from which epsilon is computed.

    epsilon, delta : replacing any one record, at any one site, changes the probability of any outcome by at
        most the factor exp(epsilon), except with probability delta. For masked sums, epsilon holds if at most
        `run.colluding` of the sites that do not hold this record collude; `epsilon_against(c)` is the epsilon
        if c of them collude. For a run that ended early, epsilon is the cost of all planned rounds, because
        the decision to stop may depend on the messages.
    charged_epsilon : the epsilon of only those rounds that the ledger records; it records a round before the
        messages are sent. This epsilon holds only if the decision to stop did not depend on the messages.
    released : the digest of the model, vectors, counts or totals that this certificate is about; None for a
        plan, or if only a ledger was certified.
    mu : for masked sums, the run is mu-GDP (Gaussian differential privacy) if `run.colluding` sites collude.
        `epsilon` also includes the small additional cost of discrete noise. None for other runs.
    pure_epsilon : epsilon at delta = 0; inf for Gaussian noise.
    paper_epsilon : the bound of [ZKL18, Thm 3]; inf if the theorem does not cover the run.
    worst_site : the site with the largest epsilon.
    accountant : the bound that gave epsilon at the worst site: "gaussian", "renyi" or "pure", whichever is
        smallest.
    stated : the JSON values that the certificate was read from; None if it was not read.

    `run.certificate(delta)`, `fitted.certificate_` and `taciturn.plan(...).certificate` are certificates.
    `statement()` gives the certificate in words, `to_json()` gives all of it as JSON, and
    `from_json(text).verify()` computes every number again from the facts.
    """

    stated: Mapping[str, Any] | None = field(default=None, repr=False)

    @classmethod
    def from_ledger(
        cls, ledger: Ledger, delta: float, released: Released | None = None, form: int = LATEST
    ) -> Certificate:
        """The certificate of a ledger. It states the cost of the planned run, even if the run ended early."""
        releases = tuple(ledger.columns(facts.site) for facts in ledger.sites)
        head = getattr(ledger, "head", None)
        run = ledger.run
        if ledger.aborted:
            run = replace(run, marks=(*run.marks, ABORTED))
        return cls.from_facts(run, ledger.sites, ledger.budgets, releases, delta, head, released, form)

    def of(self, released: Released) -> Certificate:
        """The same certificate with the digest of this release."""
        check_fits(self.run, self.rounds, released)
        return replace(self, released=released, stated=None)

    def check_released(self, found: Released) -> None:
        """Raise `CertificateError` unless this certificate was written for exactly this release.

        A certificate of format 1 does not name a release. So this method only checks that a run with the
        facts of the certificate can release something of this kind and shape.
        """
        if self.form == 1:
            check_fits(self.run, self.rounds, found)
            return
        if self.released is None:
            raise CertificateError(
                "the certificate does not say what was released: it was made for a plan, or for a ledger "
                "alone."
            )
        for name in ("kind", "shape", "sha256"):
            here, there = getattr(found, name), getattr(self.released, name)
            if here != there:
                about = "other values" if name == "sha256" else f"the {name} {there}, not {here}"
                raise CertificateError(
                    f"the certificate belongs to another release: it was written for {about}."
                )

    def __repr__(self) -> str:
        about = f"epsilon={format_cost(self.epsilon)}, delta={format_delta(self.delta)}"
        kind = "simulated" if self.run.simulated else "planned" if self.run.planned else "real"
        return f"Certificate({about}, sites={self.run.sites}, rounds={self.rounds}, {kind})"

    def _repr_html_(self) -> str:
        facts = {
            "status": assumptions.status(self),
            "sites": f"{self.run.sites}",
            "rounds": f"{self.rounds} of {self.run.rounds}",
            "noise": f"{self.run.noise}, {self.run.method}",
        }
        pictures = {}
        if math.isfinite(self.epsilon):
            facts["scale"], pictures = "", {"scale": epsilon_scale(self.epsilon)}
        return facts_table("Certificate", facts, cost_line(self), folded=self.statement(), pictures=pictures)

    def plot(self) -> Picture:
        """The worst site's epsilon after each round."""
        curve = Panel("What the run cost", f"epsilon at delta = {self.delta:g}", epsilon_curve(self))
        return draw_panels([curve], "SIMULATED" if self.run.simulated else "")

    def statement(self) -> str:
        """The certificate as text, for readers who are not engineers."""
        return statement(self)

    def to_json(self) -> str:
        """The certificate as a text that `from_json` reads back and anyone may verify."""
        return document.text(self.stated if self.stated is not None else document.document(self))

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """The certificate in a JSON text, unchecked: `verify` checks its numbers."""
        stated = document.read(text)
        return cls(**document.fields(stated), stated=stated)

    def verify(self) -> None:
        """Compute every number again from the facts. A `CertificateError` names the first wrong number.

        A `TaciturnWarning` is issued for each entry of `notes`, such as a part that was not compared.
        """
        self.check()
        for note in self.notes:
            warnings.warn(note, TaciturnWarning, stacklevel=2)

    @property
    def notes(self) -> list[str]:
        """The warnings of `verify`: parts that it cannot compare, and a cost that is stated, not proven."""
        found = [] if self.stated is None else document.notes(self.stated)
        return found + [f"The figures are {NOT_PROVEN}."] * (self.run.stated is not None)

    def check(self) -> None:
        """Like `verify`, but without warnings; `notes` contains the texts of the warnings."""
        try:
            fresh = Certificate.from_facts(*self.facts)
        except (ValueError, ArithmeticError) as error:
            reason = str(error) if isinstance(error, ParameterError) else "a number is out of range."
            raise CertificateError(f"the certificate's facts are inconsistent: {reason}") from error
        if self.run.where in ("folders", "network") and self.head is None:
            raise CertificateError(
                "the certificate of a site must name its ledger; `ledger_head` is missing."
            )
        stated = document.document(self) if self.stated is None else self.stated
        document.compare(stated, document.document(fresh))

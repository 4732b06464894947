"""Certificate: what may be claimed of a run; every number follows from the facts that it carries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...errors import CertificateError, ParameterError
from ...notebook import Panel, Picture, draw_panels, facts_table
from ..accounting.shown import rounded_up, shown_delta
from ..facts import ABORTED
from ..ledger.memory import Ledger
from . import document, grounds
from .claims import Claims, epsilon_curve
from .statement import statement


@dataclass(frozen=True, eq=False, repr=False)
class Certificate(Claims):
    """The worst site's (epsilon, delta), and all it rests on.

    epsilon, delta : replacing any one record, at any one site, changes no outcome's chance by more than the
        factor exp(epsilon), but for a probability delta. Of masked sums: against `run.colluding` other sites;
        `epsilon_against(c)` says what is left if c of them work together.
    mu : masked sums are mu-GDP against those colluders, up to the slack that `epsilon` includes; else None.
    pure_epsilon : the same with delta = 0; inf for Gaussian noise.
    paper_epsilon : the bound of [ZKL18, Thm 3]; inf where the theorem is not about such a run.
    worst_site : the number of the site with the largest epsilon.
    accountant : how its epsilon was found, "gaussian", "renyi" or "pure": the smallest that holds.

    `run.certificate(delta)`, `fitted.certificate_` and `taciturn.plan(...).certificate` are certificates.
    `statement()` says it in words, `to_json()` writes all of it, and `from_json(text).verify()` computes
    every number again from the facts.
    """

    stated: Mapping[str, Any] | None = field(default=None, repr=False)

    @classmethod
    def from_ledger(cls, ledger: Ledger, delta: float) -> Certificate:
        """What was charged so far, whether or not it was released."""
        releases = tuple(ledger.columns(facts.site) for facts in ledger.sites)
        head = getattr(ledger, "head", None)
        run = ledger.run
        if ledger.aborted:
            run = replace(run, marks=(*run.marks, ABORTED))
        return cls.from_facts(run, ledger.sites, ledger.budgets, releases, delta, head)

    def __repr__(self) -> str:
        about = f"epsilon={rounded_up(self.epsilon)}, delta={shown_delta(self.delta)}"
        kind = "simulated" if self.run.simulated else "planned" if self.run.planned else "real"
        return f"Certificate({about}, sites={self.run.sites}, rounds={self.rounds}, {kind})"

    def _repr_html_(self) -> str:
        facts = {
            "epsilon": f"{rounded_up(self.epsilon)} at delta = {shown_delta(self.delta)}",
            "status": grounds.status(self),
            "sites": f"{self.run.sites}",
            "rounds": f"{self.rounds} of {self.run.rounds}",
            "noise": f"{self.run.noise}, {self.run.method}",
        }
        return facts_table("Certificate", facts, self.statement())

    def plot(self) -> Picture:
        """The worst site's epsilon after each round."""
        curve = Panel("What the run cost", f"epsilon at delta = {self.delta:g}", epsilon_curve(self))
        return draw_panels([curve], "SIMULATED" if self.run.simulated else "")

    def statement(self) -> str:
        """What this means, for a reader who is not an engineer."""
        return statement(self)

    def to_json(self) -> str:
        """The certificate as a text that `from_json` reads back and anyone may verify."""
        return document.text(self.stated if self.stated is not None else document.document(self))

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """A certificate as it is stated; `verify` says whether it is true."""
        stated = document.read(text)
        return cls(**document.fields(stated), stated=stated)

    def verify(self) -> None:
        """Compute every number again from the facts; `CertificateError` names the first that differs."""
        facts = self.run, self.sites, self.budgets, self.releases, self.delta, self.head
        try:
            fresh = Certificate.from_facts(*facts)
        except (ValueError, ArithmeticError) as error:
            reason = str(error) if isinstance(error, ParameterError) else "they are out of all range."
            raise CertificateError(f"the certificate's facts make no sense: {reason}") from error
        if self.run.where in ("folders", "network") and self.head is None:
            raise CertificateError("a site's certificate names its ledger; `ledger_head` is missing.")
        stated = document.document(self) if self.stated is None else self.stated
        document.compare(stated, document.document(fresh))

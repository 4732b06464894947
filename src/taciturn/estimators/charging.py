"""What a fit spends, on record: all outputs of a round are one charge, made before the first is released."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path

from ..admm.run import Run
from ..errors import ParameterError
from ..privacy.certificate.certificate import Certificate
from ..privacy.facts import Ceiling, Charge, RunFacts, SiteFacts
from ..privacy.ledger.disk import SqliteLedger
from ..privacy.ledger.memory import MemoryLedger


@dataclass(frozen=True)
class Joint:
    """One run per output, all on the same records: what is to be said of them together."""

    outputs: int
    names: tuple[str, ...]
    marks: tuple[str, ...]

    def facts(self, run: RunFacts, sites: Sequence[SiteFacts]) -> tuple[RunFacts, list[SiteFacts]]:
        """The facts of one output's run, made those of all."""
        named = [replace(site, name=name) for site, name in zip(sites, self.names, strict=True)]
        return replace(run, outputs=self.outputs, marks=(*run.marks, *self.marks)), named

    def certificate(self, first: Run, delta: float) -> Certificate:
        """What all outputs together cost: every record is in each of them."""
        kept = first.ledger
        joint = MemoryLedger(*self.facts(kept.run, kept.sites))
        for site in kept.sites:
            t, eta, scale, output, _ = kept.columns(site.site)
            for k in range(len(t)):
                shift = float(output[k]) if kept.run.output_noise else None
                joint.charge(Charge(site.site, int(t[k]), float(eta[k]), float(scale[k]), shift))
        return Certificate.from_ledger(joint, delta=delta)


@dataclass(frozen=True)
class Journal:
    """A new SQLite file that a fit is charged to, round by round, before anything is released.

    marks : what its certificate must tell besides.
    """

    path: str | PathLike[str]
    marks: tuple[str, ...] = ()

    def check(self, seed: int | None) -> None:
        """Raise unless it can be the record of a real fit."""
        if seed is not None:
            raise ParameterError(
                "`ledger` must be None with a `random_state`: noise that can be replayed protects nobody, "
                "so there is nothing to record."
            )
        if Path(self.path).exists():
            raise ParameterError(
                f"`ledger` must be a new file; got {fspath(self.path)}, which exists. Every fit spends "
                "anew, and has a record of its own."
            )

    def open(
        self, joint: Joint, ceiling: Ceiling | None, run: RunFacts, sites: Sequence[SiteFacts]
    ) -> SqliteLedger:
        """A ledger for the joint facts of all outputs."""
        told = replace(joint, marks=(*joint.marks, *self.marks))
        return SqliteLedger(Path(self.path), *told.facts(run, sites), ceiling)

    def certificate(self, delta: float) -> Certificate:
        """What is on record."""
        with SqliteLedger(Path(self.path), readonly=True) as ledger:
            return Certificate.from_ledger(ledger, delta=delta)


def as_journal(ledger: str | PathLike[str] | Journal | None) -> Journal | None:
    """A path as a journal."""
    if ledger is None or isinstance(ledger, Journal):
        return ledger
    if not isinstance(ledger, str | PathLike):
        raise ParameterError(f"`ledger` must be a path; got {type(ledger).__name__}.")
    return Journal(ledger)

"""The record of a run: the loss, accuracy and privacy cost of every round, and the vectors of the sites."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..core import checks
from ..core.errors import DataError, MissingExtra, ParameterError
from ..core.notebook import Panel, Picture, draw_panels, facts_table
from ..core.types import Array
from ..privacy.certificate.certificate import Certificate
from ..privacy.certificate.claims import paper_curve
from ..privacy.certificate.released import Released
from ..privacy.ledger.memory import Ledger
from .admm.updates import network_average


@dataclass(frozen=True)
class Run:
    """The record of a run: of a simulation, or of a real run in one process.

    loss : (repeats, rounds), L(t) of [ZKL18]: the mean over sites of each site's mean loss on its own rows.
    accuracy : (repeats, rounds), the mean over sites of the share of rows classified correctly, or of the
        mean absolute error of a regression. Loss and accuracy come from the rows, and no noise is added to
        them, so do not publish them. Both are nan if they were not measured.
    consensus_gap : (repeats, rounds), the largest distance of a site's vector from the mean of all vectors.
    coef : (repeats, sites, features), the vector of each site after the last round.
    history : (rounds, repeats, sites, features), every released vector; None unless `history=True`.
    settings : the settings of the run, as plain JSON.
    coordinates : (repeats, features, features), the matrix V of a run in whitened coordinates (linear
        combinations of the columns that vary equally); None for other runs. A run in whitened coordinates
        replaces a row x by V'x, scaled to norm 1 if it is longer. So the product of `coef` and x is the score
        of x only if ||V'x|| <= 1. For other rows the product has the right sign, but is too large. `decide`
        scales rows as the run does.
    """

    loss: Array
    accuracy: Array
    consensus_gap: Array
    coef: Array
    history: Array | None
    ledger: Ledger
    settings: Mapping[str, Any]
    coordinates: Array | None = None

    @property
    def privacy_loss(self) -> Array:
        """(rounds,): P(t) of [ZKL18], the sum over rounds 1..t of C (1.4 c1 + alpha) / (eta V B).

        The sum differs between sites; P(t) is the largest one.
        """
        return paper_curve(self.ledger)

    def certificate(self, delta: float = 1e-5, *, large_delta: bool = False) -> Certificate:
        """The privacy cost of the whole run for one record, or for one person if the problem names persons.

        For a real run, a delta above 1 / (number of records or persons) needs `large_delta=True`.
        """
        if not self.ledger.run.simulated:
            units = self.ledger.run.persons or sum(facts.samples for facts in self.ledger.sites)
            checks.usual_delta(checks.probability("delta", delta), units, insisted=large_delta)
        return Certificate.from_ledger(self.ledger, delta, Released.of("vectors", self.coef))

    def average(self, last: int = 1) -> Array:
        """(repeats, features): the mean of the released vectors over the sites and the `last` rounds.

        This is post-processing of released vectors, so it costs no privacy. `last` > 1 needs `history=True`.
        """
        if self.coordinates is not None:
            raise ParameterError(
                "`average` is not defined in whitened coordinates: such a run shortens long rows, so no "
                "single vector gives the scores. Use `run.decide(X)`."
            )
        if checks.whole("last", last, least=1) == 1:
            return network_average(self.coef)
        if self.history is None or last > len(self.history):
            raise ParameterError(
                f"`last` must be 1, or at most the number of rounds in a run with `history=True`; got {last}."
            )
        return np.asarray(network_average(self.history[-last:]).mean(axis=0))

    def decide(self, X: Any, weights: ArrayLike | None = None) -> Array:
        """(repeats, rows): the score f.x of each row x, where f is the average model over the sites.

        X : rows, encoded like those of the problem.
        weights : the weights of the sites in the average, such as `plan.weights`; by default all are equal.
        """
        from ..data.tables.clipping import whitened_factors  # loads scikit-learn

        f = network_average(self.coef, weights)
        if np.ndim(X) != 2 or X.shape[1] != f.shape[1]:
            raise DataError(f"`X` must have {f.shape[1]} columns, as in the run; got shape {np.shape(X)}.")
        z = np.asarray(X @ f.T).T
        for k, V in enumerate(() if self.coordinates is None else self.coordinates):
            z[k] *= whitened_factors(X, np.column_stack([V.T, np.zeros(len(V))]))
        return z

    def to_frame(self) -> Any:
        """A tidy pandas frame: one row per repeat and round. `privacy_loss` is equal in all repeats."""
        try:
            import pandas
        except ImportError as error:
            raise MissingExtra("pandas", "tables") from error
        repeats, rounds = self.loss.shape
        return pandas.DataFrame(
            {
                "repeat": np.repeat(np.arange(repeats), rounds),
                "round": np.tile(np.arange(1, rounds + 1), repeats),
                "loss": self.loss.ravel(),
                "accuracy": self.accuracy.ravel(),
                "consensus_gap": self.consensus_gap.ravel(),
                "privacy_loss": np.tile(self.privacy_loss, repeats),
            }
        )

    @property
    def _quality(self) -> tuple[str, str]:
        """The name and the description of the quantity in `accuracy`."""
        regression = self.ledger.run.loss.kind == "regression"
        return ("Error", "mean absolute error") if regression else ("Accuracy", "share classified correctly")

    def plot(self) -> Picture:
        """Plot loss, accuracy or error, and disagreement by round: the mean and the range over repeats."""
        panels = [
            Panel("Loss", "mean loss of the sites", self.loss),
            Panel(*self._quality, self.accuracy),
            Panel("Disagreement", "largest distance from the mean", self.consensus_gap),
        ]
        measured = [panel for panel in panels if not np.isnan(panel.curves).all()]
        return draw_panels(measured, "SIMULATED" if self.settings.get("simulated") else "")

    def _repr_html_(self) -> str:
        repeats, rounds = self.loss.shape
        facts = {"rounds": f"{rounds}", "repeats": f"{repeats}", "sites": f"{self.coef.shape[1]}"}
        for name, curve in (("loss", self.loss), (self._quality[0].lower(), self.accuracy)):
            if not np.isnan(curve).all():
                facts[name] = f"{curve[:, -1].mean():.4f} after the last round"
        facts["method"] = str(self.settings.get("method", ""))
        note = "SIMULATED: the noise can be replayed, so this run protects nobody."
        return facts_table("Run", facts, note if self.settings.get("simulated") else "")

    def __repr__(self) -> str:
        repeats, rounds = self.loss.shape
        sites, loss = self.coef.shape[1], self.loss[:, -1].mean()
        return f"Run(rounds={rounds}, repeats={repeats}, sites={sites}, loss={loss:.4f})"


_TOGETHER = 256  # number of sites whose distances are computed at a time


class Recorder:
    """Collects the record of a run round by round; `finish` returns the record."""

    def __init__(self, rounds: int, repeats: int, *, history: bool) -> None:
        self.loss, self.accuracy, self.consensus_gap = np.empty((3, repeats, rounds))
        self.history: list[Array] | None = [] if history else None

    def record(self, t: int, f: Array, losses: Array, accuracies: Array) -> None:
        """Add round t. f has the shape (sites, repeats, d); losses and accuracies have (sites, repeats)."""
        self.loss[:, t - 1] = losses.mean(axis=0)
        self.accuracy[:, t - 1] = accuracies.mean(axis=0)
        self.consensus_gap[:, t - 1] = largest_distance(f, f.mean(axis=0))
        if self.history is not None:
            self.history.append(f.transpose(1, 0, 2).copy())

    def finish(
        self, f: Array, ledger: Ledger, settings: Mapping[str, Any], coordinates: Array | None = None
    ) -> Run:
        """The complete record; f contains the vectors after the last round, (sites, repeats, d)."""
        coef, history = f.transpose(1, 0, 2).copy(), None if self.history is None else np.stack(self.history)
        curves = self.loss, self.accuracy, self.consensus_gap
        return Run(*curves, coef, history, ledger, settings, coordinates)


def largest_distance(f: Array, mean: Array) -> Array:
    """(repeats,): the largest distance of a site's vector from `mean`; f is (sites, repeats, d)."""
    lots = (f[first : first + _TOGETHER] for first in range(0, len(f), _TOGETHER))
    return np.asarray(np.max([np.linalg.norm(lot - mean, axis=2).max(axis=0) for lot in lots], axis=0))

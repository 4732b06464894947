"""Proxy rows: public rows in place of the private rows, generated from public facts or given by the user.

Plans are compared on proxy rows, never on the private rows: a choice that depends on the private rows would
itself reveal facts about them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core import checks
from ..core.errors import DataError, ParameterError
from ..core.types import Array
from ..data.tables.column_types import Category
from ..data.tables.schema import Schema
from ..objective import Loss, Problem
from ..rng import SeededStreams

_SPREAD = 2.0  # standard deviation of the margins: it determines how well the classes can be separated
_LEAN = -1.0  # mean of the margins: below 0, so the class +1 is rarer


@dataclass(frozen=True, eq=False)
class Proxy:
    """Rows X of norm at most 1, their labels y, the model (`truth`) of the labels, and the rows' origin."""

    X: Array
    y: Array
    truth: Array
    origin: str

    def spectrum(self, loss: Loss) -> tuple[Array, Array]:
        """Eigenvalues h of the mean Hessian of the loss at the true model, and the squared component of the
        true model along each eigenvector.

        Only some of the rows are used, and only eigenvectors in the span of these rows: directions outside of
        the span do not change the loss.
        """
        some = slice(2_000 if self.X.shape[1] <= 600 else 400)
        X, y = self.X[some], self.y[some]
        z = X @ self.truth
        z = z * y if loss.kind == "classification" else y - z
        S = X * np.sqrt(loss.curvature(z) / len(z))[:, None]
        if S.shape[1] <= S.shape[0]:
            h, Q = np.linalg.eigh(S.T @ S)
            return np.maximum(h, 0.0), np.square(Q.T @ self.truth)
        h, U = np.linalg.eigh(S @ S.T)
        h = np.maximum(h, 0.0)
        along = np.square(U.T @ (S @ self.truth))
        return h, np.where(h > 1e-14, along / np.maximum(h, 1e-14), 0.0)


def generate_proxy(d: int, rows: int, kind: str, *, schema: Schema | None = None, seed: int = 0) -> Proxy:
    """Generate rows like typical encoded data: numeric and categorical columns that share a hidden factor.

    Without a schema, about a third of the columns are numeric; the others are categories of eight values.
    Rows are clipped to norm 1, like the rows of the encoder.
    """
    d, rows = checks.whole("dimension", d, least=1), checks.whole("rows", rows, least=2)
    generator = SeededStreams(seed).generator(repeat=0, site=0, purpose="proxy", t=1)
    X = _table(_widths(d, schema), d, rows, generator)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0) * (1 + 1e-12)
    truth = _model(X, generator)
    margins = X @ truth
    if kind == "regression":
        y = margins / _SPREAD + 0.3 * generator.standard_normal(rows)
        truth = truth / _SPREAD
    else:
        y = np.where(generator.random(rows) < 1 / (1 + np.exp(-margins)), 1.0, -1.0)
    origin = "generated from the dimension" if schema is None else "generated from the schema"
    return Proxy(X, y, truth, origin)


def read_proxy(X: Any, y: Any, d: int, loss: Loss) -> Proxy:
    """Proxy rows that the user declares public, in random order, with a model fitted to them."""
    try:
        features, labels = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError("`proxy` must be (X, y) with numbers; class labels are -1 and +1.") from None
    if labels.ndim != 1 or features.ndim != 2 or features.shape != (len(labels), d):
        raise DataError(f"`proxy` must be (X, y): X with {d} columns, and a label in y for each row of X.")
    if len(labels) < 10:
        raise DataError(f"`proxy` must have at least 10 rows; got {len(labels)}.")
    if np.linalg.norm(features, axis=1).max() > 1 + 1e-9:
        raise DataError("`proxy` must have rows of norm at most 1, encoded as the private rows are.")
    order = SeededStreams(0).generator(repeat=0, site=0, purpose="proxy", t=2).permutation(len(labels))
    fitted = Problem([(features, labels)], loss=loss, C=1.0, regularization=1e-4).optimum(1e-4)
    return Proxy(features[order], labels[order], fitted, "given by the user")


def _widths(d: int, schema: Schema | None) -> list[int]:
    """The number of one-hot features of each column; 0 marks a numeric column, which becomes one feature.

    The features that are left over, such as an intercept, are constant.
    """
    if schema is not None:
        widths = [len(field.values) if isinstance(field, Category) else 0 for field in schema]
        width = sum(max(1, entry) for entry in widths)
        if d - width not in (0, 1):
            raise ParameterError(
                f"`dimension` must be {width}, or {width + 1} with an intercept, for this schema; got {d}."
            )
        return widths
    widths, left = [], d - 1
    while left > 0:
        widths.append(0 if len(widths) % 3 == 0 or left < 2 else min(8, left))
        left -= max(1, widths[-1])
    return widths


def _table(widths: list[int], d: int, rows: int, generator: np.random.Generator) -> Array:
    """Rows with numeric features in (0, 1) and one-hot categories; some categories are rare."""
    X = np.ones((rows, d))
    hidden = generator.standard_normal(rows)
    start = 0
    for width in widths:
        if width == 0:
            mean, load = generator.normal(size=2)
            noisy = mean + load * hidden + generator.standard_normal(rows)
            X[:, start] = 1 / (1 + np.exp(-noisy))
        else:
            shares = -1.2 * np.log(1 + generator.permutation(width)) + np.outer(
                hidden, generator.normal(size=width)
            )
            chosen = np.argmax(shares + generator.gumbel(size=(rows, width)), axis=1)
            X[:, start : start + width] = 0.0
            X[np.arange(rows), start + chosen] = 1.0
        start += max(1, width)
    return X


def _model(X: Array, generator: np.random.Generator) -> Array:
    """A random model whose margins have mean `_LEAN` and standard deviation `_SPREAD`."""
    weights = generator.standard_normal(X.shape[1])
    mean = X.mean(axis=0)
    level = mean / max(float(mean @ mean), 1e-12)
    centred = weights - float(X.mean(axis=0) @ weights) * level
    spread = float(np.std(X @ centred))
    return np.asarray(centred * (_SPREAD / spread if spread > 1e-9 else 0.0) + _LEAN * level)


def rows_per_site(samples: NDArray[np.int64], d: int) -> NDArray[np.int64]:
    """The number of proxy rows of each site: its number of samples, or fewer to save time."""
    most = max(400, min(20_000, 4_000_000 // d))
    return np.minimum(samples, max(20, most // len(samples)))

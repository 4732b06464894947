"""Labels and the public list of classes: the class of every row, and the weight of every class.

Labels are private, so error messages may name their types, but never quote their values.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from ..core import checks
from ..core.errors import DataError, ParameterError
from ..core.types import Array

_MISSING, _NUMBERS, _TEXTS = "nothing", "numbers", "texts"
_KINDS = dict.fromkeys("biuf", _NUMBERS) | dict.fromkeys("US", _TEXTS)


def public_labels(classes: Sequence[Any]) -> NDArray[Any]:
    """The public list of labels, sorted."""
    given = np.asarray(classes)
    if given.ndim == 1 and len({_kind(label) for label in classes}) > 1:
        raise ParameterError("`classes` must list labels of one type, all numbers or all texts.")
    known = np.unique(given) if given.ndim else given.ravel()
    if given.ndim != 1 or len(known) < 2 or len(known) != len(given):
        raise ParameterError(
            "`classes` must list at least 2 different labels, each once; got "
            f"{type(classes).__name__} of shape {given.shape} with {len(known)} different labels."
        )
    return known


def places(known: NDArray[Any], y: Any) -> NDArray[np.int64]:
    """The index of each label among the classes; -1 for undeclared or missing labels.

    Raises if the labels have another type than the classes, if no label is a class, or if a class occurs only
    in another spelling. The error quotes the classes, which are public, but no label.
    """
    labels = column_or_1d(np.asarray(y), warn=True)
    kinds = _kinds(labels)
    wanted = next(iter(_kinds(known)), "other values")
    if kinds and wanted not in kinds:
        fix = (
            f"Write classes={[str(label) for label in known.tolist()]}, or"
            if wanted == _NUMBERS
            else "Drop the quotes in `classes`, or"
        )
        raise DataError(
            f"`classes` and `y` must be of the same type; `classes` has {wanted}, `y` has "
            f"{' and '.join(sorted(kinds))}. {fix} convert y."
        )
    found = _find_places(known, labels, wanted)
    _check_spelling(known, labels, found)
    return found


def _check_spelling(known: NDArray[Any], labels: NDArray[Any], found: NDArray[np.int64]) -> None:
    """Raise if no label is a class, or if an absent class differs from a label only in case or spaces."""
    absent = set(range(len(known))) - set(np.unique(found).tolist())
    others = {_spelt(label) for label in set(labels[found < 0].tolist())} if absent else set()
    wrong = [known[k] for k in sorted(absent) if _spelt(known[k]) in others - {None}]
    if wrong:
        raise DataError(
            f"`classes` must be spelt like the labels: no label is {str(wrong[0])!r}, but some labels "
            "differ from it only in case or spaces."
        )
    if len(absent) == len(known) and len(labels):
        raise DataError(f"`classes` must contain the labels of `y`; no label is one of {known.tolist()}.")


def _spelt(label: Any) -> str | None:
    """A text in lower case, without spaces around it; None for other labels."""
    return label.strip().casefold() if isinstance(label, str) else None


def _find_places(known: NDArray[Any], labels: NDArray[Any], wanted: str) -> NDArray[np.int64]:
    if labels.dtype.kind != "O" and known.dtype.kind != "O":
        at = np.searchsorted(known, labels).clip(max=len(known) - 1)
        return np.where(known[at] == labels, at, -1).astype(np.int64)
    place = {label: k for k, label in enumerate(known.tolist())}
    found = (place.get(label, -1) if _kind(label) == wanted else -1 for label in labels)
    return np.fromiter(found, dtype=np.int64, count=len(labels))


def plain_labels(y: Any) -> Any:
    """Labels of type object as an array of numbers, if all are numbers. Other labels are returned unchanged.

    Raises for missing labels and for labels of several types, because scikit-learn's errors are unclear.
    """
    labels = np.asarray(y)
    if labels.ndim == 0 or labels.dtype.kind != "O":
        return y
    kinds = {_kind(label) for label in labels.ravel()}
    if _MISSING in kinds:
        raise DataError(
            "`y` must have a label for every row; some are missing. If you declare `classes`, such a row "
            "has no effect on the model."
        )
    if len(kinds) > 1:
        raise DataError(f"`y` must contain labels of one type; got {' and '.join(sorted(kinds))}.")
    return np.array(labels.tolist()) if kinds == {_NUMBERS} else y


def floats_or_same(y: Any) -> Any:
    """Convert numbers in a data frame, or in an array of type object, to floats; missing values become NaN.

    A list becomes an array. Input that cannot be converted is returned unchanged.
    """
    try:
        if hasattr(y, "to_numpy"):
            return y.to_numpy(dtype=np.float64, na_value=np.nan)
        given = np.asarray(y)
        return y if given.ndim == 0 else given.astype(np.float64) if given.dtype.kind == "O" else given
    except TypeError:  # polars: missing values become NaN in an array
        return np.asarray(y)
    except (ValueError, OverflowError):
        return y


def real_targets(y: Any) -> NDArray[np.float64]:
    """Targets as floats. If some entries are not numeric, the error does not quote them."""
    try:
        given = np.asarray(floats_or_same(y))
        if given.dtype.kind in "biufO":
            return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    raise DataError("`y` of a regression must contain real numbers; some entries are not numeric.")


def _kinds(labels: NDArray[Any]) -> set[str]:
    if labels.dtype.kind == "O":
        return {_kind(label) for label in labels} - {_MISSING}
    return {_KINDS.get(labels.dtype.kind, "other values")} if len(labels) else set()


def _kind(label: Any) -> str:
    if isinstance(label, str | bytes):
        return _TEXTS
    if isinstance(label, numbers.Real | np.bool_):
        return _MISSING if math.isnan(label) else _NUMBERS
    return _MISSING if label is None or type(label).__name__ in ("NAType", "NaTType") else "other values"


def class_weights(known: NDArray[Any], wanted: Any, shares: Any) -> Array | None:
    """The weight of a row of each class, at most 1; None if all weights are equal.

    With "balanced", the weight of a row is the public share of the rarest class divided by the public share
    of the row's class. A weight is at most 1 and depends only on its own row, so a weighted row moves a sum
    no further than the same row without a weight. No privacy bound changes.
    """
    if wanted is None:
        if shares is not None:
            raise ParameterError("`class_shares` needs class_weight='balanced'.")
        return None
    if isinstance(wanted, str):
        if wanted != "balanced":
            raise ParameterError(f"`class_weight` must be 'balanced', a mapping or None; got {wanted!r}.")
        if shares is None:
            raise ParameterError(
                "`class_shares` must give the public share of each class, {label: share}: shares counted in "
                "the rows would not be private."
            )
        found = _by_class("class_shares", shares, known)
        if abs(float(found.sum()) - 1.0) > 0.01:
            raise ParameterError(f"`class_shares` must add up to 1; got {found.sum():.3g}.")
        return np.asarray(found.min() / found)
    if shares is not None:
        raise ParameterError("`class_shares` needs class_weight='balanced'.")
    found = _by_class("class_weight", wanted, known)
    return np.asarray(found / found.max())


def weights_mark(known: NDArray[Any], weights: Array) -> str:
    """The note about the class weights for the certificate."""
    said = ", ".join(f"{label} {weight:.3g}" for label, weight in zip(known.tolist(), weights, strict=True))
    return f"rows are weighted by class, with public weights: {said}"[:300]


def _by_class(name: str, given: Any, known: NDArray[Any]) -> Array:
    """One positive number for every class, in the order of the classes."""
    labels = known.tolist()
    if not isinstance(given, Mapping) or set(given) != set(labels):
        raise ParameterError(f"`{name}` must be a mapping with one number for each of the classes {labels}.")
    return np.array([checks.positive(f"{name}[{label!r}]", given[label]) for label in labels])

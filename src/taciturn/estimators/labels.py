"""Labels against a public list of classes: which one a row has, or none. Types may be said, values never."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from ..errors import DataError, ParameterError

_MISSING, _NUMBERS, _TEXTS = "nothing", "numbers", "texts"
_KINDS = dict.fromkeys("biuf", _NUMBERS) | dict.fromkeys("US", _TEXTS)


def public_labels(classes: Sequence[Any]) -> NDArray[Any]:
    """The public list of labels, sorted."""
    given = np.asarray(classes)
    if given.ndim == 1 and len({_kind(label) for label in classes}) > 1:
        raise ParameterError("`classes` must list labels of one type, all numbers or all texts.")
    known = np.unique(given)
    if given.ndim != 1 or len(known) < 2 or len(known) != len(given):
        raise ParameterError(f"`classes` must list at least 2 different labels; got {len(known)}.")
    return known


def places(known: NDArray[Any], y: Any) -> NDArray[np.int64]:
    """The place of each label among the classes; -1 where it is another one, or missing.

    Labels of another type than the classes would all be others, so that is an error. What type a column has
    is public, as its name is.
    """
    labels = column_or_1d(np.asarray(y), warn=True)
    kinds = _kinds(labels)
    wanted = _KINDS.get(known.dtype.kind, "others")
    if kinds and wanted not in kinds:
        fix = (
            f"Write classes={[str(label) for label in known.tolist()]}, or"
            if wanted == _NUMBERS
            else "Drop the quotes, or"
        )
        raise DataError(
            f"`classes` and `y` must be of one type; got {wanted} and {' and '.join(sorted(kinds))}. "
            f"{fix} convert y."
        )
    if labels.dtype.kind != "O":
        at = np.searchsorted(known, labels).clip(max=len(known) - 1)
        return np.where(known[at] == labels, at, -1).astype(np.int64)
    place = {label: k for k, label in enumerate(known.tolist())}
    found = (place.get(label, -1) if _kind(label) == wanted else -1 for label in labels)
    return np.fromiter(found, dtype=np.int64, count=len(labels))


def has_missing(y: Any) -> bool:
    """Whether a column of objects has an empty place, which scikit-learn trips over without a word."""
    labels = np.asarray(y)
    return (
        labels.ndim > 0
        and labels.dtype.kind == "O"
        and any(_kind(label) == _MISSING for label in labels.ravel())
    )


def floats_or_same(y: Any) -> Any:
    """Targets from a frame's column as floats, NaN where one is missing; whatever is no number stays."""
    if isinstance(y, np.ndarray) or not hasattr(y, "to_numpy"):
        return y
    try:
        return y.to_numpy(dtype=np.float64, na_value=np.nan)
    except TypeError:  # polars, whose gaps are NaN in an array
        return np.asarray(y)
    except ValueError:
        return y


def _kinds(labels: NDArray[Any]) -> set[str]:
    if labels.dtype.kind == "O":
        return {_kind(label) for label in labels} - {_MISSING}
    return {_KINDS.get(labels.dtype.kind, "others")} if len(labels) else set()


def _kind(label: Any) -> str:
    if isinstance(label, str | bytes):
        return _TEXTS
    if isinstance(label, numbers.Real | np.bool_):
        return _MISSING if math.isnan(label) else _NUMBERS
    return _MISSING if label is None or type(label).__name__ in ("NAType", "NaTType") else "others"

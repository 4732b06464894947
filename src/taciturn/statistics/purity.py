"""check_purity: tests whether a program's `private` function computes its result from one row only.

A program (`taciturn.Program`) asks for sums over rows; `private` computes what one row adds to a sum. The
privacy guarantee is void if that depends on other rows.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core import checks
from ..core.errors import ParameterError
from ..methods.programs.own_program import Program, row_by_row


def check_purity(
    program: Program, X: Any, *, length: int, parameters: Mapping[str, Any] | None = None, seed: int = 0
) -> list[str]:
    """The faults of a program's `private` function: ways in which its result for a row depends on other rows.

    An empty list means that no fault was found. The check finds mistakes only: malicious code can pass the
    check. Use made-up rows, before you install the program where the real rows are.

    Parameters
    ----------
    program : a program with a `private` function.
    X : some dozens of made-up rows.
    length : the number of values that `private` returns for a row.
    parameters : the names and values of the query's parameters.
    seed : the seed for the random order of the rows in one of the tests.

    Examples
    --------
    >>> import numpy as np, taciturn as tt
    >>> class Means(tt.Program):
    ...     steps = start = query = advance = result = None
    ...     seen = []
    ...     @staticmethod
    ...     def private(row, parameters):
    ...         Means.seen.append(row)
    ...         return np.mean(Means.seen, axis=0)
    >>> tt.check_purity(Means(), np.eye(4), length=4)[0]
    'the result for a row changes when it is computed again'
    """
    if program.private is None:
        raise ParameterError("`program` must have a function `private`; an expression needs no check.")
    try:
        rows = np.array(X, dtype=np.float64)
        named = {name: np.array(value, dtype=np.float64) for name, value in (parameters or {}).items()}
    except ValueError:
        raise ParameterError("`X` and `parameters` must contain numbers.") from None
    length = checks.whole("length", length, least=1)
    order = np.random.default_rng(checks.whole("seed", seed)).permutation(len(rows))

    def run(chosen: Any) -> Any:
        return row_by_row(copy.copy(program).private, rows[chosen], named, length)

    first, half = run(slice(None)), len(rows) // 2
    trials = {
        "the result for a row changes when it is computed again": (run(slice(None)), first),
        "the result for a row changes with the order of the rows": (run(order), first[order]),
        "the result for a row changes when there are fewer rows": (run(slice(half, None)), first[half:]),
        "the result for a row changes when it is the only row": (
            np.concatenate([run([k]) for k in range(len(rows))]),
            first,
        ),
    }
    return [words for words, (one, other) in trials.items() if not np.array_equal(one, other, equal_nan=True)]

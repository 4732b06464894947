"""run_program runs a user's program on rows in this process; check_purity tests a program's `private`.

A program (`taciturn.Program`) asks for several sums over the rows of all sites, one after the other, and sees
only the noisy totals. An expression, or the Python function `private`, computes what one row adds to a sum.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Unpack, cast

import numpy as np

from ..core import checks
from ..core.errors import DataError, ParameterError
from ..core.types import Array
from ..methods.programs.own_program import Program, row_by_row
from ..privacy.ledger.active import join_budget
from ..questions.question import PublicTable
from ..questions.shipped.own import UNCHECKED, ProgramQuestion, ProgramResult
from .counting import AskOptions, CountWishes, ask_here, spell_options


class _Given(ProgramQuestion):
    """The question of a program that is given as a Python object."""

    given: Any

    def program(self) -> Program:
        return cast(Program, self.given)

    def marks(self, public: PublicTable) -> tuple[str, ...]:
        return () if self.given.private is None else (UNCHECKED,)


@spell_options
@join_budget()
def run_program(
    program: Program,
    X: Any,
    y: Any = None,
    *,
    epsilon: float,
    **options: Unpack[AskOptions],
) -> ProgramResult:
    """Run a program on the rows of all sites, with one (epsilon, delta) for all sums of the program.

    Parameters
    ----------
    X, y : the rows. If y is given, the program sees it as the last column.
    site, sites, person : as in the estimators: the site of each row, or else the number of sites among which
        the rows are divided; and the id of each row's person, if the certificate is to protect persons.
    colluding : the number of other sites that may collude; None for all of them.
    random_state : a seed makes the run a reproducible simulation, which protects no one; None draws secret
        noise.
    epsilon, delta, large_delta, ledger, engine : as in `private_score`.

    Examples
    --------
    >>> import numpy as np, taciturn as tt
    >>> class Mean(tt.Program):
    ...     def steps(self, facts):
    ...         return [tt.Step("mean", length=facts.columns, bound=1.0)]
    ...     def start(self):
    ...         return None
    ...     def query(self, state):
    ...         return tt.Query(tt.expressions.columns())
    ...     def advance(self, state, total):
    ...         return total.values
    ...     def result(self, state):
    ...         return state.round(2).tolist()
    >>> X = np.tile([[0.6, 0.0], [0.0, 0.2]], (5000, 1))
    >>> tt.run_program(Mean(), X, epsilon=1.0, random_state=0).value
    [0.3, 0.1]
    """
    rows = _matrix(X, y)
    wishes = CountWishes(epsilon, **options)
    public = PublicTable(width=rows.shape[1])
    (found,) = ask_here([_Given(given=program)], public, rows, len(rows), wishes, type(program).__name__)
    return cast(ProgramResult, found)


def check_purity(
    program: Program, X: Any, *, length: int, parameters: Mapping[str, Any] | None = None, seed: int = 0
) -> list[str]:
    """Test that a program's function `private` computes the result for a row from this row alone.

    Returns the faults that were found. The privacy guarantee is void if there is a fault. The check finds
    mistakes only: malicious code can pass it. Use made-up rows, before you install the program where the
    real rows are.

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


def _matrix(X: Any, y: Any) -> Array:
    """The rows as floats, with y as the last column. Rows with NaN are kept; they add zeros to the sums."""
    try:
        rows = np.asarray(X, dtype=np.float64)
        rows = rows if y is None else np.column_stack([rows, np.asarray(y, dtype=np.float64)])
    except ValueError:
        raise DataError("`X` and `y` must contain numbers and have the same number of rows.") from None
    if rows.ndim != 2 or rows.size == 0:
        raise DataError(f"`X` must have rows and columns; got shape {np.shape(X)}.")
    return rows

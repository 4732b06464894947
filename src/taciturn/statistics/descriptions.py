"""private_description: means, histograms and quantiles of a table, from one noisy sum over all sites."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack, cast

from ..core import checks
from ..data.tables.schema import Schema
from ..privacy.ledger.active import join_budget
from ..questions.kinds import read_question
from ..questions.shipped.description import PrivateDescription
from .counting import AskOptions, CountWishes, ask_table, spell_options


@spell_options
@join_budget()
def private_description(
    table: Any,
    schema: Schema | Mapping[str, tuple[float, float]],
    *,
    epsilon: float,
    by: str | None = None,
    bins: int = 20,
    level: float = 0.95,
    **options: Unpack[AskOptions],
) -> PrivateDescription:
    """Describe private columns, for example before training, with one (epsilon, delta) for all columns.

    All answers come from one noisy sum of counts, which is charged to the active `Budget`, if there is one.

    Parameters
    ----------
    table : a DataFrame, a mapping of columns, a structured array, or rows in the schema's order.
    schema : the public ranges and categories: a `Schema`, or wide ranges such as {"age": (0, 150)}. A value
        outside of its range is moved to the nearer end of the range and counted there.
    by : a categorical or boolean column, to describe all columns also for each value of `by`.
    bins : the number of histogram cells of a number or date; more cells show more detail, with more noise.
    epsilon, delta, site, person, sites, colluding, large_delta, level, ledger, random_state, engine : as in
        `private_score`. The noise grows with the square root of the number of columns.

    Examples
    --------
    >>> import numpy as np, taciturn as tt
    >>> ages = np.random.default_rng(0).uniform(20, 80, 5000)
    >>> found = tt.private_description({"age": ages}, {"age": (0, 150)}, epsilon=0.5, random_state=0)
    >>> bool(found["age"].mean.low < ages.mean() < found["age"].mean.high)
    True
    """
    wishes = CountWishes(epsilon, **options)
    bins, level = checks.whole("bins", bins, least=2), checks.probability("level", level)
    question = read_question({"kind": "describe", "by": by, "bins": bins, "level": level})
    return cast(PrivateDescription, ask_table(question, table, schema, wishes, "private_description"))

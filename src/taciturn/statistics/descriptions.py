"""private_description: counts, means, histograms and quantiles of a table, from one masked sum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack, cast

from ..core import checks
from ..data.tables.schema import Schema
from ..privacy.ledger.active import join_budget
from ..questions.shipped.describe import Describe
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
    """Describe private columns before training, under one (epsilon, delta) for all of them together.

    Everything comes from one masked sum of counts. It is charged to the `Budget` it is in, if it is in one.

    Parameters
    ----------
    table : a DataFrame, a mapping of columns, a structured array, or rows in the schema's order.
    schema : what is public: a `Schema`, or generous ranges, {"age": (0, 150)}. Values outside are moved to
        the nearer end, where they are seen.
    by : a category or a boolean of the schema; every column is then also described for each of its values.
    bins : cells of a number's or date's range; more of them tell more and are noisier.
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
    question = Describe(by=by, bins=bins, level=level)
    return cast(PrivateDescription, ask_table(question, table, schema, wishes, "private_description"))

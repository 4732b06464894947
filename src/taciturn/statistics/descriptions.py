"""private_description, private_survival and private_correlations: statistics of a table.

Each statistic is computed from one noisy sum over the rows of all sites.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack, cast

from ..core import checks
from ..core.errors import ParameterError
from ..data.tables.column_types import Boolean, Category, Number
from ..data.tables.schema import Schema
from ..privacy.ledger.active import join_budget
from ..questions.kinds import read_question
from ..questions.shipped.correlations import Correlations, PrivateCorrelations
from ..questions.shipped.description import PrivateDescription
from ..questions.shipped.survival_curves import PrivateSurvival
from .counting import AskOptions, CountWishes, ask_table, spell_options


@spell_options
@join_budget()
def private_description(
    table: Any,
    schema: Schema | Mapping[str, Any],
    *,
    epsilon: float,
    by: str | None = None,
    bins: int = 20,
    level: float = 0.95,
    **options: Unpack[AskOptions],
) -> PrivateDescription:
    """Describe private columns, for example before training, with one (epsilon, delta) for all columns.

    The noisy sum is charged to the active `Budget`, if there is one.

    Parameters
    ----------
    table : a DataFrame, a mapping of columns, a structured array, or rows with columns in the schema's order.
    schema : the public ranges and categories: a `Schema`, or in short {"age": (0, 150), "smoker": bool}. A
        value outside of its range is moved to the nearer end of the range and counted there.
    by : a categorical or boolean column; all columns are then also described for each value of this column.
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


@spell_options
@join_budget()
def private_survival(
    time: Any,
    event: Any,
    *,
    horizon: float,
    epsilon: float,
    group: Any = None,
    groups: Sequence[str] | None = None,
    bins: int = 24,
    level: float = 0.95,
    **options: Unpack[AskOptions],
) -> PrivateSurvival:
    """Kaplan-Meier curves with bands, life tables and the log-rank test, with one (epsilon, delta) in total.

    Parameters
    ----------
    time, event : for how long each record was observed, and whether the observation ended with the event.
    horizon : the public end of the study; a record that was observed for longer is censored at the horizon.
    group, groups : the group of each record, and the public list of all groups.
    bins : the number of time intervals; more intervals show more detail, with more noise.
    epsilon, delta, site, person, sites, colluding, large_delta, level, ledger, random_state, engine : as in
        `private_score`.

    Examples
    --------
    >>> import numpy as np, taciturn as tt
    >>> time = np.random.default_rng(0).exponential(20, 4000)
    >>> found = tt.private_survival(time, time < 30, horizon=30, epsilon=1.0, random_state=0)
    >>> half = found.all.survival[11]
    >>> bool(half.low < np.exp(-15 / 20) < half.high)
    True
    """
    wishes = CountWishes(epsilon, **options)
    fields: list[Any] = [Number("time", 0.0, checks.positive("horizon", horizon)), Boolean("event")]
    columns = {"time": time, "event": event}
    if group is not None or groups is not None:
        if group is None or groups is None:
            raise ParameterError("`group` and `groups`, the list of all groups, must be given together.")
        fields.append(Category("group", tuple(groups)))
        columns["group"] = group
    entry = {"kind": "survival", "time": "time", "event": "event", "by": None if group is None else "group"}
    checked = {"bins": checks.whole("bins", bins, least=2), "level": checks.probability("level", level)}
    question = read_question(entry | checked)
    found = ask_table(question, columns, Schema(tuple(fields)), wishes, "private_survival")
    return cast(PrivateSurvival, found)


@spell_options
@join_budget()
def private_correlations(
    table: Any,
    schema: Schema | Mapping[str, Any],
    *,
    epsilon: float,
    level: float = 0.95,
    **options: Unpack[AskOptions],
) -> PrivateCorrelations:
    """Means, covariances, correlations and principal components, with one (epsilon, delta) in total.

    Parameters
    ----------
    table, schema : as in `private_description`; categorical columns are left out. A missing value counts as
        the middle of its public range. Narrower ranges give more precise answers.
    epsilon, delta, site, person, sites, colluding, large_delta, level, ledger, random_state, engine : as in
        `private_score`. The noise grows with the number of columns.

    Examples
    --------
    >>> import numpy as np, taciturn as tt
    >>> a = np.random.default_rng(0).uniform(-1, 1, (5000, 2))
    >>> table, ranges = {"x": a[:, 0], "y": (a[:, 0] + a[:, 1]) / 2}, {"x": (-1, 1), "y": (-1, 1)}
    >>> found = tt.private_correlations(table, ranges, epsilon=1.0, random_state=0)["x", "y"]
    >>> bool(found.low < 0.707 < found.high)
    True
    """
    wishes = CountWishes(epsilon, **options)
    question = Correlations(level=checks.probability("level", level))
    return cast(PrivateCorrelations, ask_table(question, table, schema, wishes, "private_correlations"))

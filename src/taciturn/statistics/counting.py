"""Answer questions about rows that this process holds. One run, with one certificate, answers all questions.

A question asks for a statistic that sites compute together, such as a description of columns. Each row
belongs to a site. Only noisy sums over the rows of all sites are released; the certificate states their
privacy cost.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial, wraps
from os import PathLike
from typing import Any, ParamSpec, TypedDict, TypeVar

import numpy as np

from ..core import checks
from ..core.errors import ParameterError
from ..core.formatting import format_given
from ..core.types import Array
from ..data.tables.dealing import SiteAssignment, assign_sites
from ..data.tables.schema import Schema, public_columns
from ..data.tables.table_inputs import take_columns
from ..methods.base import Network
from ..methods.programs.own_program import ProgramTable
from ..privacy.certificate.certificate import Certificate
from ..privacy.ledger.active import charge_run
from ..questions.answer import PrivateAnswer
from ..questions.asking import Asking, released_as
from ..questions.question import PublicTable, Question, SiteTable, Spending
from ..runtime.setup import prepare
from ..runtime.simulate import Engine, cluster_engine
from ..runtime.train import run_charged

P = ParamSpec("P")
R = TypeVar("R")


class AskOptions(TypedDict, total=False):
    """The keyword arguments that all private statistics share. `CountWishes` has the defaults."""

    delta: float
    site: Any
    person: Any
    sites: int
    colluding: int | None
    large_delta: bool
    ledger: str | PathLike[str] | None
    random_state: int | None
    engine: str | Engine


@dataclass(frozen=True)
class CountWishes:
    """The checked arguments of a private statistic: budget, sites, persons, ledger, seed and engine.

    marks : short warnings for the certificate.
    """

    epsilon: float
    delta: float = 1e-5
    site: Any = None
    person: Any = None
    sites: int = 5
    colluding: int | None = None
    large_delta: bool = False
    ledger: str | PathLike[str] | None = None
    random_state: int | None = None
    engine: str | Engine = "local"
    marks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        checks.positive("epsilon", self.epsilon)
        checks.probability("delta", self.delta)
        if self.colluding is not None:
            checks.whole("colluding", self.colluding)
        if self.random_state is not None:
            checks.whole("random_state", self.random_state)
            if self.ledger is not None:
                raise ParameterError(
                    "`ledger` must be None with a `random_state`: seeded noise protects no one."
                )
        if not isinstance(self.engine, Engine):
            checks.choice("engine", self.engine, ("local", "ray"))
        if self.engine != "local" and self.random_state is None:
            raise ParameterError(
                "without `random_state`, `engine` must be 'local': a cluster that loses a worker would draw "
                "the worker's secret noise a second time, and two draws reveal more than a single draw does."
            )


def spell_options(function: Callable[P, R]) -> Callable[P, R]:
    """A decorator that lists every keyword of `AskOptions` in the signature, in place of `**options`."""
    own = inspect.signature(function)
    named = [one for one in own.parameters.values() if one.kind is not one.VAR_KEYWORD]
    shared = [
        inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=one.type)
        for one in fields(CountWishes)
        if one.name in AskOptions.__annotations__
    ]
    spelled = own.replace(parameters=[*named, *shared])

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            spelled.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{function.__name__}() {error}") from None
        return function(*args, **kwargs)

    checked.__signature__ = spelled  # type: ignore[attr-defined]
    return checked


def ask_here(
    questions: Sequence[Question],
    public: PublicTable,
    columns: Any,
    rows: int,
    wishes: CountWishes,
    what: str,
) -> list[PrivateAnswer]:
    """Answer questions about the rows of all sites, with one (epsilon, delta) for all questions together.

    columns : named columns, or an array of numbers.
    what : the name of the calling function, for messages and ledgers.
    """
    asking = Asking(tuple(questions), public, Spending(wishes.epsilon, wishes.delta, wishes.colluding))
    return run_asking(asking, columns, rows, wishes, what)[0]


def ask_table(
    question: Question,
    table: Any,
    schema: Schema | Mapping[str, Any],
    wishes: CountWishes,
    what: str,
) -> PrivateAnswer:
    """Answer one question about a table; `schema` has the public ranges and categories of the columns."""
    public = public_columns(schema)
    columns = take_columns(public.names, table)
    rows = len(columns[public.names[0]])
    return ask_here([question], PublicTable(public), columns, rows, wishes, what)[0]


def run_asking(
    asking: Asking, columns: Any, rows: int, wishes: CountWishes, what: str
) -> tuple[list[PrivateAnswer], Array]:
    """(answers, result): the answers, and all released numbers. The cost is charged before the run."""
    given = wishes.site, wishes.sites, "complete", wishes.random_state, wishes.person
    places = assign_sites(rows, *given, least=1)
    units = sum(places.samples)
    checks.usual_delta(wishes.delta, units, insisted=wishes.large_delta)
    method = asking.method()
    problem = _table(asking, columns, places)
    setup = prepare(
        problem,
        places.graph,
        method,
        rounds=method.prepare(Network.of(problem, places.graph)).rounds,
        seed=wishes.random_state,
        measure=False,
        names=places.names,
        marks=(*wishes.marks, *asking.marks),
    )
    if setup.forecast(wishes.delta).epsilon > wishes.epsilon:
        raise ParameterError(
            f"`epsilon` is too large, because no proof covers so little noise; got "
            f"{format_given(wishes.epsilon)}. Choose 50 or less."
        )
    tables: Any = setup.prepared.tables  # type: ignore[attr-defined]
    tables.program.query(tables.program.start(1))  # an invalid first query raises before the charge
    if wishes.engine == "local":
        (run,) = run_charged([setup], ledger=wishes.ledger, show=False, what=what)
    else:
        with charge_run(what, partial(setup.prepared.forecast, setup.run_facts())):
            run = cluster_engine(wishes.engine).run(setup, show=False)
    result = run.coef[0, 0]
    certificate = Certificate.from_ledger(run.ledger, wishes.delta, released_as(tables, result))
    return asking.answers(tables, result, certificate), result


def _table(asking: Asking, columns: Any, places: SiteAssignment) -> ProgramTable:
    """The rows of every site. If `places` has persons, all rows of a person are protected as one unit."""
    array = columns if isinstance(columns, np.ndarray) else None
    named = {} if array is not None else columns
    table = SiteTable(named, len(places.site), places.person, places.site, array)
    found = asking.rows(table)
    mine = [places.site == i for i in range(places.graph.n)]
    each = [
        tuple(one.take(own) for one in found) if isinstance(found, tuple) else found.take(own) for own in mine
    ]
    return ProgramTable(each, np.array(places.samples), asking.public.width or 1, places.person is not None)

"""Options and functions that several commands use: --json, losses by name, usage errors, tables and texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ..core.errors import ParameterError

if TYPE_CHECKING:
    from ..objective import losses

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
LossName = Literal["logistic", "smooth-hinge", "log-cosh"]


def make_loss(name: str | None) -> losses.Loss:
    """The shipped loss `name`, with its default parameters; the logistic loss if `name` is None."""
    from ..objective.losses import SHIPPED

    return SHIPPED[name or "logistic"]()


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn a ParameterError into a usage error (exit code 2); the wrong value came from an option."""
    try:
        yield
    except ParameterError as error:
        raise typer.BadParameter(str(error)) from error


def show_table(
    title: str, rows: Iterable[Sequence[str]], columns: Sequence[str] = (), *, left: Sequence[str] = ()
) -> None:
    """Print a table. `columns` are the headers, if any; the columns named in `left` are left-aligned."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, show_header=bool(columns))
    for name in columns:
        table.add_column(name, justify="left" if name in left else "right")
    for row in rows:
        table.add_row(*row)
    Console(highlight=False).print(table)


def say(text: str, **options: Any) -> None:
    """Print a text and wrap its lines at the width of the terminal. Square brackets are not markup."""
    from rich.console import Console

    Console(highlight=False).print(text, markup=False, **options)

"""Convert expressions (functions of a row, `expressions.py`) to JSON and back, and refuse unknown classes."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

from ...core.errors import ParameterError
from . import expressions as ex

_FORMS = {
    form.__name__: form
    for form in (
        ex.Columns,
        ex.Constant,
        ex.Parameter,
        ex.Elementwise,
        ex.Affine,
        ex.Function,
        ex.Clipped,
        ex.Located,
        ex.Joined,
        ex.Installed,
    )
}
_DEEPEST, _MOST_PARTS = 100, 10_000


def parts_of(expression: ex.Expression) -> list[ex.Expression]:
    """The expression and all its parts. Raises if there are too many, or if one is of a user's own class.

    A user's class would be code that sees rows. It could keep state between rows, and clipping cannot bound
    the effect of that.
    """
    found, level = [], [expression]
    for _ in range(_DEEPEST):
        for one in level:
            form, root = type(one), __name__.split(".")[0]
            home = sys.modules.get(form.__module__) if form.__module__.startswith(f"{root}.") else None
            if getattr(home, form.__name__, None) is not form:
                raise ParameterError(
                    f"`expression` must be made of taciturn.expressions; got {form.__name__}. Code of your "
                    "own belongs in `Program.private`."
                )
        found += level
        inner = [getattr(one, name) for one in level for name in ("part", "parts") if hasattr(one, name)]
        level = [one for entry in inner for one in (entry if isinstance(entry, tuple) else (entry,))]
        if not level:
            return found
        if len(found) + len(level) > _MOST_PARTS:
            break
    raise ParameterError(
        f"`expression` must have at most {_MOST_PARTS:,} parts, nested at most {_DEEPEST} deep."
    )


def measure(expression: ex.Expression, columns: int, shapes: ex.Shapes) -> tuple[int, int]:
    """(widest, work) for one row: the length of the longest vector, and how many numbers are computed."""
    found = parts_of(expression)
    widths = [one.width(columns, shapes) for one in found]
    inner = [one.part.width(columns, shapes) if isinstance(one, ex.Affine) else 1 for one in found]
    return max(widths), sum(a * b for a, b in zip(widths, inner, strict=True))


def expression_to(expression: ex.Expression) -> dict[str, Any]:
    """An expression as JSON values."""
    form = type(expression).__name__
    if _FORMS.get(form) is not type(expression):
        raise ParameterError(f"`expression` must be made of taciturn.expressions; got {form}.")
    fields = {one.name: _to(getattr(expression, one.name)) for one in dataclasses.fields(expression)}
    return {"form": form, **fields}


def _to(value: Any) -> Any:
    if isinstance(value, ex.Expression):
        return expression_to(value)
    return [_to(one) for one in value] if isinstance(value, tuple) else value


def expression_from(entry: Any, depth: int = 0) -> ex.Expression:
    """The expression that `expression_to` wrote; anything else is refused."""
    if not isinstance(entry, dict) or entry.get("form") not in _FORMS or depth > _DEEPEST:
        raise ParameterError("`expression` must be made of taciturn.expressions, not nested too deeply.")
    form = _FORMS[entry["form"]]
    fields = {one.name for one in dataclasses.fields(form)}
    if set(entry) != {"form", *fields}:
        raise ParameterError(f"`expression` of form {entry['form']} must have the fields {sorted(fields)}.")
    given = {name: _from(entry[name], depth) for name in fields}
    return form(**given)


def _from(value: Any, depth: int) -> Any:
    if isinstance(value, dict):
        return expression_from(value, depth + 1)
    if isinstance(value, list):
        return tuple(_from(one, depth) for one in value)
    return value

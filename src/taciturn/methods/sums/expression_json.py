"""Expressions as plain JSON and back: what a program in another process may name, and nothing else."""

from __future__ import annotations

import dataclasses
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
_NAMES = {"Elementwise": frozenset(ex._ELEMENTWISE), "Function": frozenset(ex._FUNCTIONS)}


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
    if not isinstance(entry, dict) or entry.get("form") not in _FORMS or depth > ex.DEEPEST:
        raise ParameterError("`expression` must be made of taciturn.expressions, not nested too deeply.")
    form = _FORMS[entry["form"]]
    fields = {one.name for one in dataclasses.fields(form)}
    if set(entry) != {"form", *fields}:
        raise ParameterError(f"`expression` of form {entry['form']} must have the fields {sorted(fields)}.")
    given = {name: _from(entry[name], depth) for name in fields}
    if entry["form"] in _NAMES and given["name"] not in _NAMES[entry["form"]]:
        raise ParameterError(f"`expression` must name a known function; got {str(given['name'])[:40]!r}.")
    return form(**given)


def _from(value: Any, depth: int) -> Any:
    if isinstance(value, dict):
        return expression_from(value, depth + 1)
    if isinstance(value, list):
        return tuple(_from(one, depth) for one in value)
    return value

"""How a parameter is tried: call with it and without, and compare the results."""

from __future__ import annotations

import json
import shutil
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from taciturn.core.errors import TaciturnError

BAR = "a bar on a terminal: tests/estimators/test_verbose.py and tests/runtime"


@dataclass(frozen=True)
class Fresh:
    """A path in an empty folder, another one for every call."""

    name: str


@dataclass(frozen=True)
class Made:
    """A value that is made when a call needs it, and not while tests are collected."""

    make: Callable[[], Any]


@dataclass(frozen=True)
class Change:
    """Another value of a parameter.

    also : what both calls have besides.
    stops : the error by which the parameter shows its effect.
    """

    value: Any
    also: Mapping[str, Any] = field(default_factory=dict)
    stops: type[Exception] | None = None


@dataclass(frozen=True, eq=False)
class Entry:
    """A public callable in one situation: how it is called, and a change of every parameter.

    shown_elsewhere : parameters that leave the result as it is, and where their effect is tested.
    """

    name: str
    situation: str
    call: Callable[..., Any]
    base: Mapping[str, Any]
    changes: Mapping[str, Any]
    shown_elsewhere: Mapping[str, str] = field(default_factory=dict)

    @property
    def covered(self) -> set[str]:
        """The parameters that this entry says something about."""
        return {*self.changes, *self.shown_elsewhere}


@dataclass(frozen=True)
class Refused:
    """A call that was refused, and how."""

    kind: type[Exception]
    message: str


def outcome(entry: Entry, arguments: Mapping[str, Any]) -> Any:
    """What comes of a call: a text that equal results share, with the files that it left, or its refusal."""
    folder = Path(tempfile.mkdtemp(prefix="taciturn-parameters-"))
    given = {
        name: folder / v.name if isinstance(v, Fresh) else v.make() if isinstance(v, Made) else v
        for name, v in arguments.items()
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = entry.call(**given)
        return json.dumps([plain(found), sorted(path.name for path in folder.rglob("*"))], sort_keys=True)
    except TaciturnError as error:
        return Refused(type(error), str(error))
    finally:
        shutil.rmtree(folder)


def plain(value: Any) -> Any:
    """A value as JSON can write it, to the last bit."""
    if isinstance(value, np.ndarray):
        return [value.shape, value.tobytes().hex() if value.dtype != object else repr(value.tolist())]
    if isinstance(value, dict):
        return {str(name): plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return repr(value)


@cache
def _usual(entry: Entry) -> Any:
    return outcome(entry, entry.base)


def judge(entry: Entry, name: str) -> str:
    """'effect', 'refused', 'ignored', or what is wrong with the answer."""
    change = entry.changes[name]
    change = change if isinstance(change, Change) else Change(change)
    base = {**entry.base, **change.also}
    with_it = outcome(entry, {**base, name: change.value})
    without = outcome(entry, base) if change.also else _usual(entry)
    if isinstance(with_it, Refused):
        if change.stops is not None and issubclass(with_it.kind, change.stops):
            return "effect"
        named = f"`{name}`" in with_it.message or f"--{name.replace('_', '-')}" in with_it.message
        return "refused" if named and "\n" not in with_it.message else f"another error: {with_it.message}"
    return "ignored" if with_it == without else "effect"


def look_at(run: Any, *, replayable: bool) -> Any:
    """A run; of one with secret noise what does not depend on it."""
    certificate = run.certificate(1e-3, large_delta=True)
    kept = [repr(certificate.run), certificate.sites, certificate.epsilon, run.history is None]
    return [*kept, run.coef, run.loss] if replayable else [*kept, np.isnan(run.loss).all(), run.loss.shape]

"""The kinds of questions that a job file may name, such as "describe", and the class of each kind.

A new kind needs a line in `KINDS`, and a subclass of `Question` whose fields are the keys of the job file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from pydantic import ValidationError

from ..core import checks
from ..core.errors import ParameterError
from ..core.toml import complaint
from .question import Question

KINDS: dict[str, str] = {
    "describe": "shipped.describe:Describe",
    "evaluate": "shipped.evaluate:Evaluate",
    "survival": "shipped.survival:Survival",
    "correlations": "shipped.correlations:Correlations",
    "glm": "glm.regression_question:Glm",
    "program": "shipped.own:AskProgram",
}
"""For each kind, its module in this package and its class. The module is loaded when a job has this kind."""


def kind_of(name: str) -> type[Question]:
    """The class of a kind. The fields of the class are the keys that a job may contain."""
    module, made = KINDS[checks.choice("kind", name, tuple(KINDS))].split(":")
    found: type[Question] = getattr(import_module(f".{module}", __package__), made)
    return found


def read_questions(entries: Sequence[Mapping[str, Any]], *, several: bool) -> tuple[Question, ...]:
    """The questions of a job. An error names the wrong key, such as `describe.bins` or `questions.0.bins`."""
    return tuple(
        read_question(entry, f"questions.{k}" if several else str(entry.get("kind")))
        for k, entry in enumerate(entries)
    )


def read_question(entry: Mapping[str, Any], *where: str) -> Question:
    """The question with these keys, including `kind`. An error names the wrong key, preceded by `where`."""
    try:
        return kind_of(entry.get("kind", "")).model_validate({k: v for k, v in entry.items() if k != "kind"})
    except ValidationError as error:
        found = complaint(error)
        key = ".".join(map(str, (*where, *found.path)))
        raise ParameterError(f"`{key}` {found.message}.") from error

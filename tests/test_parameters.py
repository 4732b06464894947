"""Every parameter of every public callable, and of three commands, has an effect or is refused by name."""

from __future__ import annotations

import inspect

import pytest

import taciturn as tt
from support.parameter_commands import COMMANDS, command_entries, options
from support.parameter_facts import RESULTS, fact_entries
from support.parameter_glm import glm_entry
from support.parameter_runs import run_entries
from support.parameters import Entry, judge

ENTRIES = [*fact_entries(), *run_entries(), *command_entries(), glm_entry()]
CASES = [(entry, name) for entry in ENTRIES for name in entry.changes]
CALLABLES = sorted(name for name in tt.__all__ if callable(getattr(tt, name)) and name not in RESULTS)


def _id(case: tuple[Entry, str]) -> str:
    entry, name = case
    return f"{entry.name}-{entry.situation}-{name}"


@pytest.mark.parametrize("case", CASES, ids=_id)
def test_it_has_an_effect_or_is_refused(case: tuple[Entry, str]) -> None:
    assert judge(*case) in ("effect", "refused")


def _covered(name: str) -> set[str]:
    return {parameter for entry in ENTRIES if entry.name == name for parameter in entry.covered}


@pytest.mark.parametrize("name", CALLABLES)
def test_every_parameter_of_a_public_name_has_an_entry(name: str) -> None:
    assert any(entry.name == name for entry in ENTRIES), "a new public name needs an entry"
    assert _covered(name) == set(inspect.signature(getattr(tt, name)).parameters)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_has_an_entry(name: str) -> None:
    assert _covered(f"taciturn {name}") == set(options(name)) - {"help"}


def test_parameters_without_effect_are_detected() -> None:
    """A parameter without an effect, and an error that does not name its parameter, are detected."""

    def call(used: int, unused: int = 0, other: int = 0) -> int:
        if other:
            raise tt.errors.ParameterError("something is wrong.")
        return used

    entry = Entry("call", "", call, {"used": 1}, {"used": 2, "unused": 1, "other": 1})
    assert judge(entry, "used") == "effect" and judge(entry, "unused") == "ignored"
    assert judge(entry, "other").startswith("another error")

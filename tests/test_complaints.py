"""Every kind of pydantic error is reworded, and each value is quoted at most once."""

from __future__ import annotations

from typing import Literal

import pytest
from pydantic import ValidationError
from pydantic_core._pydantic_core import list_all_errors

from taciturn.core.toml import Facts, complaint, translate

KINDS = {entry["type"]: entry for entry in list_all_errors()}
THEIRS = ("Input should", "permitted", "required", "Unable to", "should have", "Invalid", "Value error")


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_no_pydantic_wording_reaches_a_user(kind):
    entry = KINDS[kind]
    said = translate(
        {"type": kind, "ctx": entry["example_context"] or {}, "msg": entry["example_message_python"]}
    )
    assert said and said != entry["example_message_python"] and not any(word in said for word in THEIRS)
    assert not said.endswith(".") and "None" not in said


class Choice(Facts):
    """A file with one key of each kind that ours have."""

    method: Literal["penalty", "dual"] = "dual"
    size: int = 1
    share: float = 0.5
    names: list[str] | None = None


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"method": "DPP"}, "`method` must be 'penalty' or 'dual'; got 'DPP'."),
        ({"size": 1.5}, "`size` must be a whole number; got 1.5."),
        ({"share": "half"}, "`share` must be a number."),
        ({"share": float("inf")}, "`share` must be a finite number; got inf."),
        ({"names": "north"}, "`names` must be a list."),
        ({"names": [3]}, "`names.0` must be a text; got 3."),
        ({"seize": 1}, "`seize` is not a known key."),
        ([], "must be a table."),
    ],
)
def test_complaints_have_the_expected_wording(entries, words):
    with pytest.raises(ValidationError) as raised:
        Choice.model_validate(entries)
    assert str(complaint(raised.value)) == words


def test_complaint_quotes_the_value_only_on_request():
    with pytest.raises(ValidationError) as raised:
        Choice.model_validate({"share": "half"})
    assert str(complaint(raised.value, quote=True)) == "`share` must be a number; got 'half'."

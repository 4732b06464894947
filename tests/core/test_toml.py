"""An invalid file gives one line with the file, the key and the fault, never with the value."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from taciturn.core.errors import ParameterError
from taciturn.core.toml import Facts, complaint, read_toml


class Inner(Facts):
    """A table in a file."""

    size: int
    name: str = ""


class Outer(Facts):
    """A file."""

    inner: Inner
    either: Inner | float = 1.0


def complaint_of(entries, **options):
    with pytest.raises(ValidationError) as raised:
        Outer.model_validate(entries)
    return complaint(raised.value, **options)


def test_the_text_and_its_tables(tmp_path):
    (tmp_path / "a.toml").write_text("[inner]\nsize = 3\n")
    text, entries = read_toml(tmp_path / "a.toml")
    assert text == "[inner]\nsize = 3\n" and entries == {"inner": {"size": 3}}


def test_byte_order_mark_is_ignored(tmp_path):
    (tmp_path / "a.toml").write_bytes(b"\xef\xbb\xbfsize = 3\n")
    assert read_toml(tmp_path / "a.toml") == ("size = 3\n", {"size": 3})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"size 3", r"a\.toml is not TOML: .*line 1"),
        (b"\xff", r"a\.toml is not TOML: "),
        (None, r"a\.toml cannot be read \(No such file"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path, content, words):
    if content is not None:
        (tmp_path / "a.toml").write_bytes(content)
    with pytest.raises(ParameterError, match=words):
        read_toml(tmp_path / "a.toml")


def test_the_first_problem_by_its_key_without_the_value():
    found = complaint_of({"inner": {"size": "secret", "other": 1}, "either": 2.0})
    assert found.path == ("inner", "size") and found.others == 1 and found.more == " (and 1 more)"
    assert str(found) == "`inner.size` must be a whole number."


def test_the_deepest_problem_where_several_forms_are_allowed():
    found = complaint_of({"inner": {"size": 1}, "either": {"size": "secret"}}, deepest=True)
    assert found.path[-1] == "size" and "secret" not in str(found)


def test_unknown_keys_are_refused_and_facts_are_frozen():
    assert str(complaint_of({"inner": {"size": 1}, "innner": 1})).startswith("`innner` is not a known key")
    with pytest.raises(ValidationError):
        Inner(size=1).size = 2

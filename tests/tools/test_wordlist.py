"""The word list: the phrases that it finds, and the ordinary words that it allows."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.wordlist import PATTERN, TEXT_PATTERN, advice, signs


@pytest.mark.parametrize(
    "text", ["a key that is none", "a run that shall end", "classified rightly", "kept at the door"]
)
def test_a_sign_is_found_and_has_advice(text: str) -> None:
    found = PATTERN.search(text)
    assert found and advice(found.group())


@pytest.mark.parametrize("text", ["None where there is none", "is none of them", "shallow", "amended"])
def test_ordinary_words_pass(text: str) -> None:
    assert not PATTERN.search(text)


@pytest.mark.parametrize(
    "line",
    [
        '"""A key that is none."""',
        "x = 1  # whoever asks",
        'f"site {x} made it anew"',
        "def test_nobody_signs_tomorrow(): ...",
    ],
)
def test_planted_sentence_is_found_with_its_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "planted.py"
    path.write_text(f"\n{line}\n")
    assert [number for number, _ in signs(path)] == [2]


def test_planted_sentence_in_a_page_is_found_outside_of_code(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("```\na run that shall end\n```\n\nIt is told `whoever`. Whose row it is.\n")
    assert list(signs(path)) == [(5, "is told"), (5, "Whose row it is")]


@pytest.mark.parametrize("text", ["go on from there", "Nobody can read it", "for so many rows"])
def test_pages_have_more_signs_than_code(text: str) -> None:
    found = TEXT_PATTERN.search(text)
    assert found and advice(found.group()) and not PATTERN.search(text)

"""The word list: the phrases that it finds, and the ordinary words that it allows."""

from __future__ import annotations

import pytest
from tools.wordlist import PATTERN, TEXT_PATTERN, advice


@pytest.mark.parametrize(
    "text", ["a key that is none", "a run that shall end", "classified rightly", "kept at the door"]
)
def test_a_sign_is_found_and_has_advice(text: str) -> None:
    found = PATTERN.search(text)
    assert found and advice(found.group())


@pytest.mark.parametrize("text", ["None where there is none", "is none of them", "shallow", "amended"])
def test_ordinary_words_pass(text: str) -> None:
    assert not PATTERN.search(text)


@pytest.mark.parametrize("text", ["whoever asks", "made anew", "against anybody", "stops without a word"])
def test_pages_have_more_signs_than_code(text: str) -> None:
    found = TEXT_PATTERN.search(text)
    assert found and advice(found.group()) and not PATTERN.search(text)

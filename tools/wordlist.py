"""`python -m tools.wordlist`: find hard sentences in docs, docstrings, comments, errors and tests.

A sign is a phrase that style.md names: an archaic word, or an actor who is not named. Names in code do not
count; names of tests do, since people read them as sentences.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SIGNS = {
    r"(?<!there )(is|are|were) none\b(?! of)": "say what it is not: `some entries are not numeric`",
    r"shall\b": "must, or will",
    r"rightly\b": "correctly",
    r"(mend|mends|mended|heed|heeds)\b": "fix, adjust, or follow",
    r"at the door\b": "reject, or before anything else",
    r"by the word of\b": "name who states it",
    r"nobody's (word|about)\b": "name the actor",
    r"lays? (it|them|him|her|the site) bare\b": "reveals",
    r"is (as|so) good as (lost|gone)\b": "is lost",
    r"come to naught\b": "fail",
    r"comes? of (it|them)\b": "follows, or is released",
    r"holds something\b": "is not empty",
    r"floats (may )?stray\b": "floating-point errors",
    r"in our (own )?words\b": "say it plainly",
    r"(is|was|are) said so\b": "is reported",
    r"is no other\b": "is the same",
    r"one's own\b": "your own, or a user's",
    r"(hitherto|thereof|whence|forthwith)\b": "an everyday word",
    r"[Ww]hoever\b": "name the actor: the attacker, the operator, the reader",
    r"([Ss]omebody|[Aa]nybody|[Ee]verybody)\b(?!\")": "name the actor, or anyone and all sites",
    r"[Nn]obody (else|signs|waits|asks|pays|needs|reads|admits|believes)\b": "no other site, or no process",
    r"anew\b": "again, or new",
    r"(is|are|was|were|be|been|being) (told|said)\b(?! apart)": "reported, logged, shown or stated",
    r"(not|never) (un(?!der|i|til)[a-z]+(ed|able)|impossible|invalid)\b": "one negation",
    r"[Ww]hose [a-z]+ it is\b": "say what it is: the id of the person",
    r"(talks|speaks) to whom\b": "the links between sites",
    r"without a word\b": "silently, or without a message",
    r"next to nothing\b": "almost nothing",
    r"works? together against\b": "collude",
    r"all the same[.,;:]": "anyway, or still",
    r"(owner's|neighbours?'s?|its|their) word\b": "confirmation, or report",
    r"must hold (one|a|the|numbers)\b": "must contain",
    r"a solve that (gave|gives) up\b": "the solver failed",
}
TEXT_SIGNS = {
    r"[Nn]obody('s)? (can|may|is|has|knows|sees|learns)\b": "name the actor: no site, no attacker, no one",
    r"(goes|go) on (with|from|to|without)\b": "continue",
    r"so many (rows|records|sites|rounds)\b": "this many",
    r"(belongs|bound) to nobody\b": "name the owner",
}
"""Signs in the pages that users read first (`PAGES`); code, tests and proofs may have them."""
PATTERN, TEXT_PATTERN = (
    re.compile("|".join(rf"\b(?:{sign})" for sign in signs)) for signs in (SIGNS, SIGNS | TEXT_SIGNS)
)
TEXTS = ("README.md", "CONTRIBUTING.md", "docs")
PAGES = ("README.md", "howto", "operate", "index.md", "tutorial.md", "choose.md", "glossary.md", "gallery.md")
CODE = ("src", "tests", "benchmarks", "examples", "tools")


def main() -> int:
    """Print every sign with its place; return 1 if there is a sign, else 0."""
    found = [(path, line, words) for path in _files() for line, words in signs(path)]
    for path, line, words in found:
        print(f"{path.relative_to(ROOT)}:{line}: {words!r}: {advice(words)}")
    return int(bool(found))


def signs(path: Path) -> Iterator[tuple[int, str]]:
    """(line, words) of every sign in a file."""
    for line, text in _sentences(path):
        for match in _pattern(path).finditer(text.replace("_", " ")):
            yield line, match.group()


def advice(words: str) -> str:
    """The advice for a sign: what to write instead."""
    return next(better for sign, better in (SIGNS | TEXT_SIGNS).items() if re.match(sign, words))


def _pattern(path: Path) -> re.Pattern[str]:
    return TEXT_PATTERN if path.name in PAGES or path.parent.name in PAGES else PATTERN


def _files() -> Iterator[Path]:
    for place in TEXTS:
        path = ROOT / place
        yield from [path] * path.is_file() or sorted(path.rglob("*.md"))
    for place in CODE:
        yield from (path for path in sorted((ROOT / place).rglob("*.py")) if "wordlist" not in path.name)


def _sentences(path: Path) -> Iterator[tuple[int, str]]:
    """(line, text) of every text in a file that people read."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":  # code blocks quote other files, which are checked separately
        outside = re.sub(
            r"^```.*?^```", lambda code: "\n" * code.group().count("\n"), text, flags=re.M | re.S
        )
        yield from enumerate(re.sub(r"`[^`\n]*`", "", outside).splitlines(), 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            for number, line in enumerate(token.string.splitlines()):
                yield token.start[0] + number, line
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.lineno, node.name


if __name__ == "__main__":
    sys.exit(main())

"""The line of a key in a TOML text, for error messages; tomllib does not give it."""

from __future__ import annotations

import re
from collections.abc import Iterator

Path = tuple[str | int, ...]

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(
    r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*="""
)
_STRINGS = re.compile(r""""(?:\\.|[^"\\])*"|'[^']*'|#.*""")


def line_of(text: str, path: Path) -> int | None:
    """The line, from 1, of the key at `path`, or of the nearest thing around it; None if there is none.

    >>> line_of('a = 1\\n[[sites]]\\nname = "x"\\n', ("sites", 0, "data"))
    2
    """
    found = dict(_places(text))
    for length in range(len(path), 0, -1):
        if path[:length] in found:
            return found[path[:length]]
    return None


def _places(text: str) -> Iterator[tuple[Path, int]]:
    """Every key, table and entry of a list of tables, with its line; the text is valid TOML."""
    table: Path = ()
    counts: dict[Path, int] = {}
    open_list: list[int | Path] = []  # the path of a list that is still open, its depth, its entries so far
    for number, line in enumerate(text.splitlines(), start=1):
        bare = _STRINGS.sub(lambda match: "" if match[0][0] == "#" else '""', line)
        if open_list:
            yield from _entries(open_list, bare, number)
            continue
        header = _HEADER.match(line)
        if header is not None and "=" not in bare:
            table = _parts(header[2])
            if header[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table])
            yield table, number
            continue
        key = _KEY.match(line)
        if key is not None:
            path = (*table, *_parts(key[1]))
            yield path, number
            open_list = [path, 0, 0]
            yield from _entries(open_list, bare[bare.index("=") + 1 :], number)


def _entries(state: list[int | Path], bare: str, number: int) -> Iterator[tuple[Path, int]]:
    """The tables and lists that begin on this line, directly in the open list; its end empties `state`."""
    path, depth, seen = state
    if not isinstance(path, tuple) or not isinstance(depth, int) or not isinstance(seen, int):
        return
    for character in bare:
        if character in "[{":
            depth += 1
            if depth == 2:
                yield (*path, seen), number
                seen += 1
        elif character in "]}":
            depth -= 1
    state[1:] = [depth, seen]
    if depth == 0:
        state.clear()


def _parts(key: str) -> Path:
    return tuple(part.strip("\"'") for part in re.split(r"\s*\.\s*", key))

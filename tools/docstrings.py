"""A griffe extension that turns the sections of our docstrings into Markdown for the docs."""

from __future__ import annotations

import re
from typing import Any

import griffe

_HEAD = re.compile(r"^(Parameters|Attributes|Returns|Examples|Raises)\n-{3,}\n", re.MULTILINE)
_ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*) : (.*)$")
_TYPE = re.compile(r"""^("\w+"|bool|float|int|str)((, | or )("\w+"|bool|float|int|str|None))*$""")
_RESULT = re.compile(r"\A(\w+)\n +")


class Readable(griffe.Extension):
    """Rewrites every docstring after griffe has loaded it."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the text of one object's docstring."""
        if obj.docstring is not None:
            obj.docstring.value = readable(obj.docstring.value)


def readable(text: str) -> str:
    """The docstring as Markdown: entries such as `name : words` become a list, and doctests become code."""
    first, *rest = _HEAD.split(text)
    parts = [_plain(first)]
    for title, body in zip(rest[::2], rest[1::2], strict=True):
        shown = _plain(_RESULT.sub(r"`\1`: ", body)) if title in ("Examples", "Returns") else _mixed(body)
        parts.append(f"**{title}**\n\n{shown}")
    return "\n\n".join(parts)


def _plain(body: str) -> str:
    """The text with doctests as code and entries as a list; indented blocks stay as they are."""
    body = "\n\n".join(_listed(part) if _entries(part) else part for part in body.split("\n\n"))
    return re.sub(r"(?:^>>> .*\n?(?:^(?:\.\.\. | *\S).*\n?)*)+", _fenced, body, flags=re.MULTILINE)


def _mixed(body: str) -> str:
    """The text of a section: its entries as a list, and the doctests below them as code."""
    head, mark, tests = body.partition("\n\n>>> ")
    return _listed(head) + (_plain(f"\n{mark}{tests}") if mark else "")


def _entries(part: str) -> bool:
    """Whether every line that is not indented is `name : words`."""
    return all(_ENTRY.match(line) or line.startswith(" ") for line in part.splitlines()) and " : " in part


def _fenced(match: re.Match[str]) -> str:
    return f"\n```pycon\n{match[0].rstrip()}\n```\n"


def _listed(body: str) -> str:
    lines: list[str] = []
    typed = -1
    for line in body.splitlines():
        entry = _ENTRY.match(line)
        if entry is not None:
            names = ", ".join(f"`{name.strip()}`" for name in entry[1].split(","))
            lines.append(f"- {names}: {entry[2]}")
            typed = len(lines) - 1 if _TYPE.search(entry[2]) else -1
        elif line.strip():
            if typed == len(lines) - 1:  # numpydoc has the type beside the name, and the words below
                lines[typed] += "."
            lines.append(f"  {line.strip()}" if line.startswith(" ") else f"- {line}")
    return "\n".join(lines)

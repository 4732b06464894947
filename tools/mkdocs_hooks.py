"""MkDocs hooks: formulas become MathML when the site is built, and the menu lists the pages that exist."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from latex2mathml.converter import convert

_FORMULA = re.compile(
    r'<(span|div) class="arithmatex">\s*(?:\\\((?P<inline>.*?)\\\)|\\\[(?P<block>.*?)\\\])\s*</\1>', re.DOTALL
)
_SCRIPT = re.compile(r"\\mathscr\{?([A-Z])\}?")
_MATHML = "{http://www.w3.org/1998/Math/MathML}"
ElementTree.register_namespace("", _MATHML[1:-1])


def on_config(config: Any) -> Any:
    """Remove menu entries whose pages do not exist."""
    config["nav"] = _existing(config["nav"], Path(config["docs_dir"]))
    return config


def on_page_content(html: str, **_: Any) -> str:
    """Replace the formulas of a page by MathML, which a browser draws without a script."""
    return _FORMULA.sub(_drawn, html)


def _drawn(match: re.Match[str]) -> str:
    inline = match["inline"] is not None
    text = unescape(match["inline"] if inline else match["block"]).replace(r"\nolimits", "")
    text = re.sub(r"\\arg\b", r"\\operatorname{arg}", text)
    tree = ElementTree.fromstring(convert(_SCRIPT.sub(_script, text.strip())))
    if "\\" in _words(tree):
        raise ValueError(f"a formula has a command that cannot be converted to MathML: {text.strip()}")
    tree.set("display", "inline" if inline else "block")
    _tidy(tree)
    return ElementTree.tostring(tree, encoding="unicode")


def _tidy(tree: ElementTree.Element) -> None:
    """Keep the size of bars, and put primes beside their letter, because a prime is already raised."""
    for node in tree.iter():
        if node.tag == f"{_MATHML}mo" and node.text in ("\u2016", "|"):
            node.set("stretchy", "false")
        primed = node.tag in (f"{_MATHML}msup", f"{_MATHML}msubsup") and _words(node[-1]) in (
            "\u2032",
            "\u2033",
        )
        if primed:
            base, *below, prime = list(node)
            inner = base if not below else ElementTree.Element(f"{_MATHML}msub")
            if below:
                inner.extend([base, *below])
            mark = ElementTree.Element(f"{_MATHML}mo", {"lspace": "0", "rspace": "0"})
            mark.text = _words(prime)
            node.tag = f"{_MATHML}mrow"
            node[:] = [inner, mark]


def _words(node: ElementTree.Element) -> str:
    return "".join(node.itertext())


def _script(match: re.Match[str]) -> str:
    """A script letter as a Unicode character, because browsers no longer support `mathvariant`."""
    return {"L": "\u2112", "E": "\u2130"}.get(match[1], chr(0x1D49C + ord(match[1]) - ord("A")))


def _existing(entries: list[Any], folder: Path) -> list[Any]:
    kept = []
    for entry in entries:
        (title, target), *_ = entry.items()
        if isinstance(target, list):
            below = _existing(target, folder)
            kept += [{title: below}] if below else []
        elif (folder / target).exists():
            kept.append(entry)
    return kept

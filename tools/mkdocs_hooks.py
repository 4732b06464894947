"""MkDocs hooks: formulas become MathML, figures link to their files, the menu lists only pages that exist."""

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
_BESIDE = re.compile(
    r'(?:(?<=[\s>])[^\s<>]{1,8})?<math\b[^>]*display="inline".*?</math>[^\s<]{0,20}', re.DOTALL
)
_CODE = re.compile(r"<code>([^<]*-[^<]*)</code>")
_HYPHENATED = re.compile(r"(?<!\S)(?=\S*-)\S{2,24}(?!\S)")
_FIGURE = re.compile(r'(?<=<p>)<img [^>]*src="([^"]+)"[^>]*>')
_SCRIPT = re.compile(r"\\mathscr\{?([A-Z])\}?")
_MATHML = "{http://www.w3.org/1998/Math/MathML}"
_RELATIONS = frozenset("\u2ab0\u2aaf\u00b1\u223c")
_BEFORE_SIGNS = frozenset("=<>([,\u2264\u2265\u2208")  # after these, a minus sign does not mean a difference
_NAMES = frozenset("arg cosh det div exp inf ln log max min Pr rint sinh sup tr".split())
_DOUBLE = {"E": "\U0001d53c", "N": "\u2115", "P": "\u2119", "R": "\u211d", "Z": "\u2124"}
_SCRIPTED = {f"{_MATHML}{tag}" for tag in ("msub", "msup", "msubsup", "munder", "mover", "munderover")}
ElementTree.register_namespace("", _MATHML[1:-1])


def on_config(config: Any) -> Any:
    """Remove menu entries whose pages do not exist."""
    config["nav"] = _existing(config["nav"], Path(config["docs_dir"]))
    return config


def on_page_content(html: str, **_: Any) -> str:
    """Replace formulas by MathML, which a browser draws without a script. Link each figure to its file."""
    html = _BESIDE.sub(_together, _FORMULA.sub(_drawn, html))
    html = _CODE.sub(lambda code: f"<code>{_HYPHENATED.sub(_together, code[1])}</code>", html)
    return _FIGURE.sub(r'<a href="\1">\g<0></a>', html)


def _together(match: re.Match[str]) -> str:
    return f'<span class="together">{match[0]}</span>'


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
    """Keep bars at their size. Put a prime beside its letter, because the character is already raised."""
    for node in tree.iter():
        if node.tag == f"{_MATHML}mo" and node.text in ("\u2016", "|"):
            node.set("stretchy", "false")
            node.attrib |= {"lspace": "0", "rspace": "0"} if node.text == "|" else {}
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
        if node.get("mathvariant") == "double-struck":
            del node.attrib["mathvariant"]
            node.text = _DOUBLE.get(node.text or "", node.text)
        if node.text in _RELATIONS:
            node.tag = f"{_MATHML}mo"
    for node in tree.iter():
        if node.tag not in _SCRIPTED:
            _space_names(node)


def _space_names(row: ElementTree.Element) -> None:
    """Set spaces as TeX does: thin between a function's name and a letter, and none after a sign."""
    for before, node, after in zip([None, *row], row, [*row[1:], None], strict=False):
        name = node[0] if node.tag in _SCRIPTED else node
        if node.text == "~":
            node.text = "\u223c"
        elif node.text in ("\u2212", "\u00b1") and before is not None and before.text in _BEFORE_SIGNS:
            node.set("form", "prefix")
        elif name.text in _NAMES:
            name.tag = f"{_MATHML}mo"
            letter = before is not None and (before.tag != f"{_MATHML}mo" or before.text in (")", "]"))
            bracket = after is None or _words(after)[:1] in ("(", "[", "|", "/", "")
            name.attrib |= {"lspace": "0.167em" if letter else "0", "rspace": "0" if bracket else "0.167em"}


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

"""index.html: the claims and the figures of a reproduction on one page that needs nothing else."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from string import Template

from .claim import Claim, Verdict
from .claims_page import count, made_with

_TITLE = "The paper, reproduced"


def index_page(
    figures: Mapping[str, tuple[str, str]], claims: Sequence[Claim], *, quick: bool, folder: Path
) -> str:
    """The page, with the pictures folder/name.svg inside it; `figures` gives title and caption by name."""
    lead = "A quick version, with fewer rows, rounds and repeats. " if quick else ""
    page = Template(resources.files(__package__).joinpath("index.html").read_text("utf-8"))
    return page.substitute(
        title=_TITLE,
        lead=escape(lead + (count(claims) if claims else "")),
        claims="\n".join(_claim(claim) for claim in claims) or "<p>None of these figures has claims.</p>",
        figures="\n".join(_figure(folder / f"{name}.svg", *words) for name, words in figures.items()),
        made=escape(f"Made with {made_with()}."),
    )


def _claim(claim: Claim) -> str:
    mark = "holds" if claim.verdict is Verdict.holds else "fails"
    return (
        f'<article id="{escape(claim.key)}"><h3>{escape(claim.says)}</h3>'
        f'<p><span class="verdict {mark}">{escape(claim.verdict.value)}</span> '
        f"({escape(claim.where)}; <code>{escape(claim.key)}</code>)</p>"
        f"<p>{_words(claim.measured)}</p><p>{_words(claim.why)}</p></article>"
    )


def _words(text: str) -> str:
    """Escaped, with `names` as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def _figure(picture: Path, title: str, caption: str) -> str:
    source = b64encode(picture.read_bytes()).decode("ascii")
    return (
        f'<figure><img alt="{escape(title)}" src="data:image/svg+xml;base64,{source}">'
        f"<figcaption><strong>{escape(title)}.</strong> {escape(caption)}</figcaption></figure>"
    )

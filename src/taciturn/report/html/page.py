"""render(data): a report as one self-contained HTML page; write(data, path): write it atomically."""

from __future__ import annotations

import hashlib
import os
from base64 import b64encode
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from ...core.files import write_whole
from ...core.versions import VERSION
from ..data import ReportData
from . import head
from .encode import embed
from .sections import sections

_SCRIPTS = ("scale.js", "frame.js", "chart.js", "network.js", "page.js")


def render(data: ReportData) -> str:
    """The report as one self-contained HTML page.

    It loads nothing and sends nothing: its content security policy admits only its own style and script.
    """
    style = _asset("page.css")
    script = '(function () {\n"use strict";\n' + "\n".join(map(_asset, _SCRIPTS)) + "\n})();\n"
    parts = sections(data)
    body = "\n".join(
        f'<section id="{key}" aria-labelledby="{key}-title"><h2 id="{key}-title">{title}</h2>{html}</section>'
        for key, _, title, html in parts
    )
    kind = "Comparison of runs" if len(data.names) > 1 else "Run"
    return Template(_asset("page.html")).substitute(
        title=escape(data.title),
        eyebrow=f"taciturn · {kind}",
        subtitle=f'<p class="subtitle">{escape(data.subtitle)}</p>' if data.subtitle else "",
        headline=head.headline(data.headline),
        scale=head.scale(data.scale),
        marks=head.marks(data.marks),
        key_numbers=head.key_numbers(data),
        contents=head.contents([(key, name) for key, name, _, _ in parts]),
        sections=body,
        json=embed(data),
        style=style,
        script=script,
        style_hash=_fingerprint(style),
        script_hash=_fingerprint(script),
        version=escape(VERSION),
    )


def write(data: ReportData, path: str | os.PathLike[str]) -> Path:
    """Write the page; a reader sees the old file or the whole new one. Folders are made as needed."""
    return write_whole(Path(path), render(data))


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _fingerprint(text: str) -> str:
    """The form in which a content security policy names a script."""
    return "sha256-" + b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")

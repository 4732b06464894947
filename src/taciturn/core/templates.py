"""Read the text files and templates of a package, and put values in place of the names in them."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


def fill(package: str, text: str, **values: str) -> str:
    """The file `text` in the package's folder `texts`, with each {name} replaced by its value.

    A {name} that has no value is not changed. A {name} inside a value is not replaced.
    """
    found = files(package).joinpath("texts", text).read_text(encoding="utf-8")
    return re.sub(r"\{(\w+)\}", lambda match: values.get(match[1], match[0]), found)


def html_templates(package: str) -> Environment:
    """The HTML templates in the folder of a package. The templates escape every value."""
    return _templates(package, autoescape=True)


def text_templates(package: str) -> Environment:
    """The templates for plain text and Markdown in the folder of a package. The templates escape nothing."""
    return _templates(package, autoescape=False)


def _templates(package: str, *, autoescape: bool) -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(package, "."),
        autoescape=autoescape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )

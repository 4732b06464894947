"""Texts of a package, in its folder `texts`, with values in place of {names}."""

from __future__ import annotations

import re
from importlib.resources import files


def fill(package: str, text: str, **values: str) -> str:
    """The text, filled in; a value is never searched for names again."""
    found = files(package).joinpath("texts", text).read_text(encoding="utf-8")
    return re.sub(r"\{(\w+)\}", lambda match: values.get(match[1], match[0]), found)

"""Make a notebook of a page: text becomes Markdown cells, Python blocks become code cells.

python -m tools.notebooks docs/tutorial.md        writes docs/tutorial.ipynb
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

_PRINTED = r"^It prints, for example:\n\n```text\n(?:[^`\n]*\n)+```$\n?"
_SHOWN = re.compile(rf"^!\[.*\)$\n?|{_PRINTED}", re.MULTILINE)
_BLOCK = re.compile(r"^```python\n(.*?)^```$\n?", re.MULTILINE | re.DOTALL)


def notebook(text: str) -> dict[str, Any]:
    """The notebook without outputs. Pictures and printed text are left out, because the cells show them."""
    cells = []
    for k, part in enumerate(_BLOCK.split(text)):
        words = part if k % 2 else _SHOWN.sub("", part)
        if words.strip():
            cells.append(_cell("code" if k % 2 else "markdown", words.strip(), len(cells)))
    language = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {"cells": cells, "metadata": {"kernelspec": language}, "nbformat": 4, "nbformat_minor": 5}


def _cell(kind: str, text: str, number: int) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}}
    cell["source"] = text.splitlines(keepends=True)
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def written(page: Path) -> str:
    """The notebook of a page, as the text of its file."""
    return json.dumps(notebook(page.read_text(encoding="utf-8")), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        Path(name).with_suffix(".ipynb").write_text(written(Path(name)), encoding="utf-8")

"""The hooks that build the docs site: formulas without a script, docstrings as lists and code."""

from __future__ import annotations

import re
import runpy
from html import escape
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site():
    pytest.importorskip("latex2mathml", reason="the extra `docs` is not installed")
    return runpy.run_path(str(ROOT / "tools" / "mkdocs_hooks.py"))


def test_a_formula_becomes_mathml(site):
    formula = r"\(\lVert f\rVert \le \mathscr{L}'\)"
    page = site["on_page_content"](f'<p><span class="arithmatex">{formula}</span></p>')
    assert "<math" in page and "arithmatex" not in page
    assert 'stretchy="false"' in page and "\u2112" in page and "\u2032" in page


def test_a_display_formula_becomes_a_block(site):
    page = site["on_page_content"]('<div class="arithmatex">\\[ a < b \\]</div>')
    assert 'display="block"' in page and "&lt;" in page


def test_no_formula_of_the_docs_shows_a_command(site):
    pages = sorted((ROOT / "docs").rglob("*.md"))
    formulas = [f for page in pages for f in re.findall(r"\$\$(.+?)\$\$", page.read_text("utf-8"), re.DOTALL)]
    assert any(r"\arg" in formula for formula in formulas)
    for formula in formulas:
        drawn = site["on_page_content"](f'<div class="arithmatex">\\[{escape(formula)}\\]</div>')
        assert "<math" in drawn and "\\" not in drawn
    with pytest.raises(ValueError, match="cannot be converted"):
        site["on_page_content"](r'<div class="arithmatex">\[ \nonsense x \]</div>')


def test_the_menu_lists_what_exists(site, tmp_path):
    (tmp_path / "a.md").touch()
    nav = [{"A": "a.md"}, {"B": "b.md"}, {"C": [{"D": "a.md"}, {"E": "e.md"}]}, {"F": [{"G": "g.md"}]}]
    found = site["on_config"]({"nav": nav, "docs_dir": str(tmp_path)})["nav"]
    assert found == [{"A": "a.md"}, {"C": [{"D": "a.md"}]}]


def test_docstrings_become_lists_and_code():
    pytest.importorskip("griffe", reason="the extra `docs` is not installed")
    readable = runpy.run_path(str(ROOT / "tools" / "docstrings.py"))["readable"]
    text = """f(x)

Parameters
----------
x, y : the numbers,
    both of them
z : another

Examples
--------
>>> 1 + 1
2
"""
    assert readable(text) == (
        "f(x)\n\n\n\n**Parameters**\n\n- `x`, `y`: the numbers,\n  both of them\n- `z`: another"
        "\n\n**Examples**\n\n\n```pycon\n>>> 1 + 1\n2\n```\n"
    )


def test_docstring_types_and_multi_line_output_are_rendered_as_code():
    readable = runpy.run_path(str(ROOT / "tools" / "docstrings.py"))["readable"]
    listed = 'f\n\nParameters\n----------\nrows : "clip" or "scale"\n    How.\nseed : int\n'
    said = readable(f"{listed}\nExamples\n--------\n>>> 1\n[1\n 2]\n")
    assert '- `rows`: "clip" or "scale".\n  How.\n- `seed`: int' in said
    assert "```pycon\n>>> 1\n[1\n 2]\n```" in said


def test_every_page_is_in_the_menu():
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")]
    assert not [page for page in pages if f" {page}\n" not in menu]


def test_names_of_functions_have_thin_spaces_and_double_letters_are_characters(site):
    page = site["on_page_content"](r'<div class="arithmatex">\[ 2\ln p + \max(a) \sim \mathbb{R} \]</div>')
    assert '<mo lspace="0.167em" rspace="0.167em">ln</mo>' in page and 'rspace="0">max</mo>' in page
    signed = site["on_page_content"](r'<div class="arithmatex">\[ a - b = -c \]</div>')
    assert signed.count("\u2212") == 2 and signed.count('form="prefix"') == 1
    assert "\u211d" in page and "\u223c" in page and "double-struck" not in page


def test_no_page_shows_the_source_of_a_formula():
    """A space before the closing dollar sign makes Markdown show the formula as it is written."""
    code = re.compile(r"^ *```.*?^ *```$|`[^`\n]+`|\$\$.+?\$\$", re.MULTILINE | re.DOTALL)
    formula = re.compile(r"(?<!\\)\$(?!\s)(?:\\.|[^$\\])*?(?<!\s)\$")
    for page in sorted((ROOT / "docs").rglob("*.md")):
        left = formula.sub("", code.sub("", page.read_text("utf-8")))
        assert not re.findall(r"\\[a-z]+.{,30}", left), page.name


def test_doctests_below_parameters_and_results_are_readable():
    readable = runpy.run_path(str(ROOT / "tools" / "docstrings.py"))["readable"]
    text = readable(
        "f\n\nParameters\n----------\nx : a number\n\n>>> f(1)\n2\n\nReturns\n-------\nRun\n    loss.\n"
    )
    assert "- `x`: a number\n" in text and "```pycon\n>>> f(1)\n2\n```" in text and "`Run`: loss." in text
    assert readable("The rows are X[a : b].") == "The rows are X[a : b]."


def test_no_line_ends_between_a_formula_and_its_comma_or_inside_an_option(site):
    formula = r'<span class="arithmatex">\(x\)</span>'
    page = site["on_page_content"](f"<p>has RDP{formula}, and <code>audit --table a-b</code> {formula}</p>")
    assert re.search(r'has <span class="together">RDP<math.*?</math>,</span> and', page)
    assert 'audit <span class="together">--table</span> <span class="together">a-b</span></code>' in page
    block = "<pre><code><span></span>taciturn audit --table\n</code></pre>"
    assert site["on_page_content"](block) == block


def test_a_figure_links_to_its_file(site):
    figure = '<img alt="A" src="img/a.png" />'
    assert site["on_page_content"](f"<p>{figure}</p>") == f'<p><a href="img/a.png">{figure}</a></p>'
    linked = f'<p><a href="b.svg">{figure}</a></p>'
    assert site["on_page_content"](linked) == linked

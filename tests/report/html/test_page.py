"""The page as text: complete, safe and self-contained. `test_browser.py` tests it in a browser."""

import base64
import hashlib
import json
import os
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from taciturn.core.errors import ParameterError
from taciturn.report import Chart, Curve, Mark, ReportData, Statement, from_certificates, render, write
from taciturn.report.html.numbers import written

VOID = {"meta", "link", "input", "br"}


class Page(HTMLParser):
    """What a browser without scripts sees."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: dict[str, str] = {}
        self.numbers: list[tuple[dict[str, str | None], str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "data":
            self.numbers.append((dict(attrs), ""))

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        self.words[self.open[-1] if self.open else ""] = data
        if self.open and self.open[-1] == "data":
            self.numbers[-1] = (self.numbers[-1][0], self.numbers[-1][1] + data)


def embedded(text: str) -> dict:
    found = re.search(r'<script type="application/json" id="report-data">(.*?)</script>', text, re.S)
    assert found
    return json.loads(found[1])


def at(tree, path: str):
    for step in path.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        tree = tree[int(step)] if isinstance(tree, list) else tree[step]
    return tree


@pytest.mark.parametrize("name", ["single", "comparison", "crowd", "bare"])
def test_every_tag_is_closed_and_every_id_is_used_once(name: str, request) -> None:
    page = Page(render(request.getfixturevalue(name)))
    assert page.open == []
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    anchors = [a["href"][1:] for tag, a in page.tags if tag == "a"]
    assert set(anchors) <= set(ids)


def test_nothing_is_loaded_from_anywhere(comparison: ReportData) -> None:
    text = render(comparison)
    page = Page(text)
    assert not [tag for tag, a in page.tags if "src" in a or tag in {"iframe", "object", "img", "form"}]
    assert [a["href"] for tag, a in page.tags if tag == "link"] == ["data:,"]
    assert set(re.findall(r"https?://[^\s\"'<>]+", text)) == {"http://www.w3.org/2000/svg"}
    assert "@import" not in text and "url(" not in text and "eval(" not in text
    assert not [a for _, a in page.tags if "style" in a or any(key.startswith("on") for key in a)]


def test_the_policy_names_the_very_style_and_script(single: ReportData) -> None:
    text = render(single)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)[1]
    for tag, rule in (("style", "style-src"), ("script", "script-src")):
        content = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.S)[1]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{rule} 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")


@pytest.mark.parametrize("name", ["single", "comparison"])
def test_every_number_of_the_first_screen_is_that_of_the_json(name: str, request) -> None:
    data = request.getfixturevalue(name)
    data = replace(data, key_numbers={f"~/1/{key}": row for key, row in data.key_numbers.items()})
    text = render(data)
    tree, numbers = embedded(text), Page(text).numbers
    assert len(numbers) >= 5 * len(data.key_numbers)
    for attributes, shown in numbers:
        entry = at(tree, attributes["data-path"])
        assert float(attributes["value"]) == entry
        form = at(tree, attributes["data-path"].rsplit("/", 1)[0])["format"]
        assert shown == written(entry, form)


def test_text_from_outside_stays_text() -> None:
    evil = '</script><script>alert(1)</script><img src=x onerror=alert(1)>"&$title'
    data = ReportData(
        evil,
        evil,
        subtitle=evil,
        marks=[Mark(evil, evil)],
        statements=[Statement(evil, evil, (evil,), (evil,), {evil: evil})],
        settings={evil: {evil: [evil]}},
        provenance={evil: evil},
    )
    page = Page(render(data))
    assert page.open == []
    assert [tag for tag, _ in page.tags].count("script") == 2
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert embedded(render(data))["title"] == evil


def test_sections_without_content_are_left_out(bare: ReportData, single: ReportData) -> None:
    def present(data: ReportData) -> list:
        return [a["id"] for tag, a in Page(render(data)).tags if tag == "section"]

    assert present(bare) == ["claim", "duties"]
    assert present(single) == [
        "claim",
        "results",
        "privacy",
        "network",
        "duties",
        "certificate",
        "settings",
        "provenance",
    ]
    assert present(replace(single, charts=(), network=None))[:3] == ["claim", "privacy", "duties"]


def test_the_claim_stands_in_words_before_any_chart(certificates) -> None:
    about = {"date": "2026-11-16", "features": ["age", "ward"], "verify": "taciturn certify run/"}
    page = render(from_certificates({"fit": certificates["norm"]}, title="t", about=about))
    claim = page.index("One process simulated")
    assert claim < page.index("data-chart=")
    for words in ("2026-11-16", "age, ward", "site 0 (30 records)", "controls every site except the site"):
        assert claim < page.index(words, claim) < page.index("data-chart=")
    for words in ("Not covered", "How to check it", "taciturn certify run/", "What the guarantee protects"):
        assert words in page


def test_one_round_is_a_number_and_not_a_chart(single: ReportData) -> None:
    one = Curve("fit", [1], [0.25])
    page = render(ReportData("t", "h", charts=[Chart("loss", "Loss", "mean loss", [one])]))
    assert "data-chart=" not in page and "0.25" in page and "after round 1" in page


def test_what_is_not_private_is_marked_as_such(single: ReportData) -> None:
    assert "Not private" in render(single)
    covered = [replace(chart, private=True) for chart in single.charts]
    assert "Not private" not in render(replace(single, charts=covered))


def test_write_makes_folders_and_leaves_nothing_else(single: ReportData, tmp_path: Path) -> None:
    path = write(single, tmp_path / "deep" / "report.html")
    assert path.read_text(encoding="utf-8") == render(single)
    assert os.listdir(path.parent) == ["report.html"]


def test_a_page_that_cannot_be_made_leaves_the_old_one(single: ReportData, tmp_path: Path) -> None:
    path = write(single, tmp_path / "report.html")
    before = path.read_bytes()
    with pytest.raises(ParameterError):
        write(replace(single, settings={"a": object()}), path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["report.html"]


def test_a_write_that_fails_half_way_leaves_the_old_page(
    single: ReportData, tmp_path: Path, monkeypatch
) -> None:
    path = write(single, tmp_path / "report.html")
    before = path.read_bytes()

    def full_disk(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space"):
        write(replace(single, title="Another"), path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["report.html"]

"""The page in Chromium: charts, controls, phone width, dark mode, print, and without scripts."""

import base64
import json
import math
import re
import shutil
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from taciturn.graph import Graph
from taciturn.report import ReportData, from_certificates, from_runs, write
from taciturn.report.html.numbers import written

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None,
    reason="Chromium is not here: apt-get install chromium chromium-driver",
)
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars"
)
PAGES = ("single", "comparison", "crowd", "bare", "simulated", "partial")


@pytest.fixture(scope="session")
def simulated(runs) -> ReportData:
    """A report of real runs, some without a finite bound."""
    return from_runs(runs, title="Three runs")


@pytest.fixture(scope="session")
def partial(certificates) -> ReportData:
    """What one real site knows: its own certificate in a network of three, beside one of all."""
    one = certificates["norm"]
    part = type(one).from_facts(one.run, one.sites[1:2], one.budgets[1:2], one.releases[1:2], 1e-5)
    return from_certificates({"mine": part, "all": one}, title="One site", graph=Graph.path(3))


@pytest.fixture(scope="session")
def driver(tmp_path_factory) -> Iterator:
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in FLAGS.split():
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('chromium')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield browser
    browser.quit()


class Browser:
    """A page of one report in a window of a given size and taste."""

    def __init__(self, driver, folder: Path) -> None:
        self.driver, self.folder = driver, folder
        self.media()

    def size(self, width: int, height: int) -> None:
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )

    def media(self, kind: str = "", scheme: str = "light") -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.command("Emulation.setEmulatedMedia", media=kind, features=features)

    def open(self, data: ReportData, width: int = 1100) -> dict:
        self.size(width, 900)
        self.driver.get(write(data, self.folder / "report.html").as_uri())
        return self.run('return JSON.parse(document.getElementById("report-data").textContent)')

    def command(self, name: str, **arguments):
        return self.driver.execute_cdp_cmd(name, arguments)

    def run(self, script: str, *arguments):
        return self.driver.execute_script(script, *arguments)

    def all(self, selector: str) -> list:
        return self.driver.find_elements("css selector", selector)

    def one(self, selector: str):
        return self.driver.find_element("css selector", selector)

    def readings(self, figure: str) -> dict[str, list[tuple[str, str]]]:
        """By run: the values in a legend, in full and as shown."""
        return self.run(
            "return Object.fromEntries([...arguments[0].querySelectorAll('.key')].map((key) => ["
            "  key.querySelector('.name').textContent,"
            "  [...key.querySelectorAll('data')].map((d) => [d.getAttribute('value'), d.textContent])]))",
            self.one(f"[data-chart='{figure}'] .legend"),
        )


@pytest.fixture
def browser(driver, tmp_path: Path) -> Iterator[Browser]:
    page = Browser(driver, tmp_path)
    yield page
    complaints = [entry for entry in driver.get_log("browser") if entry["level"] != "INFO"]
    assert complaints == []


def points(path: str) -> np.ndarray:
    return np.array(
        [[float(number) for number in pair.split(",")] for pair in re.findall(r"[-\d.]+,[-\d.]+", path)]
    )


@pytest.mark.parametrize("name", PAGES)
def test_charts_are_drawn_without_console_errors(name: str, browser: Browser, request) -> None:
    data = browser.open(request.getfixturevalue(name))
    figures = browser.run(
        "return [...document.querySelectorAll('[data-chart]')].map((f) => [f.dataset.chart,"
        "f.querySelectorAll('.plot svg *').length,"
        "[...f.querySelectorAll('path')].map((p) => p.getAttribute('d')),"
        "[...f.querySelectorAll('svg *')].flatMap((e) => [...e.attributes].map((a) => a.value))])"
    )
    networks = 0 if data["network"] is None else 1
    bounded = [entry for entry in data["accountings"] if entry["chart"]["curves"]]
    assert len(figures) == len(data["charts"]) + 2 * len(bounded) + networks
    for place, parts, paths, values in figures:
        assert parts > 8, place
        assert all(np.isfinite(points(path)).all() and len(points(path)) for path in paths)
        assert not [
            value for value in values if "NaN" in value or "Infinity" in value or "undefined" in value
        ]
    assert browser.run("return performance.getEntriesByType('resource').length") == 0


@pytest.mark.parametrize("width", [1100, 360])
def test_curves_lie_where_the_numbers_say(width: int, browser: Browser, comparison: ReportData) -> None:
    data = browser.open(comparison, width)
    charts = {f"charts.{k}": chart for k, chart in enumerate(data["charts"])}
    charts["accountings.0"] = data["accountings"][0]["chart"]
    for place, chart in charts.items():
        drawn = browser.run(
            "return [...document.querySelectorAll(`[data-chart='${arguments[0]}'] path[data-name]`)]"
            ".map((p) => [p.dataset.name, p.getAttribute('d')])",
            place,
        )
        assert [name for name, _ in drawn] == data["names"]
        at = np.vstack([points(path) for _, path in drawn])
        mean = np.concatenate([curve["mean"] for curve in chart["curves"]])
        rounds = np.concatenate([curve["rounds"] for curve in chart["curves"]])
        height = np.log(mean) if chart["log"] else mean
        for wanted, found, sign in ((rounds, at[:, 0], 1), (height, at[:, 1], -1)):
            slope, offset = np.polyfit(wanted, found, 1)
            assert sign * slope > 0
            np.testing.assert_allclose(slope * wanted + offset, found, atol=0.02)
        assert np.ptp(at[:, 1]) > 100 and np.ptp(at[:, 0]) > 200


@pytest.mark.parametrize("name", ["single", "comparison", "simulated"])
def test_readings_are_the_numbers_of_the_json(name: str, browser: Browser, request) -> None:
    data = browser.open(request.getfixturevalue(name))
    charts = [(f"charts.{k}", chart) for k, chart in enumerate(data["charts"])]
    charts += [("accountings.0", data["accountings"][0]["chart"])]
    plot = browser.one("[data-chart='charts.0'] .plot")
    last = len(data["charts"][0]["curves"][0]["rounds"]) - 1
    for key, t in ((None, last), ("\ue011", 0), ("\ue014", 1), ("\ue00e", min(last, 11)), ("\ue010", last)):
        if key is not None:
            plot.send_keys(key)
        for place, chart in charts:
            found = browser.readings(place)
            for curve in chart["curves"]:
                want = [curve["mean"][t]]
                ends = [written(curve[end][t], chart["format"]) for end in ("low", "high") if curve[end]]
                if len(set(ends)) == 2:
                    want += [curve["low"][t], curve["high"][t]]
                assert [float(value) for value, _ in found[curve["name"]]] == want
                assert [shown for _, shown in found[curve["name"]]] == [
                    written(v, chart["format"]) for v in want
                ]
        assert plot.get_attribute("aria-valuetext").startswith(f"Round {t + 1}: {data['names'][0]} ")


def test_the_pointer_moves_all_charts_together(browser: Browser, comparison: ReportData) -> None:
    data = browser.open(comparison)
    browser.run(
        "const p = document.querySelector('[data-chart=\"charts.0\"] .plot'), r = p.getBoundingClientRect();"
        "p.dispatchEvent(new PointerEvent('pointermove', {clientX: r.left + r.width / 2, clientY: r.top}))"
    )
    words = {place: browser.one(f"[data-chart='{place}'] .when").text for place in ("charts.0", "charts.2")}
    t = int(re.fullmatch(r"Round (\d+)", words["charts.0"])[1])
    assert 20 < t < 50 and words["charts.2"] == words["charts.0"]
    value = float(browser.readings("accountings.0")["DVP (1, 1)"][0][0])
    assert value == data["accountings"][0]["chart"]["curves"][2]["mean"][t - 1]
    browser.run(
        "document.querySelector('[data-chart=\"charts.0\"] .plot')"
        ".dispatchEvent(new PointerEvent('pointerleave', {pointerType: 'mouse'}))"
    )
    assert browser.one("[data-chart='charts.2'] .when").text == "Round 60, the last"


def test_a_run_can_be_hidden_everywhere_and_shown_again(browser: Browser, comparison: ReportData) -> None:
    browser.open(comparison)
    name = "DVP (1, 1)"
    drawn = f"path[data-name='{name}']"
    before = len(browser.all(drawn))
    assert before == 6
    key = browser.all("[data-chart='charts.1'] button.key")[2]
    assert name in key.text and key.get_attribute("aria-pressed") == "true"
    key.send_keys(" ")
    assert len(browser.all(drawn)) == 0
    pressed = {b.get_attribute("aria-pressed") for b in browser.all("button.key") if name in b.text}
    assert pressed == {"false"}
    key.click()
    assert len(browser.all(drawn)) == before
    for button in browser.all("[data-chart='charts.0'] button.key"):
        button.click()
    assert "All curves are hidden." in browser.one("[data-chart='charts.0'] svg").text


def test_accounting_can_be_switched_by_keyboard(browser: Browser, comparison: ReportData) -> None:
    browser.open(comparison)

    def shown() -> list[str]:
        panels = browser.all("[data-accounting]")
        return [p.get_attribute("data-accounting") for p in panels if p.is_displayed()]

    assert shown() == ["renyi"]
    browser.one("input[value=renyi]").send_keys("\ue014")
    assert shown() == ["pure"]
    browser.one("input[value=paper] + span").click()
    assert shown() == ["paper"]
    assert browser.run("return document.querySelector('[data-accounting=paper] svg').clientWidth") > 300


def test_a_site_can_be_chosen_in_a_list_and_in_the_picture(browser: Browser, comparison: ReportData) -> None:
    data = browser.open(comparison)
    costs = data["accountings"][0]["sites"]
    assert "site 4" in browser.one("[data-chart='network.0'] .about").text
    assert [g.get_attribute("data-site") for g in browser.all(".site.worst")] == ["4"]
    browser.run(
        "const s = arguments[0]; s.value = '1'; s.dispatchEvent(new Event('change'))",
        browser.one("[data-accounting=renyi] select.site-choice"),
    )
    for place, want in (
        ("accountings.0", [c["by_round"][1][-1] for c in costs]),
        ("sites.0", [c["totals"][1] for c in costs]),
    ):
        found = browser.readings(place)
        assert [float(found[c["name"]][0][0]) for c in costs] == want
    browser.run("arguments[0].dispatchEvent(new MouseEvent('click'))", browser.one(".site[data-site='2']"))
    about = browser.one("[data-chart='network.0'] .about").text
    assert about.startswith("site 2: 2 neighbours, 9,058 records.")
    assert all(written(c["totals"][2], "bound") in about for c in costs)
    assert {s.get_attribute("value") for s in browser.all("select.site-choice")} == {"2"}
    assert len(browser.all(".link.near")) == 2


def test_uncovered_site_is_shown_as_unknown(browser: Browser, partial: ReportData) -> None:
    data = browser.open(partial)
    mine, everyone = data["accountings"][0]["sites"]
    assert mine["totals"] == [None, mine["totals"][1], None]
    assert float(browser.readings("sites.0")["mine"][0][0]) == mine["totals"][1]
    assert [g.get_attribute("data-site") for g in browser.all(".site.worst")] == ["0"]
    browser.run("arguments[0].dispatchEvent(new MouseEvent('click'))", browser.one(".site[data-site='2']"))
    found = browser.readings("sites.0")
    assert found["mine"][0][1] == "not known" and float(found["all"][0][0]) == everyone["totals"][2]


def test_a_log_axis_can_be_switched(browser: Browser, comparison: ReportData) -> None:
    data = browser.open(comparison)
    switch = browser.one("[data-chart='charts.0'] .switch input")
    assert not switch.is_selected()
    switch.send_keys(" ")
    path = browser.one("[data-chart='charts.0'] path[data-name]").get_attribute("d")
    height, mean = points(path)[:, 1], np.array(data["charts"][0]["curves"][0]["mean"])
    slope, offset = np.polyfit(np.log(mean), height, 1)
    np.testing.assert_allclose(slope * np.log(mean) + offset, height, atol=0.02)
    assert not browser.all("[data-chart='charts.1'] .switch")


def test_the_network_has_every_site_and_link(browser: Browser, crowd: ReportData) -> None:
    browser.open(crowd)
    assert len(browser.all(".site")) == 100 and len(browser.all(".link")) == 300


@pytest.mark.parametrize("name", PAGES)
def test_a_phone_never_scrolls_sideways(name: str, browser: Browser, request) -> None:
    browser.open(request.getfixturevalue(name), width=360)
    for script in ("", "document.querySelectorAll('details').forEach((d) => { d.open = true; })"):
        browser.run(script)
        assert browser.run("return document.documentElement.scrollWidth") <= 360
    small = browser.run(
        "return [...document.querySelectorAll('button, select, summary, input[type=radio] + span')]"
        ".filter((e) => e.offsetParent).map((e) => e.getBoundingClientRect().height).filter((h) => h < 24)"
    )
    assert small == []


def colours(browser: Browser) -> dict[str, str]:
    return browser.run(
        "const s = (q, p) => getComputedStyle(document.querySelector(q))[p];"
        "return {ground: s('body', 'backgroundColor'), text: s('body', 'color'),"
        "curve: s('path.curve', 'stroke')}"
    )


def test_dark_mode_has_its_own_colours_and_print_has_not(browser: Browser, single: ReportData) -> None:
    browser.open(single)
    light = colours(browser)
    browser.media(scheme="dark")
    dark = colours(browser)
    assert all(light[part] != dark[part] for part in light)
    assert light["ground"] == "rgb(255, 255, 255)"
    browser.media(kind="print", scheme="dark")
    assert colours(browser) == light


def test_print_has_every_section_and_no_controls(browser: Browser, comparison: ReportData) -> None:
    browser.open(comparison)
    browser.media(kind="print")
    shown = "return [...document.querySelectorAll(arguments[0])].filter((e) => e.offsetParent).length"
    assert browser.run(shown, "[data-accounting]") == 3
    assert browser.run(shown, "section") == 6
    assert browser.run(shown, ".controls, nav, select, input") == 0
    pdf = base64.b64decode(browser.command("Page.printToPDF", preferCSSPageSize=True)["data"])
    assert pdf.startswith(b"%PDF") and len(re.findall(rb"/Type\s*/Page\b", pdf)) in range(3, 12)


def test_without_a_script_the_tables_remain(browser: Browser, single: ReportData) -> None:
    browser.command("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.size(1100, 900)
        browser.driver.get(write(single, browser.folder / "report.html").as_uri())
        shown = {
            s: [e.is_displayed() for e in browser.all(s)] for s in ("noscript p", ".plot", "details summary")
        }
    finally:
        browser.command("Emulation.setScriptExecutionDisabled", value=False)
    assert all(shown["noscript p"]) and not any(shown[".plot"])
    assert sum(shown["details summary"]) >= 5


def test_the_script_writes_numbers_as_python_does(browser: Browser, bare: ReportData) -> None:
    browser.open(bare)
    generator = np.random.default_rng()
    values = [0.0, 1.1, 58.05, 0.1, 1e-7, *(10 ** generator.uniform(-8, 8, 300)).tolist()]
    source = files("taciturn.report.html").joinpath("scale.js").read_text(encoding="utf-8")
    for form in ("plain", "percent", "bound"):
        script = f"{source}\nreturn JSON.parse(arguments[0]).map((v) => written(number(v), arguments[1]))"
        found = browser.run(script, json.dumps([*values, "inf", "-inf", None]), form)
        assert found == [written(v, form) for v in [*values, math.inf, -math.inf, None]]


def test_ticks_are_round_numbers_within_the_axis(browser: Browser, bare: ReportData) -> None:
    browser.open(bare)
    source = files("taciturn.report.html").joinpath("scale.js").read_text(encoding="utf-8")
    generator = np.random.default_rng()
    script = f"{source}\nreturn [linearTicks(...arguments), logTicks(...arguments)]"
    for low, span in zip(10 ** generator.uniform(-4, 1, 40), 10 ** generator.uniform(-4, 6, 40), strict=True):
        linear, log = browser.run(script, low, low + span, 5)
        assert 2 <= len(linear) <= 12 and 2 <= len(log) <= 12
        assert low - 1e-8 * span <= min(linear) and max(linear) <= low + (1 + 1e-8) * span  # 0, if need be
        assert low * (1 - 1e-6) <= min(log) and max(log) <= (low + span) * (1 + 1e-6)
    rounds = browser.run(f"{source}\nreturn roundTicks(1, 60, 8)")
    assert rounds == [1, 10, 20, 30, 40, 50, 60]


def test_every_plot_can_be_reached_and_is_described(browser: Browser, comparison: ReportData) -> None:
    browser.open(comparison)
    sliders = browser.all(".plot[role=slider]")
    assert len(sliders) == 9
    for slider in sliders:
        assert slider.get_attribute("tabindex") == "0" and slider.get_attribute("aria-label")
        low, now, high = (float(slider.get_attribute(f"aria-value{end}")) for end in ("min", "now", "max"))
        assert low <= now <= high and slider.get_attribute("aria-valuetext")
    assert {s.get_attribute("aria-hidden") for s in browser.all("svg")} == {"true"}

"""The status page in Chromium: the delaying site comes first, at desktop and phone width, in dark mode."""

from __future__ import annotations

import shutil
import time

import pytest

from taciturn.sites.watch.serving import open_server, serving
from taciturn.sites.watch.status import Neighbour, Status, page, pages
from taciturn.sites.wire.whereabouts import NetworkSeen, SiteSeen

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars"
)


def status(**changes) -> Status:
    now = time.time()
    seen = (
        SiteSeen("hospital-north", 8, ("hospital-east",), now),
        SiteSeen("hospital-east", 7, ("registry",), now - 3),
        SiteSeen("registry", 6, (), now - 8),
    )
    facts = {
        "site": "hospital-north",
        "job": "readmissions",
        "simulated": False,
        "released": 8,
        "completed": 7,
        "rounds": 20,
        "neighbours": (Neighbour("hospital-east", 7, now, now), Neighbour("clinic", 8, now, None)),
        "epsilon": 0.70001,
        "budget": 2.0,
        "delta": 1e-5,
        "finished": False,
        "network": NetworkSeen(seen, ("registry",), now - 20),
    }
    return Status(**facts | changes)


def test_a_name_is_text_and_nothing_else():
    text = page(status(job="<script>alert(1)</script>"))
    assert "<script" not in text and "&lt;script&gt;" in text


def test_a_thousand_sites_make_a_page_of_bounded_length():
    many = NetworkSeen(tuple(SiteSeen(f"s{i}", 1, (), 0.0) for i in range(1000)), (), 0.0)
    text = page(status(network=many))
    assert text.count("<tr>") == 201 and "and 803 more" in text


@pytest.mark.process
@pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None,
    reason="Chromium is not here: apt-get install chromium chromium-driver",
)
def test_page_names_the_delaying_site_at_every_width(tmp_path):
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in FLAGS.split():
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path / 'chromium'}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with open_server({}, "127.0.0.1:0") as free:
        port = free.socket.getsockname()[1]
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        with serving(pages(status), f"127.0.0.1:{port}"):
            for width, dark in ((1280, False), (390, False), (390, True)):
                scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
                browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
                size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
                browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
                browser.get(f"http://127.0.0.1:{port}/")
                held, rows, wide, back = browser.execute_script(
                    "return [document.querySelector('.held').innerText,"
                    "[...document.querySelectorAll('tbody tr')].map(r => r.innerText),"
                    "document.documentElement.scrollWidth,"
                    "matchMedia('(prefers-color-scheme: dark)').matches]"
                )
                assert "Waits for hospital-east" in held and "held up by registry" in held
                assert rows[0].startswith("registry\nholds up the run") and "in round 6" in rows[0]
                assert "this site" in rows[1] and wide <= width and back is dark
                browser.save_screenshot(str(tmp_path / f"page-{width}-{'dark' if dark else 'light'}.png"))
        assert [line for line in browser.get_log("browser") if line["level"] == "SEVERE"] == []
    finally:
        browser.quit()

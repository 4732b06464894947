"""A running site reports metrics, health and a JSON log to its own machine only."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys

from support.linkcut import until
from support.siteend import check_end
from support.siteprocess import Command, SiteProcess
from support.sitework import PATH_OF_3, network


class Line(http.client.HTTPConnection):
    """HTTP over a socket of this machine."""

    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self.path))


def ask(path, page):
    line = Line(path)
    try:
        line.request("GET", page)
        return line.getresponse().read().decode()
    except OSError:
        return ""
    finally:
        line.close()


def test_delaying_site_is_named_across_the_network(tmp_path):
    """Site 0 waits for 1, and 1 for the stopped site 2: site 0 reports it, and continues with 2."""
    paths = network(tmp_path, PATH_OF_3)
    others = [SiteProcess(paths[1]), SiteProcess(paths[2], {"hold": 3})]
    words = ["site", "run", str(paths[0]), "--log", "json", "--level", "debug", "--watch", "unix:watch.sock"]
    log = paths[0].parent / "log.txt"
    place = paths[0].parent / "watch.sock"
    with log.open("w") as file:
        site = subprocess.Popen([sys.executable, "-m", "taciturn", *words], stdout=file, stderr=file)
    try:
        held = 'taciturn_held_up{job="trial",site="site-0",by="site-2"} 1.0'
        until(lambda: held in ask(place, "/metrics"))
        waits = 'taciturn_waiting_seconds{job="trial",site="site-0",for="site-1"}'
        until(lambda: waits in ask(place, "/metrics"))
        up = 'taciturn_link_up{job="trial",site="site-0",to="site-1"} 1.0'
        until(lambda: up in ask(place, "/metrics"))
        until(lambda: json.loads(ask(place, "/health") or "{}").get("held_up_by") == ["site-2"])
        until(lambda: "held up by site-2" in ask(place, "/").replace("Held", "held"))
        status = "site", "status", str(paths[0])
        until(lambda: "held up by site-2" in Command(*status, path=paths[0]).wait()[1])
        (paths[2].parent / "go").touch()
        assert site.wait(600) == 0 and [entry.wait() for entry in others] == [0, 0]
    finally:
        site.kill()
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    assert [line["round"] for line in lines if line.get("event") == "round"] == [1, 2, 3, 4, 5]
    assert all({"at", "level", "message"} <= set(line) for line in lines) and not place.exists()
    check_end(paths)

"""Metrics and health: Prometheus reads the state of the site, on loopback only."""

from __future__ import annotations

import http.client
import json
import socket
import stat

import pytest

from taciturn.core.errors import ParameterError
from taciturn.sites.watch.metrics import Live, health, prometheus
from taciturn.sites.watch.serving import Answer, open_server, serving
from taciturn.sites.watch.status import Neighbour, Status
from taciturn.sites.wire.whereabouts import NetworkSeen, SiteSeen

LIVE = Live({"beta": True, "gamma": False}, {"beta": 12.5}, {("a stranger", "expired"): 3}, 12.25, 40, 1024)


def status(**changes) -> Status:
    facts = {
        "site": "alpha",
        "job": "trial",
        "simulated": False,
        "released": 4,
        "completed": 3,
        "rounds": 20,
        "neighbours": (Neighbour("beta", 3, 5e8, None), Neighbour("gamma", 4, 5e8, 5e8)),
        "epsilon": 1.23456,
        "budget": 2.0,
        "delta": 1e-5,
        "finished": False,
        "network": NetworkSeen(
            (SiteSeen("alpha", 4, ("beta",), 5e8), SiteSeen("beta", 4, ("delta",), 5e8)), ("delta",), 5e8
        ),
    }
    return Status(**facts | changes)


def test_prometheus_reads_every_number():
    parser = pytest.importorskip("prometheus_client.parser", reason="prometheus_client is not installed")
    read = {
        sample.name: (sample.labels, sample.value)
        for family in parser.text_string_to_metric_families(prometheus(status(), LIVE))
        for sample in family.samples
    }
    me = {"job": "trial", "site": "alpha"}
    assert read["taciturn_rounds_completed"] == (me, 3) and read["taciturn_rounds_released"] == (me, 4)
    assert read["taciturn_epsilon_spent"] == (me, 1.24)  # up
    assert read["taciturn_epsilon_left"] == (me, 0.765)  # down
    assert read["taciturn_waiting_seconds"] == ({**me, "for": "beta"}, 12.5)
    assert read["taciturn_held_up"] == ({**me, "by": "delta"}, 1)
    assert read["taciturn_refusals_total"] == ({**me, "from": "a stranger", "kind": "expired"}, 3)
    assert read["taciturn_certificate_days_left"] == (me, 12.25)
    assert read["taciturn_descriptors"] == (me, 40) and read["taciturn_descriptors_limit"] == (me, 1024)
    assert read["taciturn_link_up"] == ({**me, "to": "gamma"}, 0)


def test_health_names_the_site_that_delays_the_run():
    answer = health(status(), LIVE)
    assert answer.code == 503 and json.loads(answer.text)["held_up_by"] == ["delta"]
    short = Live({}, {"beta": 1.0}, {}, 1.0, 1, 1)
    assert health(status(), short).code == 200


def test_status_names_the_chain_of_waiting_sites():
    lines = "\n".join(status().lines())
    assert "beta: in round 4, waits for delta" in lines and "held up by delta" in lines
    mutual = NetworkSeen((SiteSeen("alpha", 4, ("beta",), 5e8),), (), 5e8)
    assert "check their links" in "\n".join(status(network=mutual).lines())


@pytest.mark.parametrize(
    "place", ["0.0.0.0:9464", "10.0.0.1:80", "127.0.0.1:99999", "example.org:80", "9464"]
)
def test_metrics_listen_on_loopback_only(place):
    with pytest.raises(ParameterError, match="`watch`"):
        open_server({}, place)


def test_socket_is_private_to_its_owner_and_removed_at_the_end(tmp_path):
    pages = {"/health": lambda: Answer(200, "text/plain", "well\n")}
    path = tmp_path / "watch.sock"
    for _ in range(2):
        with serving(pages, "unix:watch.sock", tmp_path):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            with socket.socket(socket.AF_UNIX) as line:
                line.connect(str(path))
                line.sendall(b"GET /health HTTP/1.0\r\n\r\n")
                answer = b"".join(iter(lambda: line.recv(4096), b""))
            assert answer.startswith(b"HTTP/1.0 200") and answer.endswith(b"well\n")
        assert not path.exists()
        with socket.socket(socket.AF_UNIX) as left:  # a killed process leaves its socket behind
            left.bind(str(path))


def test_cross_origin_requests_are_refused(tmp_path):
    with open_server({}, "127.0.0.1:0") as server:
        port = server.socket.getsockname()[1]
    with serving({"/": lambda: Answer(200, "text/plain", "here\n")}, f"127.0.0.1:{port}"):
        for host, code in (("127.0.0.1", 200), ("localhost", 200), ("evil.example", 403), ("10.0.0.1", 403)):
            line = http.client.HTTPConnection("127.0.0.1", port)
            line.request("GET", "/", headers={"Host": host})
            assert line.getresponse().status == code
            line.close()

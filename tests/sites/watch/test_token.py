"""A site answers other machines only if they know its token."""

from __future__ import annotations

import socket
import time
import urllib.error
import urllib.request
from contextlib import ExitStack

import pytest

from support.ports import take_ports
from taciturn.core.errors import TaciturnError
from taciturn.sites.watch import serving as server
from taciturn.sites.watch.serving import Answer, parse_place, read_token, serving

TOKEN = "0123456789abcdef" * 2
PAGES = {"/": lambda: Answer(200, "text/plain", "here\n")}


def ask(port, token=None):
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(f"http://127.0.0.2:{port}/", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=5) as found:
            return found.status
    except urllib.error.HTTPError as error:
        return error.code


def test_only_holders_of_the_token_are_answered():
    port = take_ports(1)[0]
    with serving(PAGES, f"127.0.0.2:{port}", token=TOKEN):
        assert ask(port, TOKEN) == 200
        assert ask(port) == ask(port, "") == ask(port, TOKEN[:-1]) == ask(port, TOKEN + "0") == 401


def ends(line):
    """Whether the server has ended a connection without an answer."""
    try:
        return line.recv(100) == b""
    except ConnectionError:
        return True


def test_idle_clients_do_not_use_up_the_file_descriptors_of_a_site():
    port = take_ports(1)[0]
    with serving(PAGES, f"127.0.0.2:{port}", token=TOKEN):
        with ExitStack() as open_lines:
            for _ in range(server._MOST):
                open_lines.enter_context(socket.create_connection(("127.0.0.2", port)))
            with socket.create_connection(("127.0.0.2", port), timeout=3) as line:
                assert ends(line)
        latest = time.monotonic() + 10
        while time.monotonic() < latest:  # until the server has noticed that the idle clients are gone
            try:
                assert ask(port, TOKEN) == 200
                return
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.05)
    pytest.fail("the server answers nobody after idle clients have left")


def test_a_client_that_sends_a_byte_now_and_then_is_disconnected(monkeypatch):
    monkeypatch.setattr(server, "_LONGEST", 0.5)
    port = take_ports(1)[0]
    with serving(PAGES, f"127.0.0.2:{port}", token=TOKEN):
        with socket.create_connection(("127.0.0.2", port), timeout=0.1) as line:
            latest = time.monotonic() + 10
            with pytest.raises(ConnectionError):
                while time.monotonic() < latest:
                    line.sendall(b"G")
                    time.sleep(0.1)


@pytest.mark.parametrize("place", ["0.0.0.0:9464", "10.1.2.3:9464", "126.0.0.1:9464"])
def test_address_that_others_can_reach_needs_a_token(place):
    with pytest.raises(TaciturnError, match="watch_token"):
        parse_place(place)
    assert parse_place(place, TOKEN)


@pytest.mark.parametrize("place", ["127.0.0.1:9464", "127.0.0.2:9464", "localhost:9464"])
def test_address_of_this_machine_alone_needs_no_token(place):
    assert parse_place(place)


@pytest.mark.parametrize("place", ["host:9464", "0.0.0.0", "0.0.0.0:99999", "[::]:9464"])
def test_other_places_are_refused_even_with_a_token(place):
    with pytest.raises(TaciturnError, match="ADDRESS:PORT"):
        parse_place(place, TOKEN)


@pytest.mark.parametrize("text", ["short", "", "two words " * 8, "\u00e9" * 40])
def test_weak_token_is_refused_and_not_quoted(tmp_path, text):
    file = tmp_path / "token"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(TaciturnError) as caught:
        read_token(file)
    assert not text or text.strip() not in str(caught.value)
    file.write_text(TOKEN + "\n")
    assert read_token(file) == TOKEN

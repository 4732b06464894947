"""Serve a few pages over HTTP: on loopback, on a Unix socket of the owner, or to clients with a token."""

from __future__ import annotations

import hmac
import ipaddress
import os
import re
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from ...core.errors import SiteError, TaciturnError, WrongFiles

LOOPBACK = "127.0.0.1"
HTML, TEXT, JSON = "text/html", "text/plain", "application/json"
_PLACE = re.compile(r"(localhost|[\d.]+):(\d{1,5})|unix:(.+)")
_LEAST_TOKEN = 32  # characters; a random token of this length cannot be guessed
_PATIENCE = 5.0  # a client that sends nothing for this many seconds is disconnected
_LONGEST = 20.0  # a client that has not received its answer after this many seconds is disconnected, too
_MOST = 16  # the most clients at a time, so that clients cannot use up the file descriptors of the site


class Answer(NamedTuple):
    """An HTTP answer: status code, content type, text."""

    code: int
    kind: str
    text: str


Pages = Mapping[str, Callable[[], Answer]]


class _FewClients(socketserver.ThreadingMixIn):
    """A server of at most `_MOST` clients at a time, each for at most `_LONGEST` seconds."""

    daemon_threads = True

    def __init__(self, *args: Any) -> None:
        self._free = threading.BoundedSemaphore(_MOST)
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)  # type: ignore[attr-defined]
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread can be started
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        timer = threading.Timer(_LONGEST, _cut, (request,))
        timer.daemon = True
        timer.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            timer.cancel()
            self._free.release()


def _cut(request: socket.socket) -> None:
    with suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)


class _Server(_FewClients, HTTPServer):
    pass


class _UnixServer(_FewClients, socketserver.UnixStreamServer):
    pass


def parse_place(place: str, token: str | None = None) -> re.Match[str]:
    """Parse a `watch` address into host, port and path. A host other than loopback needs a token."""
    found = _PLACE.fullmatch(place)
    if found is None or (found[2] and int(found[2]) > 65535):
        raise WrongFiles(f"`watch` must be 127.0.0.1:PORT, ADDRESS:PORT or unix:PATH; got {place!r}.")
    if token is None and found[1] and not _is_loopback(found[1]):
        raise WrongFiles(f"`watch` = {place!r} can be reached by other machines: set `watch_token` too.")
    return found


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_token(path: Path) -> str:
    """The token in a file: one line of at least 32 characters."""
    try:
        token = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise WrongFiles(f"`watch_token`: {path} cannot be read as one line of ASCII text.") from error
    if len(token) < _LEAST_TOKEN or not token.isprintable() or " " in token:
        raise WrongFiles(
            f"`watch_token`: {path} must have one line of at least {_LEAST_TOKEN} characters without "
            "spaces; create one with: openssl rand -hex 32"
        )
    return token


def open_server(
    pages: Pages, place: str, folder: Path = Path(), token: str | None = None
) -> socketserver.TCPServer:
    """Open a server at ADDRESS:PORT or unix:PATH (relative to `folder`); the caller calls `serve_forever`."""
    found = parse_place(place, token)
    try:
        if found[3] is None:
            host = LOOPBACK if found[1] == "localhost" else found[1]
            handler = _handler(pages, local=_is_loopback(host), token=token)
            return _Server((host, int(found[2])), handler)
        return _open_socket(pages, folder / found[3], token)
    except OSError as error:
        raise SiteError(
            f"`watch`: this site cannot listen at {place} ({error.strerror or error})."
        ) from error


@contextmanager
def serving(pages: Pages, place: str, folder: Path = Path(), token: str | None = None) -> Iterator[None]:
    """Answer requests on a separate thread until the `with` block ends."""
    server = open_server(pages, place, folder, token)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        if place.startswith("unix:"):
            (folder / place.removeprefix("unix:")).unlink(missing_ok=True)


def _open_socket(pages: Pages, path: Path, token: str | None) -> _UnixServer:
    """Open a Unix socket that only this user can use; replace a socket that a killed process left behind."""
    if path.is_socket():
        path.unlink()
    before = os.umask(0o177)
    try:
        return _UnixServer(str(path), _handler(pages, local=False, token=token))
    finally:
        os.umask(before)


def _handler(pages: Pages, *, local: bool, token: str | None) -> type[BaseHTTPRequestHandler]:
    wanted = None if token is None else f"Bearer {token}".encode()

    class Handler(BaseHTTPRequestHandler):
        timeout = _PATIENCE

        def do_GET(self) -> None:
            host = self.headers.get("Host", "").rsplit(":", 1)[0]
            if local and not _is_loopback(host):  # prevents DNS rebinding
                self._send(Answer(403, TEXT, "this page is only for this machine\n"))
            elif not self._allowed():
                self._send(Answer(401, TEXT, "the header Authorization: Bearer TOKEN is missing or wrong\n"))
            elif self.path in pages:
                self._send(self._answer(pages[self.path]))
            else:
                self._send(Answer(404, TEXT, "there is no such page\n"))

        def _allowed(self) -> bool:
            given = self.headers.get("Authorization", "").encode("utf-8", "replace")
            return wanted is None or hmac.compare_digest(given, wanted)

        def _answer(self, make: Callable[[], Answer]) -> Answer:
            try:
                return make()
            except TaciturnError as error:
                return Answer(500, TEXT, f"{error}\n")

        def _send(self, answer: Answer) -> None:
            content = answer.text.encode()
            with suppress(ConnectionError):
                self.send_response(answer.code)
                self.send_header("Content-Type", f"{answer.kind}; charset=utf-8")
                self.send_header("Content-Length", str(len(content)))
                self.send_header("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
                self.send_header("X-Frame-Options", "DENY")
                self.send_header("Cache-Control", "no-store")
                self.end_headers()
                self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """Do not log requests."""

    return Handler

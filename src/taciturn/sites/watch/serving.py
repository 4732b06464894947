"""A few pages over HTTP, for this machine alone: on loopback, or on a socket that only its owner can open."""

from __future__ import annotations

import os
import re
import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import SiteError, TaciturnError, WrongFiles

LOOPBACK = "127.0.0.1"
HTML, TEXT, JSON = "text/html", "text/plain", "application/json"
_PLACE = re.compile(r"(127\.0\.0\.1|localhost):(\d{1,5})|unix:(.+)")
_PATIENCE = 5.0  # seconds for a request to come in


class Answer(NamedTuple):
    """A page: its code, its kind, its text."""

    code: int
    kind: str
    text: str


Pages = Mapping[str, Callable[[], Answer]]


class _UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


def parse_place(place: str) -> re.Match[str]:
    """Where to answer, taken apart: groups 2 and 3 are a port or a path; anything else is refused."""
    found = _PLACE.fullmatch(place)
    if found is None or (found[2] and int(found[2]) > 65535):
        raise WrongFiles(f"`watch` must be 127.0.0.1:PORT or unix:PATH; got {place!r}.")
    return found


def open_server(pages: Pages, place: str, folder: Path = Path()) -> socketserver.TCPServer:
    """A server at 127.0.0.1:PORT or unix:PATH, the path counting from `folder`; call `serve_forever`."""
    found = parse_place(place)
    try:
        if found[3] is None:
            return ThreadingHTTPServer((LOOPBACK, int(found[2])), _handler(pages, local=True))
        return _open_socket(pages, folder / found[3])
    except OSError as error:
        raise SiteError(f"`watch`: cannot listen at {place} ({error.strerror or error}).") from error


@contextmanager
def serving(pages: Pages, place: str, folder: Path = Path()) -> Iterator[None]:
    """Answer on a thread of its own for as long as the block lasts."""
    server = open_server(pages, place, folder)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        if place.startswith("unix:"):
            (folder / place.removeprefix("unix:")).unlink(missing_ok=True)


def _open_socket(pages: Pages, path: Path) -> _UnixServer:
    """A socket for its owner alone; one that a killed process left behind is in nobody's way."""
    if path.is_socket():
        path.unlink()
    before = os.umask(0o177)
    try:
        return _UnixServer(str(path), _handler(pages, local=False))
    finally:
        os.umask(before)


def _handler(pages: Pages, *, local: bool) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _PATIENCE

        def do_GET(self) -> None:
            host = self.headers.get("Host", "").rsplit(":", 1)[0]
            if local and host not in (LOOPBACK, "localhost"):  # no page of another site may read it
                self._send(Answer(403, TEXT, "only for this machine\n"))
            elif self.path in pages:
                self._send(self._answer(pages[self.path]))
            else:
                self._send(Answer(404, TEXT, "nothing here\n"))

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
            """Say nothing for each request."""

    return Handler

"""The status page: plain HTML on loopback that reloads itself; it reads the site's file and nothing else."""

from __future__ import annotations

import html
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ...errors import TaciturnError
from ...privacy.certificate.numbers import rounded_up
from .status import Status

LOOPBACK = "127.0.0.1"

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="2">
<meta name="viewport" content="width=device-width"><title>{title}</title>
<style>
:root {{ color-scheme: light dark; font-family: system-ui, sans-serif; }}
body {{ max-width: 40rem; margin: 2rem auto; padding: 0 1rem; line-height: 1.5; }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ text-align: left; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid #8884; }}
progress {{ width: 100%; }}
</style></head><body>
<h1>{title}</h1>
<p>{stage}</p><progress max="{rounds}" value="{completed}"></progress>
<p>epsilon {shown} spent, {left:.3g} left of {budget:g}, at delta {delta:g}</p>
<progress max="{budget}" value="{epsilon}"></progress>
<table><tr><th>neighbour</th><th>heard in round</th><th></th></tr>{rows}</table>
</body></html>
"""


def page(status: Status) -> str:
    """A status as a page of its own."""
    rows = "".join(
        f"<tr><td>{html.escape(n.name)}</td><td>{n.heard or ''}</td>"
        f"<td>{'silent' if n.silent_since is not None else ''}</td></tr>"
        for n in status.neighbours
    )
    stage = "finished" if status.finished else f"round {status.completed} of {status.rounds} complete"
    return _PAGE.format(
        title=html.escape(f"{status.site} in {status.job}") + (" (simulated)" if status.simulated else ""),
        stage=stage,
        rounds=status.rounds,
        completed=status.completed,
        epsilon=status.epsilon,
        shown=rounded_up(status.epsilon),
        left=status.left,
        budget=status.budget,
        delta=status.delta,
        rows=rows,
    )


def server(read: Callable[[], Status], port: int = 0) -> ThreadingHTTPServer:
    """A server on 127.0.0.1 alone: `/` is the page, `/status.json` the facts. Call `serve_forever`."""
    return ThreadingHTTPServer((LOOPBACK, port), _handler(read))


def _handler(read: Callable[[], Status]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.headers.get("Host", "").rsplit(":", 1)[0] not in (LOOPBACK, "localhost"):
                self._send(
                    403, "text/plain", "only for this machine\n"
                )  # no page of another site may read it
            elif self.path == "/":
                self._send(200, "text/html", page(read()))
            elif self.path == "/status.json":
                self._send(200, "application/json", read().to_json() + "\n")
            else:
                self._send(404, "text/plain", "nothing here\n")

        def _send(self, code: int, kind: str, text: str) -> None:
            content = text.encode()
            self.send_response(code)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
            self.send_header("X-Frame-Options", "DENY")
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing for each request."""

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except TaciturnError as error:
                self._send(500, "text/plain", f"{error}\n")

    return Handler

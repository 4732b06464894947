"""Probe: find out whether a neighbour can be reached with the right identity, and if not, why not.

Zenoh does not report this. A probe makes a TLS handshake and sends nothing else. It uses this site's own key,
and trusts only the certificates that the site trusts.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from typing import Any

from ..files.site import Site
from .trust import trusted_roots

TIMEOUT = 5.0
NOBODY = ("does not answer", "cannot be reached")  # words in a reason if no process answered
BETWEEN = 1.0  # seconds between two probes of one neighbour
VERDICT = 0.3  # seconds in which the neighbour may still refuse this site's certificate


def address(endpoint: str) -> tuple[str, int]:
    """("host", port) of "tls/host:port"."""
    host, port = endpoint.removeprefix("tls/").rsplit(":", 1)
    return host.strip("[]"), int(port)


def probe(site: Site, name: str, endpoint: str) -> str | None:
    """The reason why the site `name` cannot be reached at `endpoint`; None if it can."""
    host, port = address(endpoint)
    try:
        context = _context(site)
        with socket.create_connection((host, port), timeout=TIMEOUT) as plain:
            with context.wrap_socket(plain, server_hostname=host) as link:
                return _who(link, name)
    except ssl.SSLCertVerificationError as error:
        return f"the certificate at {endpoint} is not trusted: {error.verify_message}"
    except ssl.SSLError as error:
        return f"{endpoint} refused this site's certificate, or does not use TLS: {error.reason}"
    except TimeoutError:
        return f"{endpoint} does not answer"
    except OSError as error:
        return f"{endpoint} cannot be reached: {error.strerror or error}"


class Probes:
    """Probes of missing neighbours, on a separate thread. Use it in a `with` block.

    `found` has, for each probed neighbour, the reason why it cannot be reached, or None if it can.
    """

    def __init__(self, site: Site, missing: Callable[[], list[str]], begin: float = BETWEEN) -> None:
        self._site, self._missing, self._begin = site, missing, begin
        self.found: dict[str, str | None] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        pause = self._begin
        while not self._stopped.wait(pause):
            pause = BETWEEN
            for name in self._missing():
                own = self._site.file.endpoints.get(name)
                endpoint = self._site.dials().get(name) or own or self._site.job.site(name).endpoint
                if endpoint is not None and not self._stopped.is_set():
                    self._note(name, probe(self._site, name, endpoint))

    def _note(self, name: str, wrong: str | None) -> None:
        """Keep this result. If no process answered, keep an earlier result of this neighbour instead."""
        if name not in self.found or not (wrong and any(words in wrong for words in NOBODY)):
            self.found[name] = wrong

    def __enter__(self) -> Probes:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()


def _who(link: ssl.SSLSocket, name: str) -> str | None:
    certificate: dict[str, Any] = dict(link.getpeercert() or {})
    names = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    if names != [name]:
        return f"its certificate is that of {', '.join(map(str, names)) or 'no name'}, not of {name}"
    link.settimeout(VERDICT)
    try:
        if link.recv(1) == b"":
            return "it closed the connection at once"
    except TimeoutError:
        return None
    return None


def _context(site: Site) -> ssl.SSLContext:
    keys = site.file.keys
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata=trusted_roots(site).decode("ascii"))
    context.load_cert_chain(site.path(keys.certificate), site.path(keys.private))
    return context

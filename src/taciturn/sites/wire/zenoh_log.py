"""Zenoh's own log, which reports clients that Zenoh itself rejected.

If a handshake fails, or access control stops a message, the only trace is a line that Zenoh writes to file
descriptor 1. This module reads these lines and reports them like every other refusal, once per sender. A
line that cannot be parsed is ignored; the client is rejected anyway.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import zenoh

from ..files.site import Site
from .refusals import Refusals

FILTER = "off,zenoh_link_tls=warn,zenoh::net::routing::interceptor::access_control=trace"

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_HANDSHAKE = re.compile(r"zenoh_link_tls::\S+ (.+?)\.? Hint: ")
_DENIED = re.compile(r"CertCommonName\(([^)]*)\)\S* is unauthorized to (\w+)[\w ]* \(ingress\) on (\S+)")
_MARKS = b"Hint: ", b"is unauthorized to"  # other lines do not report refusals
PAUSE, MUCH = 0.05, 2**14  # seconds between two reads; after a read of MUCH bytes there is no pause
NAMELESS = "an unauthenticated client"
_REASONS = (
    ("no certificates", "no certificate", "it showed no certificate"),
    ("expired", "expired", "its certificate is expired"),
    ("NotValidYet", "expired", "its certificate is not valid yet"),
    (
        "received fatal alert",
        "turned down",
        "it does not accept this site's certificate: its authority differs, or the certificate does not name "
        "the right host",
    ),
    ("key usage", "purpose", "its certificate does not allow outgoing connections: it lacks clientAuth"),
    ("UnknownIssuer", "authority", "its certificate is not from this network's authority"),
    ("BadSignature", "authority", "its certificate is not from this network's authority"),
)


@contextmanager
def zenoh_log(heard: Callable[[str], None]) -> Iterator[None]:
    """Pass each refusal in Zenoh's log to `heard`, until the `with` block ends. Use it once per process.

    File descriptor 1 becomes a pipe. Python's standard output goes to a copy of the old descriptor.
    """
    sys.stdout.flush()
    kept, standard = os.dup(1), sys.stdout
    reading, writing = os.pipe()
    os.dup2(writing, 1)
    os.close(writing)
    listener = threading.Thread(target=_listen, args=(reading, heard), daemon=True)
    listener.start()
    try:
        with os.fdopen(os.dup(kept), "w", buffering=1, encoding="utf-8", errors="replace") as ours:
            sys.stdout = ours
            zenoh.init_log_from_env_or(FILTER)
            yield
            ours.flush()
    finally:
        sys.stdout = standard
        os.dup2(kept, 1)  # closes the last writing end of the pipe
        os.close(kept)
        listener.join(1.0)


def watch_zenoh(site: Site) -> Callable[[Refusals], AbstractContextManager[None]]:
    """The argument `watch` for `run_site`: it reports the refusals in Zenoh's log while the site runs."""
    return lambda refusals: zenoh_log(report_refusals(site, refusals))


def report_refusals(site: Site, refusals: Refusals) -> Callable[[str], None]:
    """A function that reads one line of Zenoh's log and reports it to `refusals` if it is a refusal."""
    names = site.job.names
    ends = ("", "/**", "/all", *(f"/{to}/{other}" for to in ("to", "*") for other in names))
    # Zenoh itself uses these names, so a denial of one of them is not reported.
    declared = {"taciturn", *(f"taciturn/{name}{end}" for name in names for end in ends)}

    def read_line(line: str) -> None:
        handshake, denied = _HANDSHAKE.search(line), _DENIED.search(line)
        if handshake:
            absent = sorted(set(site.neighbours) - refusals.connected())
            hint = f" (not connected: {', '.join(absent)})" if absent else ""
            kind, words = _reason(handshake[1])
            refusals.refuse(NAMELESS, kind, f"{words}{hint}")
        elif denied and denied[3] not in declared:
            what = f"{denied[2].lower()} {denied[3]}"
            refusals.refuse(denied[1], "access", f"its operation is not allowed: {what}")

    return read_line


def _reason(text: str) -> tuple[str, str]:
    for mark, kind, words in _REASONS:
        if mark in text:
            return kind, words
    return "handshake", f"the handshake failed: {text}"


def _listen(reading: int, heard: Callable[[str], None]) -> None:
    """Read many lines at once, twenty times a second: Zenoh writes a line for every message."""
    begun, all_of_it = b"", "RUST_LOG" in os.environ  # RUST_LOG asks for the full log
    with os.fdopen(reading, "rb", buffering=0) as lines:
        while piece := lines.read(2**16):
            *whole, begun = (begun + piece).split(b"\n")
            for line in whole:
                if all_of_it:
                    print(line.decode("utf-8", errors="replace"), file=sys.stderr)
                if any(mark in line for mark in _MARKS):
                    heard(_COLOUR.sub("", line.decode("utf-8", errors="replace")))
            if len(piece) < MUCH:  # otherwise the pipe may be full, and Zenoh waits
                time.sleep(PAUSE)

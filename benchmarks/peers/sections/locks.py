"""Section 3, locks: an unknown client at a peer with TLS and authentication, set up as its guides show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .. import federations
from ..pins import Environment
from ..results import read_one
from ..rows import write_rows
from ..running.keys import write_key
from ..running.sandbox import Process, Script, run
from .faults import compared, play, turn_round
from .work import PORTS, ROUNDS, door, fresh, probed

GUARDED = ("flwr", "appfl")  # FLARE and taciturn always authenticate
REFUSED = {"flwr": "Connection attempt failed", "appfl": "UNAUTHENTICATED"}  # in a rejected client's log
REFUSES = 30.0  # seconds after which a server without certificates counts as started


def measure(peer: str, env: Environment, base: Path, kept: Path) -> dict[str, Any]:
    """Repeat the run with an unknown client, with authentication enabled; also try a TLS handshake."""
    work = read_one(kept, peer, "work", env.version)
    folder = fresh(base / f"guarded-{peer}")
    rows = write_rows(fresh(folder.parent / "rows-six"))
    turned, keys = turn_round(rows), folder / "keys"
    script = {"flwr": _flower, "appfl": _appfl}[peer](env, rows, folder, keys, turned)
    found = compared({"model": np.array(work["model"])}, play(probed(script, PORTS[peer]), folder))
    found |= {"tls": door(folder)}
    log = (folder / "stranger.log").read_text(errors="replace")
    if found.get("same") and REFUSED[peer] not in log:
        raise RuntimeError("the unknown client was never rejected")
    return found | ({"bare": bare(env, base)} if peer == "flwr" else {})


def _flower(env: Environment, rows: list[Path], folder: Path, keys: Path, turned: Path) -> Script:
    script = federations.flower(env, rows, folder, ROUNDS["flwr"], keys)
    write_key(keys / "stranger")  # a key that is not registered
    return _joined(script, federations.supernode(env, "stranger", turned, 9190, keys))


def _appfl(env: Environment, rows: list[Path], folder: Path, keys: Path, turned: Path) -> Script:
    script = federations.appfl(env, rows, folder, ROUNDS["appfl"], keys)
    return _joined(script, federations.appfl_client(env, "stranger", turned, keys, "of his own"))


def _joined(script: Script, stranger: Process) -> Script:
    """The script with the unknown client, which starts as soon as the server is ready."""
    server, *others = script.processes
    return Script(
        (server, stranger, *others),
        script.timeout,
        waits_for=script.waits_for,
        fails_with=script.fails_with,
        env=script.env,
    )


def bare(env: Environment, base: Path) -> str:
    """Start Flower's server with neither `--insecure` nor certificates; return what it does."""
    assert env.python is not None
    folder = fresh(base / "bare-flwr")
    server = Process("server", (str(env.python.parent / "flower-superlink"),))
    measured = run(Script((server,), REFUSES, fails_with="server", env={"FLWR_HOME": str(folder)}), folder)
    return "does not start" if measured["seconds"] < REFUSES else "starts"

"""What every adapter calls after a round: the time, what loopback has carried so far, and CPU seconds."""

import json
import os
import time
from pathlib import Path


def loopback() -> int:
    """Bytes over lo since it came up, headers included."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == "lo":
            return int(numbers.split()[0])
    return 0


def cpu_seconds() -> float:
    """What all processes of this namespace have used, those that have ended included, those that only look
    on not: they are in apart.json, and process 1, whose own share comes before that of its children."""
    listed = Path(os.environ["PEER_MARKS"]).with_name("apart.json")
    apart = {str(pid) for pid in json.loads(listed.read_text())} if listed.exists() else set()
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        pid = path.parent.name
        try:
            used = path.read_text().rpartition(")")[2].split()[13 if pid == "1" else 11 : 15]
        except OSError:
            continue
        ticks += 0 if pid in apart else sum(int(entry) for entry in used)
    return ticks / os.sysconf("SC_CLK_TCK")


def mark(number: int) -> None:
    """Note the end of round `number`."""
    entry = {"round": number, "at": time.time(), "bytes": loopback(), "cpu": cpu_seconds()}
    with open(os.environ["PEER_MARKS"], "a") as file:
        file.write(json.dumps(entry) + "\n")

"""Record the time, the bytes on loopback and the CPU seconds; every adapter calls this after a round."""

import json
import os
import time
from pathlib import Path


def loopback() -> int:
    """The bytes on the loopback interface so far, including headers."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == "lo":
            return int(numbers.split()[0])
    return 0


def cpu_seconds() -> float:
    """The CPU seconds of all processes of this namespace, also of those that have ended. Processes that only
    observe do not count: those in apart.json, and process 1 itself (but its children count)."""
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
    """Record the end of round `number`."""
    entry = {"round": number, "at": time.time(), "bytes": loopback(), "cpu": cpu_seconds()}
    with open(os.environ["PEER_MARKS"], "a") as file:
        file.write(json.dumps(entry) + "\n")

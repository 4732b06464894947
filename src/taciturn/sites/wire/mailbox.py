"""The mailbox: the neighbours' frames for this round and the next. Everything else is refused.

A neighbour can be one round ahead, never more, since it needs this site's frame to go on. Frames come in on
threads of the network and are checked there; the site's own thread waits for them.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import NamedTuple

from ...types import Array
from ..files.job import NetworkJob
from .frame import Frame, FrameRefused, check_values, decode
from .refusals import Refusals
from .trust import Trust


class Letter(NamedTuple):
    """A believed frame: its exact bytes and its vector."""

    data: bytes
    vector: Array


class Mailbox:
    """What one site was sent. `t` is the round it waits for; 0 stands for 'hello', rounds + 1 for 'done'."""

    def __init__(self, job: NetworkJob, name: str, trust: Trust, refusals: Refusals, t: int) -> None:
        self.t = t
        self._job, self._trust, self._refusals = job, trust, refusals
        self._numbers = {neighbour: job.names.index(neighbour) for neighbour in job.neighbours(name)}
        self._letters: dict[tuple[int, int], Letter] = {}
        self._finals: dict[int, Letter] = {}
        self._news = threading.Condition()

    # -- on the network's threads -----------------------------------------------------------------------

    def offer(self, sender: str, t: int, data: bytes, *, asked: bool = False) -> None:
        """A frame came in under `sender`'s key for round t; `asked` for, or of its own accord."""
        try:
            number = self._number(sender)
            known = self._letters.get((number, t))
            if known is None or known.data != data:
                self._admit_round(t, asked)
                vector = self._believed(data, t, number, sender)
                self._keep(number, t, Letter(data, vector))
        except _Stale:
            return
        except FrameRefused as refused:
            self._refusals.refuse(sender, refused.kind, str(refused))

    def offer_final(self, sender: str, owner: str, data: bytes) -> None:
        """`sender` passes on the last frame of `owner`, any site of the job."""
        try:
            self._number(sender)
            if owner not in self._job.names:
                raise FrameRefused("owner", "a last frame of a site that the job does not have")
            number = self._job.names.index(owner)
            known = self._finals.get(number)
            if known is None or known.data != data:
                vector = self._believed(data, self._job.rounds, number, owner)
                self._keep_final(number, owner, Letter(data, vector))
        except FrameRefused as refused:
            self._refusals.refuse(sender, refused.kind, str(refused))

    # -- on the site's thread ---------------------------------------------------------------------------

    def missing(self) -> list[str]:
        """Which neighbours have not been heard in round t."""
        with self._news:
            return [name for name, number in self._numbers.items() if (number, self.t) not in self._letters]

    def wait(self, seconds: float) -> None:
        """Until something arrives, or the time is over."""
        with self._news:
            self._news.wait(seconds)

    def wake(self) -> None:
        """Let `wait` return: something changed."""
        with self._news:
            self._news.notify_all()

    def take(self) -> dict[int, Letter]:
        """The frames of round t, by number in increasing order; from now on round t + 1 is waited for."""
        with self._news:
            taken = {number: self._letters[number, self.t] for number in sorted(self._numbers.values())}
            self.t += 1
            for number, t in list(self._letters):
                if t < self.t:
                    del self._letters[number, t]
        return taken

    def finals(self) -> dict[int, Letter]:
        """The last frames known so far, by number."""
        with self._news:
            return dict(self._finals)

    def know_finals(self, frames: Mapping[int, bytes]) -> None:
        """Last frames that this site has on disk."""
        for number, data in frames.items():
            self._finals[number] = Letter(data, decode(data, dimension=self._job.dimension).vector)

    # -- inside -----------------------------------------------------------------------------------------

    def _number(self, sender: str) -> int:
        if sender not in self._numbers:
            raise FrameRefused("stranger", f"{sender} is not a neighbour of this site")
        return self._numbers[sender]

    def _admit_round(self, t: int, asked: bool) -> None:
        if t < self.t:
            if asked:  # an answer that came after the frame itself
                raise _Stale
            raise FrameRefused("replay", f"round {t} again, while round {self.t} is being waited for")
        if t > min(self.t, self._job.rounds) + 1:
            raise FrameRefused("future", f"round {t}, while round {self.t} is being waited for")

    def _believed(self, data: bytes, t: int, number: int, name: str) -> Array:
        """The vector of a frame of round t that `name` signed, or the reason why it is not believed."""
        job = self._job
        frame: Frame = decode(data, dimension=job.dimension)
        if frame.job != job.hash:
            raise FrameRefused(
                "job", f"it holds another job, {frame.job.hex()[:12]}, not {job.hash.hex()[:12]}"
            )
        if frame.sender != number:
            said = job.names[frame.sender] if frame.sender < len(job.names) else f"site {frame.sender}"
            raise FrameRefused("name", f"a frame that names {said} as its sender, not {name}")
        if frame.t != t:
            raise FrameRefused("round", f"a frame of round {frame.t} under the name of round {t}")
        if frame.vector.size != (job.dimension if 1 <= t <= job.rounds else 0):
            raise FrameRefused("length", f"a vector of length {frame.vector.size} in round {t}")
        self._trust.check(frame, name)
        check_values(frame.vector, clip=job.clip)
        return frame.vector

    def _keep(self, number: int, t: int, letter: Letter) -> None:
        with self._news:
            first = self._letters.setdefault((number, t), letter)
            self._news.notify_all()
        if first.data != letter.data:
            raise FrameRefused("twice", f"a second, different frame for round {t}; the first one counts")

    def _keep_final(self, number: int, owner: str, letter: Letter) -> None:
        with self._news:
            first = self._finals.setdefault(number, letter)
            self._news.notify_all()
        if first.data != letter.data:
            raise FrameRefused("twice", f"a second, different last frame of {owner}; the first one counts")


class _Stale(Exception):  # noqa: N818
    """Nothing is wrong; it is only too late to matter."""

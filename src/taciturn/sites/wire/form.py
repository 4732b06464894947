"""The form of a job's rounds: how long the messages of a round are, whose frames a site waits for, and which
two of one site contradict each other.

    -1          hello: a stamp, a fresh nonce of this run, and what the job adds; from everybody
    0           ready: 'these are the hellos that I hold', by `common`; from everybody
    1 .. T      the rounds: from the neighbours, or from everybody where the job sums over all sites
    T           from everybody in every job: the model is made of the last frames of all
    T + 1       done: 'these are the last frames that I hold', by `common`; from everybody
    T + 2       left: 'I have my results'; from the neighbours

A frame that everybody needs is passed on from neighbour to neighbour, so that any connected graph will do.
Round 1 begins where everybody has signed the same hellos: before, a site that lost its state may say hello
again, and whoever was ready signs again; after, it cannot, for nobody would be ready with it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from ..files.job import NetworkJob
from .frame import Frame, FrameRefused, check_values, follows, to_vector

HELLO, READY = -1, 0
CHECK = 2**32 - 1  # the attempt of a greeting that belongs to no run: `site check`
FINISH, LAST = 1, 2  # of an early end: `early_end/words.py`
ROUND = struct.Struct("<I")  # what 'finish' and 'last' begin with
STAMP = struct.Struct("<Q")
NONCE = 32
RUN_KEY = 32  # the X25519 key that a masked site makes for the run


@dataclass(frozen=True)
class Form:
    """What the frames of one job look like.

    size_of : bytes of the message in round t, 1 <= t <= rounds; at most `largest`.
    check : refuses the message of a round for its values.
    all_rounds : whether everybody needs everybody's frames in every round.
    greeting : bytes that the job adds to 'hello'.
    absent : sites that nobody waits for.
    """

    job: NetworkJob
    size_of: Callable[[int], int]
    largest: int
    check: Callable[[int, bytes], None]
    all_rounds: bool = False
    greeting: int = 0
    absent: frozenset[str] = frozenset()

    @property
    def rounds(self) -> int:
        """T"""
        return self.job.rounds

    @property
    def done(self) -> int:
        """The round in which a site says which last frames it holds."""
        return self.job.rounds + 1

    @property
    def left(self) -> int:
        """The round in which a site says that it has its results."""
        return self.job.rounds + 2

    def size(self, t: int) -> int:
        """Bytes of the message in round t."""
        if t == HELLO:
            return STAMP.size + NONCE + self.greeting
        return self.size_of(t) if READY < t <= self.rounds else 0

    @property
    def cap(self) -> int:
        """Bytes of the longest message, those of an early end included: a proof may hold one."""
        finish = ROUND.size + 1 + (len(self.job.names) + 7) // 8
        return max(self.size(HELLO), finish, ROUND.size + self.largest)

    def everybody(self, t: int) -> bool:
        """Whether every site needs the frames of round t of all others."""
        return t in (HELLO, READY, self.rounds, self.done) or (self.all_rounds and t < self.left)

    def wanted(self, name: str, t: int) -> tuple[str, ...]:
        """Whose frames of round t the site called `name` waits for, in the job's order."""
        wanted = self.job.names if self.everybody(t) else self.job.neighbours(name)
        return tuple(other for other in wanted if other != name and other not in self.absent)

    def check_message(self, t: int, message: bytes) -> None:
        """The length that round t has, and values that an honest site may send."""
        if len(message) != self.size(t):
            raise FrameRefused(
                "length", f"a message of {len(message)} bytes in round {t}, not {self.size(t)}"
            )
        if 1 <= t <= self.rounds:
            self.check(t, message)

    def owners_to_pass(self, name: str) -> frozenset[str]:
        """The owners whose frames `name` passes on: those whom one of its neighbours does not hear itself."""
        names, graph = self.job.names, self.job.graph
        i = names.index(name)
        near = [{j, *graph.neighbors(j)} for j in graph.neighbors(i)]
        return frozenset(
            owner for k, owner in enumerate(names) if k != i and any(k not in others for others in near)
        )


@dataclass(frozen=True)
class EarlyForm(Form):
    """What is said where a run ends early (`early_end/words.py`); the last of its rounds is 2."""

    @property
    def rounds(self) -> int:
        return 2

    @property
    def done(self) -> int:
        return 3

    @property
    def left(self) -> int:
        return 4

    def size(self, t: int) -> int:
        """Bytes of the message in round t."""
        return self.size_of(t)

    def everybody(self, t: int) -> bool:
        """All but the goodbye."""
        return 1 <= t <= self.done


def contradict(first: Frame, second: Frame) -> bool:
    """Whether one site cannot honestly have signed both, as anyone can tell from the two alone.

    one round twice     two frames of one attempt and round
    a broken chain      a frame that names another one before it than the one that its site sent
    a wrong last        'last' of an early end with another vector of round S than the frame of round S
    a wrong finish      'finish' with fewer rounds completed than follow from a frame that had left before

    A site that has released round t has completed t - 1 rounds, so its 'finish' says so many at least. What
    is said before round 1 may be said again, so it contradicts nothing.
    """
    if first.job != second.job or first.sender != second.sender or first.digest == second.digest:
        return False
    if min(first.t, second.t) <= READY:
        return False
    if first.attempt != second.attempt:
        released, word = sorted((first, second), key=lambda frame: frame.attempt)
        return _belies(released, word)
    return first.t == second.t or not (follows(first, second) and follows(second, first))


def rounds_of(first: Frame, second: Frame) -> tuple[int, int]:
    """The rounds that two frames are about; of a word of an early end beside a release, the one it states."""
    if first.attempt == second.attempt:
        return first.t, second.t
    at, of = (frame.t if frame.attempt == 0 else _stated(frame) for frame in (first, second))
    return at, of


def _belies(released: Frame, word: Frame) -> bool:
    """Whether a release of the run shows that a word of an early end is not true."""
    if released.attempt != 0 or not released.message or len(word.message) < ROUND.size:
        return False  # only a release has a message: 'done' and 'left' have none
    if word.t == FINISH:
        return _stated(word) < released.t - 1
    of_vectors = len(word.message) == ROUND.size + len(released.message)  # of a masked run it is a hash
    if word.t != LAST or not of_vectors or _stated(word) != released.t:
        return False
    return word.message[ROUND.size :] != released.message


def _stated(word: Frame) -> int:
    return int(ROUND.unpack_from(word.message)[0])


def form_of(job: NetworkJob) -> Form:
    """The form of a job's rounds."""
    if job.masked:
        return _masked_form(job)
    size, clip = 8 * job.dimension, job.penalty.clip

    def check(t: int, message: bytes) -> None:
        check_values(to_vector(message), clip=clip)

    return Form(job, lambda t: size, size, check)


def _masked_form(job: NetworkJob) -> Form:
    """Whole numbers mod 2^64, any of which an honest site may send; a key for the run comes with 'hello'."""
    sizes = [8 * entry.length for entry in job.sums.sums]
    return Form(
        job,
        lambda t: sizes[t - 1],
        max(sizes),
        lambda t, message: None,
        all_rounds=True,
        greeting=RUN_KEY,
    )

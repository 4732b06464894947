"""The mailbox: the others' frames for this round, the next and the one before. All else is refused.

A neighbour can be one round ahead, never more, since it needs this site's frame to go on. Frames come in on
threads of the network and are checked there; the site's own thread waits for them.

Two frames of one site that contradict each other, both signed by it, end the run: `missing` raises `Caught`.
So does a frame of this very site that it does not know of: `Forgotten`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ...types import Array
from .form import HELLO, READY, STAMP, Form, contradict
from .frame import Frame, FrameRefused, common_hash, decode, follows, to_vector
from .refusals import Refusals
from .trust import Trust, intact

MOST_OLD = 64  # frames of long ago that wait to be compared with those on disk


class Letter(NamedTuple):
    """A believed frame: its exact bytes, and taken apart."""

    data: bytes
    frame: Frame

    @property
    def vector(self) -> Array:
        """Its message as f_j(t)."""
        return to_vector(self.frame.message)


class Caught(Exception):  # noqa: N818 - reads as a statement
    """`owner` signed two frames that contradict each other; one of the run itself comes first."""

    def __init__(self, owner: str, *letters: Letter) -> None:
        super().__init__(owner)
        self.owner = owner
        self.first, self.second = sorted(letters, key=lambda letter: letter.frame.attempt)


class Forgotten(Exception):  # noqa: N818
    """`holder` holds a frame of this site that this site does not know of."""

    def __init__(self, holder: str, letter: Letter) -> None:
        super().__init__(holder)
        self.holder, self.letter = holder, letter


class Mailbox:
    """What one site was sent. `t` is the round it waits for; form.py has those before 1 and after T."""

    def __init__(
        self, form: Form, name: str, trust: Trust, refusals: Refusals, t: int, *, attempt: int = 0
    ) -> None:
        self.t, self.attempt, self.form, self.name = t, attempt, form, name
        self._trust, self._refusals = trust, refusals
        self._names = form.job.names
        self._numbers = {owner: number for number, owner in enumerate(self._names)}
        self._neighbours = set(form.job.neighbours(name))
        self._passes = form.owners_to_pass(name)
        self._letters: dict[tuple[int, int], Letter] = {}  # by round and owner, this site's own too
        self._newest: dict[int, Letter] = {}
        self._to_pass: dict[tuple[int, int], Letter] = {}
        self._old: list[tuple[str, int, bytes]] = []
        self._trouble: Caught | Forgotten | None = None
        self._wanted_of: dict[bool, tuple[str, ...]] = {}  # whether from everybody, or from the neighbours
        self._news, self._changed = threading.Condition(), False
        self.arrived: Callable[[bytes, list[bytes]], None] = lambda data, newest: None  # keeps what comes in

    # -- on the network's threads -----------------------------------------------------------------------

    def offer(
        self,
        sender: str,
        t: int,
        data: bytes,
        *,
        owner: str | None = None,
        attempt: int = 0,
        asked: bool = False,
    ) -> None:
        """A frame of `owner` came in under `sender`'s key; `asked` for, or of its own accord."""
        owner = sender if owner is None else owner
        try:
            self._admit_sender(sender, owner, t)
            known = self._letters.get((t, self._numbers[owner]))
            if known is not None and known.data == data:
                return
            direct = owner == sender and not asked
            self._admit_round(t, attempt, owner, data, known=known is not None, direct=direct)
            self._keep(sender, owner, Letter(data, self._believed(data, t, owner)))
        except _Stale:
            return
        except FrameRefused as refused:
            self._refusals.refuse(sender, refused.kind, str(refused))

    def offer_recalled(self, sender: str, data: bytes) -> Letter | None:
        """The newest frame of this site that `sender` holds, if it is one; whatever its certificate."""
        try:
            frame = decode(data, largest=self.form.cap)
            if frame.job != self.form.job.hash or self._name_of(frame) != self.name:
                raise FrameRefused("recall", "it recalls a frame that is not this site's, in this job")
            self._trust.check(frame, self.name, ever=True)
            return Letter(data, frame)
        except FrameRefused as refused:
            self._refusals.refuse(sender, refused.kind, str(refused))
            return None

    def offer_proof(self, sender: str, first: bytes, second: bytes) -> None:
        """`sender` shows two frames that contradict each other."""
        try:
            self._admit_sender(sender, sender, HELLO)
            letters = [self._signed(data) for data in (first, second)]
            owner = self._name_of(letters[0].frame)
            if not contradict(letters[0].frame, letters[1].frame):
                raise FrameRefused("proof", "two frames as a proof that do not contradict each other")
        except FrameRefused as refused:
            self._refusals.refuse(sender, refused.kind, str(refused))
            return
        self.trouble(Caught(owner, *letters))

    def trouble(self, what: Caught | Forgotten) -> None:
        """Something that ends the run; the first counts."""
        with self._news:
            self._trouble = self._trouble or what
            self._tell()

    def newest(self, owner: str) -> bytes | None:
        """The newest frame of `owner` that is known here."""
        with self._news:
            letter = self._newest.get(self._numbers.get(owner, -1))
        return None if letter is None else letter.data

    # -- on the site's thread ---------------------------------------------------------------------------

    def missing(self) -> list[str]:
        """Whose frames of round t have not come; raises what ends the run."""
        with self._news:
            if self._trouble is not None:
                raise self._trouble
            return [name for name in self._wanted(self.t) if not self._heard(self.t, self._numbers[name])]

    def letters(self, t: int) -> dict[int, Letter]:
        """All frames of round t that are known, this site's too, by number."""
        with self._news:
            return {n: self._letters[at, n] for at, n in sorted(self._letters) if at == t}

    def so_far(self) -> dict[int, Letter]:
        """The frames of round t that others have sent so far, by number."""
        with self._news:
            own = self._numbers[self.name]
            return {n: letter for (t, n), letter in self._letters.items() if t == self.t and n != own}

    def wait(self, seconds: float) -> None:
        """Until something has arrived since the last wait ended, or the time is over.

        What comes between a look at what is missing and this wait is news too, or nobody would hear of it.
        """
        with self._news:
            if not self._changed:
                self._news.wait(seconds)
            self._changed = False

    def wake(self) -> None:
        """Let `wait` return: something changed."""
        with self._news:
            self._tell()

    def _tell(self) -> None:
        self._changed = True
        self._news.notify_all()

    def to_pass_on(self) -> list[tuple[int, str, bytes]]:
        """Round, owner and bytes of frames that came in since and that a neighbour may not hear itself."""
        with self._news:
            passing, self._to_pass = self._to_pass, {}
        return [(t, self._names[owner], letter.data) for (t, owner), letter in passing.items()]

    def look_back(self, heard: Callable[[int], dict[int, bytes]]) -> None:
        """Frames of rounds long past came again: are they those that this site has on disk?"""
        with self._news:
            old, self._old = self._old, []
        for owner, t, data in old:
            kept = heard(t).get(self._numbers[owner])
            if kept is None or kept == data:
                continue
            try:
                again, first = Letter(data, self._believed(data, t, owner)), self._open(kept)
            except FrameRefused:
                continue
            if first.frame.digest != again.frame.digest and intact(first.frame):
                raise Caught(owner, first, again)

    def _open(self, data: bytes) -> Letter:
        return Letter(data, decode(data, largest=self.form.cap))

    def know(self, data: bytes) -> Letter:
        """A frame that this site has on disk: its own, or one that it has heard."""
        letter = self._open(data)
        with self._news:
            self._letters[letter.frame.t, letter.frame.sender] = letter
            self._note(letter)
        return letter

    def remember(self, kept: Iterable[bytes]) -> None:
        """Frames that came in before a kill: so far this site has heard its neighbours, and can tell them."""
        for data in kept:
            try:
                letter = self._signed(data)
            except FrameRefused:
                continue
            if letter.frame.sender != self._numbers[self.name]:
                with self._news:
                    self._note(letter)

    def find_doubts(self) -> list[str]:
        """Who says of the round before, which everybody has, something else than this site holds.

        Raises `Caught` for a site whose frames do not follow from each other.
        """
        with self._news:
            letters = dict(self._letters)
        common, doubted = self.common(self.t), []
        for name in self._wanted(self.t):
            number = self._numbers[name]
            letter, before = letters[self.t, number], letters.get((self.t - 1, number))
            broken = before is not None and not follows(before.frame, letter.frame)
            if before is not None and broken and before.frame.t > READY:
                raise Caught(name, before, letter)
            if broken or letter.frame.common != common:
                doubted.append(name)
        return doubted

    def common(self, t: int) -> bytes:
        """What a frame of round t says about everybody's frames of the round before."""
        if t == HELLO or not self.form.everybody(t - 1):
            return bytes(32)
        with self._news:
            return common_hash(
                self._letters[t - 1, number].frame.digest
                for number, name in enumerate(self._names)
                if name not in self.form.absent
            )

    def take(self) -> dict[int, Letter]:
        """The frames of round t, by number in increasing order; from now on round t + 1 is waited for."""
        with self._news:
            wanted = (self._numbers[name] for name in self._wanted(self.t))
            taken = {number: self._letters[self.t, number] for number in wanted}
            self.t += 1
            for key in [key for key in self._letters if READY < key[0] < self.t - 1]:
                del self._letters[key]
        return taken

    # -- inside -----------------------------------------------------------------------------------------

    def _admit_sender(self, sender: str, owner: str, t: int) -> None:
        if sender not in self._neighbours:
            raise FrameRefused("stranger", f"{sender} is not a neighbour of this site")
        if owner not in self._numbers:
            raise FrameRefused("owner", "a frame of a site that the job does not have")
        if owner != sender and not self.form.everybody(t):
            raise FrameRefused("owner", f"a frame of round {t} that is not its own")

    def _admit_round(
        self, t: int, attempt: int, owner: str, data: bytes, *, known: bool, direct: bool
    ) -> None:
        if attempt != self.attempt:
            raise _Stale
        if owner == self.name:
            if t < self.t - 1 or t <= READY:  # long past; or `opening.py` sees to it
                raise _Stale
            return
        if t < self.t and not known:
            if not direct:  # passed on, or asked for, and no longer needed
                raise _Stale
            if len(self._old) < MOST_OLD:
                self._old.append((owner, t, data))
            raise FrameRefused("replay", f"round {t} again, while round {self.t} is being waited for")
        early = t == self.form.rounds and not direct  # a last frame, from far away
        if t > self.form.left or (t > self.t + 1 and not early):
            raise FrameRefused("future", f"round {t}, while round {self.t} is being waited for")

    def _signed(self, data: bytes) -> Letter:
        """A frame of this job that its sender signed, now or before."""
        frame = decode(data, largest=self.form.cap)
        if frame.job != self.form.job.hash:
            ours, theirs = self.form.job.hash.hex()[:12], frame.job.hex()[:12]
            raise FrameRefused("job", f"it holds another job, {theirs}, not {ours}")
        self._trust.check(frame, self._name_of(frame), ever=True)
        return Letter(data, frame)

    def _believed(self, data: bytes, t: int, owner: str) -> Frame:
        """A frame of round t that `owner` signed, or the reason why it is not believed."""
        frame = decode(data, largest=self.form.cap)
        if frame.job != self.form.job.hash:
            ours, theirs = self.form.job.hash.hex()[:12], frame.job.hex()[:12]
            raise FrameRefused("job", f"it holds another job, {theirs}, not {ours}")
        if self._name_of(frame) != owner:
            raise FrameRefused(
                "name", f"a frame that names {self._name_of(frame)} as its sender, not {owner}"
            )
        if (frame.attempt, frame.t) != (self.attempt, t):
            raise FrameRefused("round", f"a frame of round {frame.t} under the name of round {t}")
        self.form.check_message(t, frame.message)
        self._trust.check(frame, owner)
        return frame

    def _name_of(self, frame: Frame) -> str:
        known = frame.sender < len(self._names)
        return self._names[frame.sender] if known else f"site {frame.sender}"

    def _keep(self, sender: str, owner: str, letter: Letter) -> None:
        key = letter.frame.t, letter.frame.sender
        with self._news:
            known = self._letters.get(key)
            if known is None and owner == self.name:
                self._trouble = self._trouble or Forgotten(sender, letter)
            elif known is None or self._replaces(known, letter):
                self._letters[key] = letter
                self._note(letter)
                if key[0] > READY and owner in self._neighbours:
                    self.arrived(letter.data, [letter.data for letter in self._newest.values()])
                if owner in self._passes and self.form.everybody(key[0]):
                    self._to_pass[key] = letter
            elif known.frame.digest != letter.frame.digest and key[0] > READY:
                self._trouble = self._trouble or Caught(owner, known, letter)
            elif known.frame.digest != letter.frame.digest and self.t > READY:
                raise FrameRefused("hello", f"{owner} says hello anew while the run goes on; it has to stop")
            if self._matters(key[0]):
                self._tell()

    def _matters(self, t: int) -> bool:
        """Whether a frame of round t that came in is worth waking the site for; the last of a round is."""
        if t <= READY or self._trouble is not None or self._to_pass:
            return True
        return t == self.t and all((t, self._numbers[name]) in self._letters for name in self._wanted(t))

    def _wanted(self, t: int) -> tuple[str, ...]:
        """Whose frames of round t this site waits for."""
        everybody = self.form.everybody(t)
        if everybody not in self._wanted_of:
            self._wanted_of[everybody] = self.form.wanted(self.name, t)
        return self._wanted_of[everybody]

    def _note(self, letter: Letter) -> None:
        newest = self._newest.get(letter.frame.sender)
        if newest is None or (newest.frame.attempt, newest.frame.t) <= (letter.frame.attempt, letter.frame.t):
            self._newest[letter.frame.sender] = letter

    def _heard(self, t: int, number: int) -> bool:
        """Whether the frame is there; of 'ready', one that is about the hellos that this site holds."""
        letter = self._letters.get((t, number))
        if letter is None or t != READY:
            return letter is not None
        return self._fits(letter)

    def _fits(self, letter: Letter) -> bool:
        hellos = [self._letters.get((HELLO, number)) for number in range(len(self._names))]
        digests = [hello.frame.digest for hello in hellos if hello is not None]
        own = self._letters.get((HELLO, letter.frame.sender))
        follow = own is not None and letter.frame.before == own.frame.digest
        return follow and len(digests) == len(hellos) and letter.frame.common == common_hash(digests)

    def _replaces(self, known: Letter, letter: Letter) -> bool:
        """The same frame, sealed again with a newer certificate. Before the run begins also a later hello, or
        a 'ready' that is about the right hellos."""
        if known.frame.digest == letter.frame.digest:
            return self._trust.ends(letter.frame.certificate) > self._trust.ends(known.frame.certificate)
        if self.t > READY or letter.frame.t > READY:
            return False
        if letter.frame.t == READY:
            return self._fits(letter) and not self._fits(known)
        return stamp_of(letter.frame) > stamp_of(known.frame)


def stamp_of(frame: Frame) -> tuple[int, bytes]:
    """Which 'hello' of a site is the later one."""
    return STAMP.unpack_from(frame.message)[0], frame.digest


class _Stale(Exception):  # noqa: N818
    """Nothing is wrong; it is only too late to matter."""

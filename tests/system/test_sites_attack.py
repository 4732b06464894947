"""Strangers, impostors, liars and noise: nothing changes, each is named once, and the run goes on."""

import os
import re
import sqlite3
import sys
import time
from contextlib import closing, suppress

import numpy as np
import pytest

from support.linkcut import until, wait_for
from support.siteattack import Attacker
from support.siteend import check_end, rounds_of
from support.siteprocess import Network
from support.sitework import frame, network
from taciturn.sites.files.keys import DAY, Authority, new_key, pem, signing_request, write_new
from taciturn.sites.files.site import load_site
from taciturn.sites.wire.config import key_of, key_of_recall

PAIR = [(0, 1)]


def member(authority, folder, name, file, **options):
    """A key and a certificate for `name`, in `file`.key and `file`.pem."""
    key = new_key(folder / f"{file}.key")
    write_new(
        folder / f"{file}.pem", pem(authority.sign(signing_request(key, name, ["127.0.0.1"]), **options))
    )


class Scene:
    """Two honest sites in the middle of a run; the first one is the victim, and listens."""

    def __init__(self, folder):
        self.paths = network(folder / "net", PAIR, job={"rounds": 40}, site={"patience": 3600.0})
        self.sites = [load_site(path) for path in self.paths]
        self.victim, self.folder = self.sites[0], folder
        self.authority = Authority.load(folder / "net")
        self.running = Network(self.paths, {0: {"slow": 0.02}, 1: {"hold": 10}})
        until(lambda: rounds_of(self.victim) >= 10)

    def sent(self, t):
        """What the neighbour really sent in round t."""
        with closing(sqlite3.connect(self.sites[1].database)) as db:
            return db.execute("SELECT frame FROM outbox WHERE t = ?", (t,)).fetchone()[0]

    def log(self):
        return (self.paths[0].parent / "log.txt").read_text()

    def refusals(self, words):
        return [
            line for line in self.log().splitlines() if line.startswith("WARNING refused") and words in line
        ]

    def told_once(self, sender, words, attack=lambda: None):
        """The victim's log names sender and reason in exactly one line, however often it was tried.

        It is tried until it is told: what is sent before the victim has said what it listens to goes nowhere.
        """

        def told():
            attack()
            wait_for(lambda: self.refusals(words), seconds=2.0)
            return self.refusals(words)

        until(told)
        attack()
        time.sleep(0.05)
        lines = self.refusals(words)
        assert len(lines) == 1 and f"from {sender}:" in lines[0], self.log()

    def end(self):
        """Let the run go on; it ends as if nothing had happened."""
        (self.folder / "go").touch()
        for path in self.paths:
            (path.parent / "go").touch()
        self.running.finish()
        check_end(self.paths)


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    made = Scene(tmp_path_factory.mktemp("attack"))
    yield made
    try:
        made.end()
    finally:
        made.running.stop()


@pytest.fixture(scope="module")
def liar(scene):
    """The neighbour itself, with its real key, saying whatever it likes."""
    folder = scene.paths[1].parent
    with Attacker(scene.victim, folder, "site-1") as attacker:
        until(attacker.linked)
        yield attacker


# -- who may connect ------------------------------------------------------------------------------------


def test_another_authority(scene):
    member(Authority.throw_away(), scene.folder, "site-1", "false")
    with Attacker(scene.victim, scene.folder, "false") as attacker:
        scene.told_once("a caller without a name", "not from this network's authority")
        assert not attacker.linked()


def test_no_certificate(scene):
    member(scene.authority, scene.folder, "site-1", "unshown")
    with Attacker(scene.victim, scene.folder, "unshown", mtls=False) as attacker:
        scene.told_once("a caller without a name", "showed no certificate")
        assert not attacker.linked()


def test_an_expired_certificate(scene):
    member(scene.authority, scene.folder, "site-1", "old", days=-1, starts=-3 * DAY)
    with Attacker(scene.victim, scene.folder, "old") as attacker:
        scene.told_once("a caller without a name", "is expired")
        assert not attacker.linked()


def test_a_stranger_with_a_valid_certificate_is_told_nothing(scene):
    member(scene.authority, scene.folder, "stranger", "stranger")
    with Attacker(scene.victim, scene.folder, "stranger") as attacker:
        until(attacker.linked)
        scene.told_once("stranger", "not a neighbour")
        for t in range(1, 12):
            attacker.put(key_of("site-1", t), frame(scene.sites[1], t))
            assert attacker.ask(key_of("site-0", t)) == []


@pytest.mark.skipif(sys.platform != "linux", reason="listening sockets are read from /proc")
def test_nothing_is_listened_on_but_the_configured_endpoint(scene):
    for entry, site in zip(scene.running.running, scene.sites, strict=True):
        assert sockets_of(entry.process.pid, "udp") == []
        port = int(site.listens().rsplit(":", 1)[1])
        assert [at for at, state in sockets_of(entry.process.pid, "tcp") if state == "0A"] == [
            f"0100007F:{port:04X}"
        ]


def sockets_of(pid, kind):
    """(local address, state) of the sockets of a process."""
    mine, found = set(), []
    for entry in os.scandir(f"/proc/{pid}/fd"):
        with suppress(FileNotFoundError):  # closed since
            mine.add(os.readlink(entry.path))
    for table in (kind, f"{kind}6"):
        with open(f"/proc/{pid}/net/{table}") as lines:
            for line in list(lines)[1:]:
                words = line.split()
                if f"socket:[{words[9]}]" in mine:
                    found.append((words[1], words[3]))
    return found


# -- what a neighbour may say -----------------------------------------------------------------------------


def test_a_neighbour_may_not_speak_for_all(scene, liar):
    """A put under a wildcard reaches the victim, whose access control stops it."""
    data = frame(scene.sites[1], 11)
    scene.told_once(
        "site-1", "may not put under taciturn/*/0.11/*", lambda: liar.put("taciturn/*/0.11/*", data)
    )


def test_a_neighbour_may_not_use_anothers_name(scene, liar):
    data = frame(scene.sites[1], 10, sender=0)
    scene.told_once("site-1", "names site-0 as its sender", lambda: liar.put(key_of("site-1", 10), data))


def test_a_neighbour_with_another_job_is_refused_by_name(scene, liar):
    data = frame(scene.sites[1], 10, job=bytes(32))
    scene.told_once("site-1", "holds another job, 000000000000", lambda: liar.put(key_of("site-1", 10), data))


def test_an_old_round_and_a_future_round(scene, liar):
    old, future = scene.sent(1), frame(scene.sites[1], 30)
    scene.told_once("site-1", "round 1 again", lambda: liar.put(key_of("site-1", 1), old))
    scene.told_once("site-1", "round 30, while round", lambda: liar.put(key_of("site-1", 30), future))


def test_a_round_under_the_name_of_another(scene, liar):
    data = frame(scene.sites[1], 1)
    scene.told_once(
        "site-1",
        "a frame of round 1 under the name of round 11",
        lambda: liar.put(key_of("site-1", 11), data),
    )


def test_a_wrong_length(scene, liar):
    def attack():
        for size in (0, 3, 5):
            liar.put(key_of("site-1", 10), frame(scene.sites[1], 10, np.zeros(size)))

    scene.told_once("site-1", "a message of ", attack)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e308])
def test_values_that_are_no_values(scene, liar, bad):
    data = frame(scene.sites[1], 10, [bad, 0.0, 0.0, 0.0])
    scene.told_once("site-1", "a value ", lambda: liar.put(key_of("site-1", 10), data))


def test_a_signature_of_somebody_else(scene, liar):
    data = bytearray(frame(scene.sites[1], 10, [1.0, 0.0, 0.0, 0.0]))
    data[130] ^= 1
    words = "its signature is not that of site-1"
    scene.told_once("site-1", words, lambda: liar.put(key_of("site-1", 10), bytes(data)))


def test_garbage(scene, liar):
    rng = np.random.default_rng()

    def attack():
        for _ in range(250):
            liar.put(key_of("site-1", 10), rng.bytes(int(rng.integers(0, 2000))))
        liar.put("taciturn/site-1/no/such/thing", b"x")

    scene.told_once("site-1", "not a frame: ", attack)
    scene.told_once("site-1", "a key that is not of this protocol", attack)


def test_a_neighbour_is_told_of_its_own_frames_and_nobody_elses(scene, liar):
    """Which rounds of another site are known here is for that site; who asks for it cannot be known."""
    until(lambda: len(liar.ask(key_of_recall("site-0", "site-1"))) == 1)
    assert liar.ask(key_of_recall("site-0", "site-0")) == []
    assert liar.ask("taciturn/site-0/**") == []


def test_a_last_frame_too_early_or_of_nobody(scene, liar):
    data = frame(scene.sites[1], 40)

    def attack():
        liar.put(key_of("site-1", 40, "nobody"), data)
        liar.put(key_of("site-1", 40, "site-0"), data)

    scene.told_once("site-1", "a site that the job does not have", attack)


def test_a_frame_of_a_gigabyte(scene, liar):
    large = bytes(50_000)
    scene.told_once("site-1", "50000 bytes, above the cap", lambda: liar.put(key_of("site-1", 10), large))
    payload = bytes(10**9)
    liar.put(key_of("site-1", 10), payload)
    scene.told_once("site-1", "far more than its frames have")
    assert memory_of(scene.running.running[0].process.pid) < 600_000


def memory_of(pid):
    """The largest memory a process ever held, in kB."""
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"VmHWM:\s+(\d+) kB", status.read())[1])


def test_nothing_of_it_was_charged_or_released_meanwhile(scene):
    assert rounds_of(scene.victim) in (10, 11)

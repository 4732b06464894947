"""Unknown clients, impostors, lying sites and garbage: each is named once, and the run continues."""

import os
import re
import sys
import time
from contextlib import suppress

import numpy as np
import pytest

from support.linkcut import until, wait_for
from support.siteattack import Attacker
from support.siteend import check_end, rounds_of
from support.siteprocess import Network
from support.sitework import frame, network
from taciturn.sites.files.keys import DAY, Authority, new_key, pem, signing_request, write_new
from taciturn.sites.files.site import load_site
from taciturn.sites.protocol.envelopes import Content
from taciturn.sites.protocol.frames import Kind

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

    def log(self):
        return (self.paths[0].parent / "log.txt").read_text()

    def refusals(self, words):
        return [
            line for line in self.log().splitlines() if line.startswith("WARNING refused") and words in line
        ]

    def told_once(self, sender, words, attack=lambda: None):
        """The victim's log names sender and reason in exactly one line, however often it was tried.

        It is tried until it is reported: Zenoh drops what is sent before the victim has subscribed.
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
        attacker.speak_as("site-1")
        assert attacker.ask_for_key()
        yield attacker


# -- who may connect ------------------------------------------------------------------------------------


def test_another_authority(scene):
    member(Authority.throw_away(), scene.folder, "site-1", "false")
    with Attacker(scene.victim, scene.folder, "false") as attacker:
        scene.told_once("an unauthenticated client", "not from this network's authority")
        assert not attacker.linked()


def test_no_certificate(scene):
    member(scene.authority, scene.folder, "site-1", "unshown")
    with Attacker(scene.victim, scene.folder, "unshown", mtls=False) as attacker:
        scene.told_once("an unauthenticated client", "showed no certificate")
        assert not attacker.linked()


def test_an_expired_certificate(scene):
    member(scene.authority, scene.folder, "site-1", "old", days=-1, starts=-3 * DAY)
    with Attacker(scene.victim, scene.folder, "old") as attacker:
        scene.told_once("an unauthenticated client", "is expired")
        assert not attacker.linked()


def test_unknown_site_with_a_valid_certificate_learns_nothing(scene):
    member(scene.authority, scene.folder, "stranger", "stranger")
    with Attacker(scene.victim, scene.folder, "stranger") as attacker:
        until(attacker.linked)
        scene.told_once("stranger", "not a neighbour")
        attacker.put("taciturn/site-1/all", frame(scene.sites[1], Kind.MESSAGE, 10))
        attacker.speak_as("site-1")  # which its certificate does not say
        assert not attacker.ask_for_key() and attacker.heard == []
        assert attacker.ask("taciturn/site-0/**") == []


@pytest.mark.skipif(sys.platform != "linux", reason="listening sockets are read from /proc")
def test_site_listens_only_on_the_configured_endpoint(scene):
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


SAY = "taciturn/site-1/all"


def test_neighbour_cannot_publish_under_a_wildcard(scene, liar):
    """A put under a wildcard reaches the victim, and the victim's access control stops it."""
    data = frame(scene.sites[1], Kind.MESSAGE, 11)
    scene.told_once(
        "site-1", "its operation is not allowed: put taciturn/*/all", lambda: liar.put("taciturn/*/all", data)
    )


def test_neighbour_cannot_publish_under_another_name(scene, liar):
    data = frame(scene.sites[1], Kind.MESSAGE, 10, sender=0)
    scene.told_once("site-0", "it claims to be site-0, but its certificate", lambda: liar.say(data))


def test_a_neighbour_with_another_job_is_refused_by_name(scene, liar):
    data = frame(scene.sites[1], Kind.MESSAGE, 10, job=bytes(32))
    scene.told_once("site-1", "has a different job", lambda: liar.say(data))


def test_a_site_that_the_job_does_not_have(scene, liar):
    data = frame(scene.sites[1], Kind.MESSAGE, 10, sender=7)
    scene.told_once("site-1", "names a site that the job does not have", lambda: liar.say(data))


def test_frame_signed_by_another_key_is_rejected(scene, liar):
    data = bytearray(frame(scene.sites[1], Kind.MESSAGE, 10, payload=bytes(32)))
    data[100] ^= 1
    scene.told_once("site-1", "its signature is not that of site-1", lambda: liar.say(bytes(data)))


def test_frame_of_another_release_is_distinguished_from_garbage(scene, liar):
    data = b"taciturn/2" + frame(scene.sites[1], Kind.MESSAGE, 10)[10:]
    scene.told_once("site-1", "its release is older", lambda: liar.put("taciturn/site-1/0.10/site-1", data))


def test_garbage(scene, liar):
    rng = np.random.default_rng()

    def attack():
        for _ in range(250):
            liar.put(SAY, rng.bytes(int(rng.integers(0, 2000))))

    scene.told_once("site-1", "are not a message (frame): ", attack)


def test_a_frame_without_an_envelope(scene, liar):
    data = frame(scene.sites[1], Kind.MESSAGE, 10)
    scene.told_once("site-1", "its message is not encrypted", lambda: liar.put(SAY, data))


def test_an_envelope_that_was_changed(scene, liar):
    closed = bytearray(liar.envelopes.close(Content.FRAME, frame(scene.sites[1], Kind.MESSAGE, 10)))
    closed[-1] ^= 1
    scene.told_once("site-1", "its message cannot be decrypted", lambda: liar.put(SAY, bytes(closed)))


def test_a_frame_of_a_gigabyte(scene, liar):
    large = bytes(50_000)
    scene.told_once("site-1", "50000 bytes; at most", lambda: liar.put(SAY, large))
    payload = bytes(10**9)
    liar.put(SAY, payload)
    scene.told_once("site-1", "far more than its messages contain")
    assert memory_of(scene.running.running[0].process.pid) < 600_000


def memory_of(pid):
    """The largest memory a process ever held, in kB."""
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"VmHWM:\s+(\d+) kB", status.read())[1])


def test_attacks_caused_no_charge_and_no_release(scene):
    assert rounds_of(scene.victim) in (10, 11)

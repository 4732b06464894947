"""A lying site, or a stolen old key, on real processes: no site ends with a dictated model."""

from sites.state.test_account import edit
from support.linkcut import until
from support.siteattack import Attacker
from support.siteend import rounds_of
from support.sitering import KINDS
from taciturn.cli.app import run
from taciturn.core.errors import ExitCode
from taciturn.sites.files.keys import load_certificates
from taciturn.sites.files.site import load_site
from taciturn.sites.protocol.envelopes import MAGIC, Content
from taciturn.sites.protocol.frames import Kind, decode


@KINDS
def test_one_lying_site_cannot_dictate_the_model(ring_of, kind):
    """Values beyond the public bounds of any rows: the run stops, and nothing more is spent."""
    ring = ring_of(3, kind, rounds=5)
    ring.start(0, 1)
    ring.start(2, lie="huge", t=3)
    codes = [ring.running[i].wait() for i in (0, 1)]  # the liar may wait for them
    assert codes == [ExitCode.CONTRADICTION] * 2, ring.logs()
    assert not any((site.state / "model.json").exists() for site in ring.sites)
    assert ring.charged()[:2] == [[1, 2, 3]] * 2
    for i in (0, 1):
        assert "the sum of round 3 is impossible" in ring.text(i)
        assert ("The values of site-2 make it impossible" in ring.text(i)) == (kind == "penalty")
    ring.start(0)
    assert ring.running[0].wait() == ExitCode.CONTRADICTION
    assert "this run has ended for this site: the sum of round 3 is impossible" in ring.text(0)
    assert run(["site", "finish", str(ring.paths[1])]) == ExitCode.CONTRADICTION
    assert not any((site.state / "model.json").exists() for site in ring.sites)


def steal(ring, folder):
    """A copy of the folder of site 2 with its key."""
    (folder / "stolen").mkdir()
    return ring.copy(2, folder / "stolen")


def revoke(ring):
    """The others revoke the key of site 2; its owner gets another key."""
    old = load_certificates(ring.paths[2].parent / "site-2.pem")[0]
    ring.renew_certificate(2)
    for path, site in zip(ring.paths, ring.sites, strict=True):
        edit(path, keys=site.file.keys.model_dump(mode="json") | {"revoked": [f"{old.serial_number:x}"]})


@KINDS
def test_a_thief_with_a_revoked_certificate_of_the_authority_changes_nothing(ring_of, tmp_path, kind):
    """The owner has a new key. The thief runs with the old one, and is no copy of the owner."""
    ring = ring_of(3, kind, rounds=4)
    thief = steal(ring, tmp_path)
    revoke(ring)
    stranger = ring.start_copy(thief)
    ring.start(0, 1, 2)
    assert ring.codes() == [0] * 3, ring.logs()
    assert ring.charged() == [[1, 2, 3, 4]] * 3
    assert len({(site.state / "model.json").read_bytes() for site in ring.sites}) == 1
    assert "its certificate was revoked" in ring.text(0) + ring.text(1)
    stranger.kill()
    assert not (thief.parent / "state" / "model.json").exists()


def test_a_thief_with_a_revoked_certificate_of_the_authority_reads_nothing(ring_of, tmp_path):
    """TLS lets it in, for Zenoh has no revocation lists; but no site gives it the key of its envelopes."""
    ring = ring_of(3, "masked", rounds=40)
    thief = steal(ring, tmp_path)
    revoke(ring)
    ring.start(0, 1, 2, slow=0.05)
    until(lambda: rounds_of(ring.sites[0]) >= 2)
    with Attacker(load_site(ring.paths[0]), thief.parent, "site-2") as attacker:
        until(attacker.linked)
        attacker.speak_as("site-2")
        assert not attacker.ask_for_key()
        attacker.say(b"", Content.QUESTION)
        until(lambda: sum(data.startswith(MAGIC) for data in attacker.heard) > 10)
        assert attacker.linked() and not attacker.ask_for_key(0.5) and attacker.opened == []
        clear = [data for data in attacker.heard if not data.startswith(MAGIC)]
        kinds = {decode(data, largest=2**16).kind for data in clear}
        assert kinds <= {Kind.KEY}, "a frame travelled without an envelope"
        assert not any(site.job.name.encode() in data for data in clear for site in ring.sites)
    assert ring.codes() == [0] * 3, ring.logs()
    assert "its certificate was revoked" in ring.text(0)
    assert len({(site.state / "model.json").read_bytes() for site in ring.sites}) == 1


def test_running_sites_stop_answering_a_certificate_as_soon_as_it_is_revoked(ring_of, tmp_path):
    """The thief can read until then. Nothing is restarted but the site that gets the new key."""
    ring = ring_of(3, "masked", rounds=60)
    thief = steal(ring, tmp_path)
    ring.start(0, 1, 2, slow=0.05)
    with Attacker(load_site(ring.paths[0]), thief.parent, "site-2") as attacker:
        until(attacker.linked)
        attacker.speak_as("site-2")
        assert attacker.ask_for_key()
        until(lambda: attacker.opened)
        ring.kill(2)
        revoke(ring)
        until(lambda: all("the list of revoked certificates has changed" in ring.text(i) for i in (0, 1)))
        attacker.envelopes.known.clear()
        until(attacker.linked)
        read, heard = len(attacker.opened), len(attacker.heard)
        ring.start(2, slow=0.05)
        until(lambda: len(attacker.heard) > heard + 10)
        assert not attacker.ask_for_key(0.5) and len(attacker.opened) == read
    assert ring.codes() == [0] * 3, ring.logs()
    assert len({(site.state / "model.json").read_bytes() for site in ring.sites}) == 1
    assert not any("at_least" in (site.state / "statement.json").read_text() for site in ring.sites)


def test_running_site_stops_when_its_own_certificate_is_revoked(ring_of):
    ring = ring_of(3, "penalty", rounds=40)
    ring.start(0, 1, 2, slow=0.05)
    until(lambda: rounds_of(ring.sites[2]) >= 1)
    old = load_certificates(ring.paths[2].parent / "site-2.pem")[0]
    keys = ring.sites[2].file.keys.model_dump(mode="json")
    edit(ring.paths[2], keys=keys | {"revoked": [f"{old.serial_number:x}"]})
    assert ring.running[2].wait() == ExitCode.WRONG_FILES
    assert "the certificate of this site cannot be used any more: its certificate was revoked" in ring.text(2)
    ring.renew_certificate(2)
    ring.start(2)
    assert ring.codes() == [0] * 3, ring.logs()

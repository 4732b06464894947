"""A lying site, or a stolen old key, on real processes: no site ends with a dictated model."""

from sites.state.test_account import edit
from support.sitering import KINDS
from taciturn.core.errors import ExitCode
from taciturn.sites.files.keys import load_certificates


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
        assert ("site-2 sent the values that make it so" in ring.text(i)) == (kind == "penalty")


@KINDS
def test_stolen_key_with_a_revoked_certificate_has_no_effect(ring_of, tmp_path, kind):
    """The owner has a new key. The thief uses the old one, and is not taken for a copy of the owner."""
    ring = ring_of(3, kind, rounds=4)
    (tmp_path / "stolen").mkdir()
    thief = ring.copy(2, tmp_path / "stolen")
    old = load_certificates(ring.paths[2].parent / "site-2.pem")[0]
    ring.renew_certificate(2)
    for path, site in zip(ring.paths, ring.sites, strict=True):
        edit(path, keys=site.file.keys.model_dump(mode="json") | {"revoked": [f"{old.serial_number:x}"]})
    stranger = ring.start_copy(thief)
    ring.start(0, 1, 2)
    assert ring.codes() == [0] * 3, ring.logs()
    assert ring.charged() == [[1, 2, 3, 4]] * 3
    assert len({(site.state / "model.json").read_bytes() for site in ring.sites}) == 1
    assert "its certificate was revoked" in ring.text(0) + ring.text(1)
    stranger.kill()
    assert not (thief.parent / "state" / "model.json").exists()

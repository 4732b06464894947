"""Revoked certificates, and files that a running site reads again."""

import datetime
import logging

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from sites.state.test_account import edit
from support.sitework import frame, sites
from taciturn.core.errors import SiteError
from taciturn.sites.files.keys import (
    Authority,
    fingerprint,
    load_certificates,
    load_key,
    new_key,
    self_signed,
    short_fingerprint,
)
from taciturn.sites.files.site import load_site
from taciturn.sites.protocol.frames import FrameRefused, Kind, decode
from taciturn.sites.wire.revocations import RevocationFiles
from taciturn.sites.wire.trust import load_trust, reader_trust, site_trust

DAY = datetime.timedelta(days=1)


@pytest.fixture
def network(tmp_path):
    """The authority's folder, a certificate that will be revoked, and a frame that it signed."""
    made = sites(tmp_path / "net")
    certificate = load_certificates(made[1].path(made[1].file.keys.certificate))[0]
    return tmp_path / "net", certificate, decode(frame(made[1], Kind.DONE, 1), largest=100)


def revocation_list(authority, *certificates, ends=DAY, key=None):
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateRevocationListBuilder().issuer_name(authority.certificate.subject)
    builder = builder.last_update(now - 2 * DAY).next_update(now + ends)
    for certificate in certificates:
        entry = x509.RevokedCertificateBuilder().serial_number(certificate.serial_number)
        builder = builder.add_revoked_certificate(entry.revocation_date(now - DAY).build())
    return builder.sign(key or authority.key, None)


@pytest.mark.parametrize("how", ["serial", "certificate", "key", "short key", "read out"])
def test_revoked_certificate_is_rejected(network, how):
    folder, certificate, signed = network
    key = fingerprint(certificate.public_key())
    entry = {
        "serial": f"{certificate.serial_number:x}",
        "certificate": certificate.fingerprint(hashes.SHA256()).hex(),
        "key": key.replace(" ", ""),
        "short key": short_fingerprint(certificate.public_key()),
        "read out": key.upper(),
    }[how]
    load_trust(folder / "authority.pem").check(signed, "site-1")
    with pytest.raises(FrameRefused, match="was revoked"):
        load_trust(folder / "authority.pem", [entry]).check(signed, "site-1")
    with pytest.raises(FrameRefused, match="was revoked"):  # not even what it signed before
        load_trust(folder / "authority.pem", [entry]).check(signed, "site-1", ever=True)


@pytest.mark.parametrize("form", ["PEM", "DER"])
def test_the_list_of_the_authority_counts(network, form):
    folder, certificate, signed = network
    path = folder / "revoked.crl"
    found = revocation_list(Authority.load(folder), certificate)
    path.write_bytes(found.public_bytes(getattr(serialization.Encoding, form)))
    trust = load_trust(folder / "authority.pem", lists=[path])
    with pytest.raises(FrameRefused, match="was revoked"):
        trust.check(signed, "site-1")


def test_unsigned_or_stale_revocation_list_is_refused(network):
    folder, certificate, _ = network
    authority, path = Authority.load(folder), folder / "revoked.crl"
    cases = {
        "is not signed by this network's authority": revocation_list(Authority.throw_away(), certificate),
        "is not signed by": revocation_list(authority, key=Authority.throw_away().key),
        "expired on": revocation_list(authority, ends=-DAY),
    }
    for words, found in cases.items():
        path.write_bytes(found.public_bytes(serialization.Encoding.PEM))
        with pytest.raises(SiteError, match=words):
            load_trust(folder / "authority.pem", lists=[path])
    path.write_bytes(b"nonsense")
    with pytest.raises(SiteError, match="no revocation list"):
        load_trust(folder / "authority.pem", lists=[path])
    with pytest.raises(SiteError, match="cannot be read"):
        load_trust(folder / "authority.pem", lists=[folder / "none.crl"])


def test_a_job_lists_the_keys_of_all_sites_or_of_none(network):
    folder, certificate, signed = network
    keys = {"site-1": short_fingerprint(certificate.public_key())}
    load_trust(folder / "authority.pem", keys=keys).check(signed, "site-1")
    with pytest.raises(FrameRefused, match="its key is not the one that the job lists"):
        load_trust(folder / "authority.pem", keys={"site-1": "0000" + "-0000" * 7}).check(signed, "site-1")
    with pytest.raises(FrameRefused, match="its key is not the one"):
        load_trust(folder / "authority.pem", keys={"site-2": keys["site-1"]}).check(signed, "site-1")


def test_reader_trusts_an_authority_or_the_certificates_of_all_sites(network, tmp_path):
    folder, _, signed = network
    reader_trust(folder / "authority.pem").check(signed, "site-1")
    own = self_signed(load_key(folder / "site-1" / "site-1.key"), "site-1", ["127.0.0.1"])
    other = self_signed(new_key(tmp_path / "2.key"), "site-2", ["127.0.0.1"])
    members = tmp_path / "members.pem"
    members.write_bytes(own + other)
    reader_trust(members).check(signed, "site-1")
    with pytest.raises(FrameRefused, match="claims to be site-2"):
        reader_trust(members).check(signed, "site-2")
    members.write_bytes(other)
    with pytest.raises(FrameRefused, match="its key is not the one"):
        reader_trust(members).check(signed, "site-1")
    members.write_bytes(own + other + self_signed(new_key(tmp_path / "1.key"), "site-1", ["127.0.0.1"]))
    with pytest.raises(SiteError, match="two keys for 'site-1'"):
        reader_trust(members)


def watched(network):
    """Site 0, its trust, and the files that revoke certificates, which were read once."""
    site = load_site(network[0] / "site-0" / "site.toml")
    trust = site_trust(site)
    files = RevocationFiles(site, trust.authorities)
    assert files.read_changed() == trust.revocations and files.read_changed() is None
    return site, trust, files


def revoke(site, **entries):
    edit(site.source, keys=site.file.keys.model_dump(mode="json", exclude_none=True) | entries)


def test_running_site_reads_a_serial_number_that_is_added_to_its_file(network):
    _, certificate, signed = network
    site, trust, files = watched(network)
    trust.check(signed, "site-1")
    revoke(site, revoked=[f"{certificate.serial_number:x}"], private="another.key")
    trust.revoke(files.read_changed())
    with pytest.raises(FrameRefused, match="was revoked"):
        trust.check(signed, "site-1")
    assert files.site.file.keys.private == site.file.keys.private  # other changes wait for a restart
    assert files.read_changed() is None
    revoke(site)
    trust.revoke(files.read_changed())
    trust.check(signed, "site-1")


def test_running_site_reads_a_list_that_the_authority_replaces(network):
    folder, certificate, _ = network
    authority, path = Authority.load(folder), folder / "site-0" / "revoked.crl"
    path.write_bytes(revocation_list(authority).public_bytes(serialization.Encoding.PEM))
    site, _, files = watched(network)
    revoke(site, revocations=["revoked.crl"])
    assert not files.read_changed().hold(certificate)
    path.write_bytes(revocation_list(authority, certificate).public_bytes(serialization.Encoding.PEM))
    assert files.read_changed().hold(certificate)


@pytest.mark.parametrize("broken", ["half a file", "no file", "an unsigned list"])
def test_running_site_keeps_its_revocations_if_a_changed_file_cannot_be_read(network, broken, caplog):
    folder, certificate, _ = network
    site, _, files = watched(network)
    text = site.source.read_text()
    if broken == "an unsigned list":
        found = revocation_list(Authority.throw_away(), certificate)
        (folder / "site-0" / "revoked.crl").write_bytes(found.public_bytes(serialization.Encoding.PEM))
        revoke(site, revocations=["revoked.crl"])
    elif broken == "no file":
        site.source.unlink()
    else:
        site.source.write_text(text[: len(text) // 2])
    with caplog.at_level(logging.WARNING):
        assert files.read_changed() is None
    assert "the changed list of revoked certificates is not used" in caplog.text
    site.source.write_text(text)
    revoke(site, revoked=[f"{certificate.serial_number:x}"], revocations=[])
    assert files.read_changed().hold(certificate)

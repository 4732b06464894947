"""A frame is accepted if the authority certified the signing key for its sender."""

import datetime
import os
import random

import pytest
from cryptography.hazmat.primitives import serialization

from support.sitework import frame, identity, sites
from taciturn.core.errors import SiteError
from taciturn.sites.files.keys import DAY, Authority, load_certificates, new_key, signing_request
from taciturn.sites.protocol.frames import FrameRefused, Kind, decode
from taciturn.sites.wire.trust import Identity, Trust, load_identity, load_trust

DER = serialization.Encoding.DER


def member(authority, folder, name, **options):
    key = new_key(folder / f"{name}-{os.urandom(4).hex()}.key")
    certificate = authority.sign(signing_request(key, name, ["127.0.0.1"]), **options)
    return Identity(name, key, certificate.public_bytes(DER))


@pytest.fixture
def ring(tmp_path):
    made = sites(tmp_path / "net")
    return made, load_trust(tmp_path / "net" / "authority.pem"), Authority.load(tmp_path / "net")


def refusal(trust, data, name):
    with pytest.raises(FrameRefused) as refused:
        trust.check(decode(data, largest=100), name)
    return refused.value.kind


def test_frame_is_accepted_under_the_name_of_its_signer(ring):
    made, trust, _ = ring
    trust.check(decode(frame(made[0], Kind.MESSAGE, 1), largest=100), "site-0")


def test_frame_signed_under_another_name_is_rejected(ring):
    made, trust, _ = ring
    assert refusal(trust, frame(made[0], Kind.MESSAGE, 1), "site-1") == "name"


def test_authority_with_the_same_name_and_another_key_is_rejected(ring, tmp_path):
    made, trust, _ = ring
    impostor = member(Authority.throw_away(), tmp_path, "site-0")
    assert refusal(trust, frame(made[0], Kind.MESSAGE, 1, signer=impostor), "site-0") == "certificate"


@pytest.mark.parametrize(
    "dates", [{"days": -1, "starts": -3 * DAY}, {"days": 9, "starts": datetime.timedelta(days=5)}]
)
def test_a_certificate_counts_only_between_its_dates(ring, tmp_path, dates):
    made, trust, authority = ring
    old = member(authority, tmp_path, "site-0", **dates)
    assert refusal(trust, frame(made[0], Kind.MESSAGE, 1, signer=old), "site-0") == "certificate"


def test_revoked_certificate_is_rejected(ring, tmp_path):
    made, _, _ = ring
    pem = load_certificates(made[0].path(made[0].file.keys.certificate))[0]
    trust = load_trust(tmp_path / "net" / "authority.pem", [f"{pem.serial_number:x}"])
    assert refusal(trust, frame(made[0], Kind.MESSAGE, 1), "site-0") == "certificate"


def test_a_site_cannot_sign_for_others(ring, tmp_path):
    """The certificate is issued by a site, which is not an authority."""
    made, trust, _ = ring
    site = identity(made[0])
    false = Authority(site.key, load_certificates(made[0].path(made[0].file.keys.certificate))[0])
    forged = member(false, tmp_path, "site-1")
    assert refusal(trust, frame(made[1], Kind.MESSAGE, 1, signer=forged), "site-1") == "certificate"
    with pytest.raises(SiteError, match="no certificate of an authority"):
        Trust([false.certificate])


def test_a_relay_cannot_alter_a_frame(ring):
    made, trust, _ = ring
    honest = frame(made[0], Kind.MESSAGE, 1, payload=bytes(range(32)))
    rng = random.Random(os.urandom(8))
    for _ in range(300):
        data = bytearray(honest)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        with pytest.raises(FrameRefused):
            trust.check(decode(bytes(data), largest=100), "site-0")


def test_garbage_for_a_certificate_is_refused(ring):
    made, trust, _ = ring
    real = identity(made[0]).certificate
    rng = random.Random(os.urandom(8))
    for _ in range(2000):
        der = bytearray(real)
        for _ in range(rng.randrange(1, 4)):
            der[rng.randrange(len(der))] = rng.randrange(256)
        try:  # one byte may change without changing the meaning: the count of unused bits of the signature
            key = trust.key_of(bytes(der), "site-0")
        except FrameRefused:
            continue
        assert key == trust.key_of(real, "site-0")
    with pytest.raises(FrameRefused):
        trust.key_of(b"", "site-0")


def test_own_identity_is_checked_with_the_rules_of_a_neighbour(ring, tmp_path):
    made, trust, _ = ring
    keys = made[0].file.keys
    private, certificate = made[0].path(keys.private), made[0].path(keys.certificate)
    with pytest.raises(SiteError, match="claims to be site-1"):
        load_identity(private, certificate, "site-1", trust)
    with pytest.raises(SiteError, match="does not belong to the key in"):
        load_identity(made[1].path(made[1].file.keys.private), certificate, "site-0", trust)
    with pytest.raises(SiteError, match="authority"):
        load_identity(private, certificate, "site-0", Trust([Authority.throw_away().certificate]))


def test_an_authority_can_be_replaced_while_both_count(ring, tmp_path):
    made, _, old = ring
    new = Authority.throw_away("the next authority")
    trust = Trust([old.certificate, new.certificate])
    trust.check(decode(frame(made[0], Kind.MESSAGE, 1), largest=100), "site-0")
    trust.check(decode(frame(made[0], 2, signer=member(new, tmp_path, "site-0")), largest=100), "site-0")

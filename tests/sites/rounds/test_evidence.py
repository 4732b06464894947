"""A proof accuses a site only by two frames that the site itself has signed."""

import pytest

from support.sitework import frame, identity, sites
from taciturn.core.errors import SiteError
from taciturn.sites.protocol.frames import Kind
from taciturn.sites.rounds.evidence import read_proof, write_proof
from taciturn.sites.wire.trust import load_trust


@pytest.fixture
def network(tmp_path):
    found = sites(tmp_path)
    return found, load_trust(found[0].path(found[0].file.keys.authority))


def proof(folder, site, second, owner="site-2"):
    first = frame(site, Kind.MESSAGE, 1, payload=bytes(32))
    return write_proof(folder, "trial", owner, [first, second])


def test_two_signed_frames_for_one_round_are_a_proof(network, tmp_path):
    (*_, site), trust = network
    second = frame(site, Kind.MESSAGE, 1, payload=b"1" * 32)
    assert read_proof(proof(tmp_path, site, second), trust).owner == "site-2"


@pytest.mark.parametrize("forged", ["signature", "signer", "owner", "same frame"])
def test_a_frame_that_the_accused_site_did_not_sign_proves_nothing(network, tmp_path, forged):
    (other, _, site), trust = network
    payload = bytes(32) if forged == "same frame" else b"1" * 32
    signer = identity(other) if forged == "signer" else identity(site)
    second = frame(site, Kind.MESSAGE, 1, payload=payload, signer=signer)
    if forged == "signature":
        second = second[:-1] + bytes([second[-1] ^ 1])
    owner = "site-1" if forged == "owner" else "site-2"
    with pytest.raises(SiteError, match="proves nothing"):
        read_proof(proof(tmp_path, site, second, owner), trust)

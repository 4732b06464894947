"""A proof accuses a site only by two frames that the site itself has signed."""

import pytest

from support.sitemasked import masked_network
from support.sitework import RING_OF_3, frame, identity, network, sites
from taciturn.core.errors import SiteError
from taciturn.privacy.accounting.gaussian import gaussian_epsilon, gaussian_mu
from taciturn.sites.files.site import load_site
from taciturn.sites.protocol.frames import Kind
from taciturn.sites.rounds.evidence import cost_of, read_proof, write_proof
from taciturn.sites.rounds.prepare import make_ready
from taciturn.sites.wire.trust import load_trust


@pytest.fixture
def known(tmp_path):
    found = sites(tmp_path)
    return found, load_trust(found[0].path(found[0].file.keys.authority))


def proof(folder, site, second, owner="site-2"):
    first = frame(site, Kind.MESSAGE, 1, payload=bytes(32))
    return write_proof(folder, "trial", owner, [first, second])


def test_two_signed_frames_for_one_round_are_a_proof(known, tmp_path):
    (*_, site), trust = known
    second = frame(site, Kind.MESSAGE, 1, payload=b"1" * 32)
    assert read_proof(proof(tmp_path, site, second), trust).owner == "site-2"


@pytest.mark.parametrize("forged", ["signature", "signer", "owner", "same frame"])
def test_a_frame_that_the_accused_site_did_not_sign_proves_nothing(known, tmp_path, forged):
    (other, _, site), trust = known
    payload = bytes(32) if forged == "same frame" else b"1" * 32
    signer = identity(other) if forged == "signer" else identity(site)
    second = frame(site, Kind.MESSAGE, 1, payload=payload, signer=signer)
    if forged == "signature":
        second = second[:-1] + bytes([second[-1] ^ 1])
    owner = "site-1" if forged == "owner" else "site-2"
    with pytest.raises(SiteError, match="proves nothing"):
        read_proof(proof(tmp_path, site, second, owner), trust)


@pytest.mark.parametrize("kind", ["penalty", "whitened", "masked"])
def test_a_message_that_left_twice_costs_twice(tmp_path, kind):
    """The first messages of a whitened run are moments: two of them have sqrt(2) times the mu of one."""
    whiten = {"whiten": 0.5} if kind == "whitened" else {}
    paths = masked_network(tmp_path) if kind == "masked" else network(tmp_path, RING_OF_3, job=whiten)
    ready = make_ready(load_site(paths[0]))
    delta, one = ready.site.job.delta, cost_of(ready, [1])
    assert 0 < one < cost_of(ready, [1, 2]) < cost_of(ready, [1, 2, 2]) < cost_of(ready, [1, 1, 2, 2, 3])
    twice = gaussian_epsilon(2**0.5 * gaussian_mu(one, delta), delta)
    assert cost_of(ready, [1, 1]) >= twice * (1 - 1e-6) and cost_of(ready, []) == 0
    if kind == "whitened":
        assert cost_of(ready, [1, 1]) == pytest.approx(float(twice), rel=1e-4)

"""Sites known by the keys that their job lists; revoked and unlisted keys are rejected."""

import time

import pytest

from sites.state.test_account import edit
from support.linkcut import until
from support.sitekeys import enrol, rekey
from support.siteprocess import run_all
from support.sitework import PATH_OF_3, network
from taciturn.core.errors import ExitCode
from taciturn.sites.files.keys import load_certificates
from taciturn.sites.files.site import load_site
from taciturn.sites.wire.probe import NOBODY, probe

KEYS = {"private": "site-0.key", "certificate": "site-0.pem", "authority": "../authority.pem"}


def test_sites_that_are_known_by_their_keys_run_without_an_authority(tmp_path):
    paths = network(tmp_path, PATH_OF_3, job={"rounds": 2})
    enrol(paths)
    run_all(paths)
    assert len({(path.parent / "state" / "model.json").read_bytes() for path in paths}) == 1


def test_site_refuses_to_start_with_a_key_that_the_job_does_not_list(tmp_path, started):
    paths = network(tmp_path, [(0, 1)], job={"rounds": 2})
    enrol(paths)
    rekey(paths[1])
    stopped = started(paths[1])
    assert stopped.wait() == ExitCode.WRONG_FILES
    assert "its key is not the one that the job lists for it" in stopped.text()


@pytest.mark.parametrize("how", ["by fingerprint", "by serial number, while it runs"])
def test_a_revoked_key_cannot_connect(tmp_path, started, how):
    """TLS itself refuses it. The other site keeps waiting for the real owner, and reports why."""
    paths = network(tmp_path, [(0, 1)], job={"rounds": 2}, site={"patience": 8.0})
    enrol(paths)
    certificate = load_certificates(paths[1].parent / "site-1.pem")[0]
    listed = load_site(paths[1]).job.keys["site-1"]
    revoked = KEYS | {"revoked": [listed if how == "by fingerprint" else f"{certificate.serial_number:x}"]}
    site = load_site(paths[1])
    endpoint, said = site.dials()["site-0"], NOBODY[0]
    if how == "by fingerprint":
        edit(paths[0], keys=revoked)
    running = started(paths[0])
    if how != "by fingerprint":
        until(lambda: probe(site, "site-0", endpoint) is None)
        edit(paths[0], keys=revoked)
        until(lambda: "connects again, with new keys" in running.text())
    while any(words in str(said) for words in NOBODY):  # it is not up yet
        said = probe(site, "site-0", endpoint)
        time.sleep(0.1)
    assert said is not None and "certificate" in said, said
    assert running.wait() == ExitCode.NEIGHBOUR, running.text()
    assert "ignoring the certificate of site-1: its certificate was revoked" in running.text()

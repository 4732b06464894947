"""A relay carries frames between sites that may only connect outward."""

import tomllib

import pytest

from support.linkcut import until
from support.siteattack import Attacker
from support.siteend import check_end
from support.sitemasked import check_masked_end, masked_network
from support.siteprocess import Network
from support.sitework import PATH_OF_3, frame, network
from taciturn.core.errors import SiteError
from taciturn.jobfile.toml_files import write_toml
from taciturn.sites.files.keys import Authority
from taciturn.sites.files.site import load_site
from taciturn.sites.protocol.frames import Kind
from taciturn.sites.trial.rehearsal import free_ports, issue
from taciturn.sites.wire.config import open_relay, relay_settings


@pytest.fixture(
    params=[(network, ()), (network, (1,)), (masked_network, ())],
    ids=["all outward", "one listens", "all outward, masked"],
)
def behind_a_relay(tmp_path, request):
    """Three sites in a row, all or all but one without an endpoint, and the relay's settings."""
    endpoint = f"tls/127.0.0.1:{free_ports(1)[0]}"
    make, listening = request.param
    paths = make(tmp_path, PATH_OF_3, job={"relay": {"name": "relay", "endpoint": endpoint}})
    facts = tomllib.loads((tmp_path / "job.toml").read_text())
    for i, entry in enumerate(facts["sites"]):
        if i not in listening:
            del entry["endpoint"]
    (tmp_path / "job.toml").write_text(write_toml(facts))
    issue(Authority.load(tmp_path), tmp_path, "relay", ["127.0.0.1"])
    keys = {"private": tmp_path / "relay.key", "certificate": tmp_path / "relay.pem"}
    job = load_site(paths[0]).job
    return paths, relay_settings(job, **keys, authority=tmp_path / "authority.pem")


def test_sites_that_only_connect_outward_agree_through_a_relay(behind_a_relay):
    paths, settings = behind_a_relay
    outward = [site for site in map(load_site, paths) if site.listens() is None]
    assert len(outward) >= 2 and all(list(site.dials()) == ["relay"] for site in outward)
    running = Network(paths)
    until(lambda: all((path.parent / "log.txt").exists() for path in paths))
    relay = open_relay(settings)  # late: the sites wait for it
    try:
        running.finish()
    finally:
        relay.close()
    (check_masked_end if load_site(paths[0]).job.method == "masked" else check_end)(paths)


def test_relay_rejects_messages_under_another_name(behind_a_relay):
    paths, settings = behind_a_relay
    sites = [load_site(path) for path in paths]
    if sites[0].job.method == "masked":
        pytest.skip("the relay's rules do not depend on the method")
    relay, heard = open_relay(settings), []
    try:
        with Attacker(sites[1], paths[1].parent, "site-1", to=settings["listen"]["endpoints"][0]) as middle:
            until(middle.linked)
            keep = [middle.listen(f"taciturn/{name}/**", heard.append) for name in ("site-0", "site-2")]
            with Attacker(sites[2], paths[2].parent, "site-2", to=settings["listen"]["endpoints"][0]) as liar:
                until(liar.linked)

                def heard_at_last() -> bool:
                    """Frames of one session keep their order: the true one comes after all that passed."""
                    liar.put("taciturn/site-0/all", frame(sites[2], Kind.MESSAGE, 1))
                    liar.put("taciturn/*/all", frame(sites[2], Kind.MESSAGE, 1))
                    liar.put("taciturn/site-2/all", frame(sites[2], Kind.MESSAGE, 1))
                    return bool(heard)

                until(heard_at_last)
            assert set(heard) == {"taciturn/site-2/all"} and keep
    finally:
        relay.close()


def test_a_job_without_a_relay_has_none(tmp_path):
    job = load_site(network(tmp_path)[0]).job
    nowhere = tmp_path / "x"
    with pytest.raises(SiteError, match="has no `relay`"):
        relay_settings(job, private=nowhere, certificate=nowhere, authority=nowhere)

"""The configuration of Zenoh denies everything by default."""

import json

import pytest

from support.sitework import PATH_OF_3, network, sites
from taciturn.sites.files.keys import Authority
from taciturn.sites.files.site import load_site
from taciturn.sites.trial.rehearsal import issue
from taciturn.sites.wire.config import relay_settings, site_config


@pytest.fixture
def middle(tmp_path):
    return sites(tmp_path, PATH_OF_3)[1]


def test_nothing_but_tls_on_configured_endpoints(middle):
    config = site_config(middle)
    assert config["listen"]["endpoints"] == [middle.job.sites[1].endpoint]
    assert config["connect"]["endpoints"] == [middle.job.sites[0].endpoint]
    assert config["scouting"] == {"multicast": {"enabled": False}, "gossip": {"enabled": False}}
    link = config["transport"]["link"]
    assert link["protocols"] == ["tls"]
    assert link["tls"]["enable_mtls"] and link["tls"]["verify_name_on_connect"]
    assert link["rx"]["max_message_size"] < 100_000
    json.dumps(config)


def test_default_deny_and_each_neighbour_under_its_own_name(middle):
    access = site_config(middle)["access_control"]
    assert access["enabled"] and access["default_permission"] == "deny"
    assert [entry["cert_common_names"] for entry in access["subjects"]] == [["site-0"], ["site-2"]]
    for policy in access["policies"]:
        (peer,) = policy["subjects"]
        rules = [rule for rule in access["rules"] if rule["id"] in policy["rules"]]
        spoken = [rule for rule in rules if rule["flows"] == ["ingress"] and "put" in rule["messages"]]
        assert [rule["key_exprs"] for rule in spoken] == [[f"taciturn/{peer}/**"]]
        assert all(rule["permission"] == "allow" for rule in rules)
    told = [rule for rule in access["rules"] if "put" in rule["messages"] and rule["flows"] == ["egress"]]
    assert all(rule["key_exprs"] == ["taciturn/site-1/**"] for rule in told)


def test_a_site_that_only_connects_outward_listens_nowhere(tmp_path):
    paths = network(tmp_path, PATH_OF_3)
    text = (tmp_path / "job.toml").read_text()
    endpoint = load_site(paths[0]).listens()
    (tmp_path / "job.toml").write_text(text.replace(f'endpoint = "{endpoint}", ', ""))
    config = site_config(load_site(paths[0]))
    assert config["listen"]["endpoints"] == [] and len(config["connect"]["endpoints"]) == 1


def test_a_relay_lets_each_site_speak_under_its_own_name_only(tmp_path):
    relay = {"name": "relay", "endpoint": "tls/127.0.0.1:7447"}
    made = sites(tmp_path, PATH_OF_3, job={"relay": relay})
    issue(Authority.load(tmp_path), tmp_path, "relay", ["127.0.0.1"])
    keys = {"private": tmp_path / "relay.key", "certificate": tmp_path / "relay.pem"}
    config = relay_settings(made[0].job, **keys, authority=tmp_path / "authority.pem")
    rules = {rule["id"]: rule for rule in config["access_control"]["rules"]}
    assert rules["site-1 speaks"]["key_exprs"] == ["taciturn/site-1/**"]
    assert rules["site-0 hears"]["key_exprs"] == ["taciturn/site-1/**"]
    assert config["mode"] == "router" and config["access_control"]["default_permission"] == "deny"
    assert "relay" in [s["id"] for s in site_config(made[0])["access_control"]["subjects"]]

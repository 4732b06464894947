"""The configuration of Zenoh: TLS between named neighbours, on the configured endpoints, and no more."""

from __future__ import annotations

import base64
from typing import Any

from ..files.job import NetworkJob
from ..files.site import Site
from ..protocol.frames import size_cap
from .trust import trusted_roots

LEASE = 5_000  # ms without a sign of life after which a link counts as lost
RETRY = {"period_init_ms": 200, "period_max_ms": 2_000, "period_increase_factor": 2}


def largest_payload(job: NetworkJob) -> int:
    """Bytes of the longest payload of a frame: a message, or a hello with what its site was charged for."""
    longest = max(8 * entry.length for entry in job.sums.sums) if job.masked else 8 * job.dimension
    return max(longest, 160 * len(job.names)) + 2**14


def site_config(site: Site) -> dict[str, Any]:
    """For one site: default deny, and per neighbour what it may say, ask and be told."""
    relay = site.job.relay
    allowed = {name: [name] for name in site.neighbours}
    if relay is not None:
        allowed[relay.name] = list(site.neighbours)
    return _common(site) | {
        "connect": {
            "endpoints": list(site.dials().values()),
            "timeout_ms": -1,
            "exit_on_failure": False,
            "retry": RETRY,
        },
        "access_control": _access(site.name, allowed),
    }


def relay_config(job: NetworkJob, *, private: str, certificate: str, authority: str) -> dict[str, Any]:
    """For a router that carries frames between sites: each site may speak under its own name only."""
    if job.relay is None:
        return {}
    rules, subjects, policies = [], [], []
    for name in job.names:
        near = job.neighbours(name)
        heard, jobs = ([f"taciturn/{other}/{end}" for other in near] for end in ("**", "job"))
        rules += [
            _rule(
                f"{name} speaks", ["put", "reply", "declare_queryable"], "ingress", [f"taciturn/{name}/**"]
            ),
            _rule(f"{name} is asked", ["query", "declare_subscriber"], "egress", [f"taciturn/{name}/**"]),
            _rule(f"{name} hears", ["put", "reply", "declare_queryable"], "egress", heard),
            _rule(f"{name} asks", ["query"], "ingress", jobs),
            _rule(f"{name} listens", ["declare_subscriber"], "ingress", heard),
        ]
        subjects.append({"id": name, "cert_common_names": [name]})
        policies.append({"subjects": [name], "rules": [rule["id"] for rule in rules[-5:]]})
    return {
        "mode": "router",
        "listen": {"endpoints": [job.relay.endpoint]},
        "connect": {"endpoints": []},
        "scouting": {"multicast": {"enabled": False}, "gossip": {"enabled": False}},
        "transport": _transport(job, private, certificate, authority),
        "access_control": _table(rules, subjects, policies),
    }


def _common(site: Site) -> dict[str, Any]:
    """A site that talks through the relay alone is its client; every other one is a peer."""
    keys, listen = site.file.keys, site.listens()
    paths = [str(site.path(path).absolute()) for path in (keys.private, keys.certificate, keys.authority)]
    transport = _transport(site.job, *paths)
    if site.job.keys:  # only keys that are listed and not revoked may connect
        tls = transport["link"]["tls"]
        del tls["root_ca_certificate"]
        tls["root_ca_certificate_base64"] = base64.b64encode(trusted_roots(site)).decode()
    return {
        "mode": "client" if site.outward else "peer",
        "listen": {"endpoints": [] if listen is None else [listen]},
        "scouting": {"multicast": {"enabled": False}, "gossip": {"enabled": False}},
        "transport": transport,
    }


def _transport(job: NetworkJob, private: str, certificate: str, authority: str) -> dict[str, Any]:
    """Mutual TLS, names checked, and no message that could not be a frame."""
    largest = max(65_536, 4 * size_cap(largest_payload(job)))
    return {
        "unicast": {"open_timeout": 10_000, "accept_timeout": 5_000, "accept_pending": 256},
        "shared_memory": {"enabled": False},
        "link": {
            "protocols": ["tls"],
            "rx": {"max_message_size": largest},
            "tx": {"lease": LEASE, "keep_alive": 4},
            "tls": {
                "root_ca_certificate": authority,
                "enable_mtls": True,
                "verify_name_on_connect": True,
                "close_link_on_expiration": True,
                "listen_private_key": private,
                "listen_certificate": certificate,
                "connect_private_key": private,
                "connect_certificate": certificate,
            },
        },
    }


def _access(me: str, allowed: dict[str, list[str]]) -> dict[str, Any]:
    """`allowed`: which names may be spoken under, by the common name of the certificate at the other end."""
    rules, subjects, policies = [], [], []
    mine = [f"taciturn/{me}/**"]
    for peer, names in allowed.items():
        theirs = [f"taciturn/{name}/**" for name in names]
        rules += [
            _rule(f"{peer} speaks", ["put", "reply", "declare_queryable"], "ingress", theirs),
            _rule(f"{peer} is asked", ["query", "declare_subscriber"], "egress", theirs),
            _rule(f"{peer} hears", ["put", "reply", "declare_queryable"], "egress", mine),
            _rule(f"{peer} asks", ["query"], "ingress", [f"taciturn/{me}/job"]),
            _rule(f"{peer} listens", ["declare_subscriber"], "ingress", mine),
        ]
        subjects.append({"id": peer, "cert_common_names": [peer]})
        policies.append({"subjects": [peer], "rules": [rule["id"] for rule in rules[-5:]]})
    return _table(rules, subjects, policies)


def _rule(name: str, messages: list[str], flow: str, keys: list[str]) -> dict[str, Any]:
    return {"id": name, "permission": "allow", "messages": messages, "flows": [flow], "key_exprs": keys}


def _table(rules: list[Any], subjects: list[Any], policies: list[Any]) -> dict[str, Any]:
    return {
        "enabled": True,
        "default_permission": "deny",
        "rules": rules,
        "subjects": subjects,
        "policies": policies,
    }

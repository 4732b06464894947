"""The configuration of Zenoh: TLS between named neighbours, on the configured endpoints, and no more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..files.job import NetworkJob
from ..files.site import Site
from .form import form_of
from .frame import size_cap

LEASE = 5_000  # ms without a sign of life after which a link counts as lost
RETRY = {"period_init_ms": 200, "period_max_ms": 2_000, "period_increase_factor": 2}


def key_of(name: str, t: int, owner: str | None = None, *, attempt: int = 0) -> str:
    """Where `name` publishes its frame of round t, or passes on that of `owner`, and is asked for it."""
    return f"taciturn/{name}/{attempt}.{t}/{owner or name}"


def key_of_recall(name: str, owner: str) -> str:
    """Where `name` is asked for the newest frame of `owner` that it holds."""
    return f"taciturn/{name}/recall/{owner}"


def key_of_proof(name: str) -> str:
    """Where `name` shows two frames that contradict each other."""
    return f"taciturn/{name}/proof"


def key_of_where(name: str) -> str:
    """Where `name` is asked which round it is in and whom it waits for."""
    return f"taciturn/{name}/where"


def key_of_job(name: str) -> str:
    """Where `name` is asked for the public facts of its job."""
    return f"taciturn/{name}/job"


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
        heard = [f"taciturn/{neighbour}/**" for neighbour in job.neighbours(name)]
        rules += [
            _rule(
                f"{name} speaks", ["put", "reply", "declare_queryable"], "ingress", [f"taciturn/{name}/**"]
            ),
            _rule(f"{name} is asked", ["query", "declare_subscriber"], "egress", [f"taciturn/{name}/**"]),
            _rule(f"{name} hears", ["put", "reply", "declare_queryable"], "egress", heard),
            _rule(f"{name} asks", ["query"], "ingress", _questions(job.neighbours(name), [name])),
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
    return {
        "mode": "client" if site.outward else "peer",
        "listen": {"endpoints": [] if listen is None else [listen]},
        "scouting": {"multicast": {"enabled": False}, "gossip": {"enabled": False}},
        "transport": _transport(site.job, *paths),
    }


def _transport(job: NetworkJob, private: str, certificate: str, authority: str) -> dict[str, Any]:
    """Mutual TLS, names checked, and no message that could not be a frame."""
    largest = max(65_536, 4 * size_cap(form_of(job).cap))
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
            _rule(f"{peer} asks", ["query"], "ingress", _questions([me], names)),
            _rule(f"{peer} listens", ["declare_subscriber"], "ingress", mine),
        ]
        subjects.append({"id": peer, "cert_common_names": [peer]})
        policies.append({"subjects": [peer], "rules": [rule["id"] for rule in rules[-5:]]})
    return _table(rules, subjects, policies)


def _questions(asked: Sequence[str], askers: Sequence[str]) -> list[str]:
    """What may be asked: frames, job and place, and which frames of the asker itself are known."""
    return [
        key
        for name in asked
        for key in (
            f"taciturn/{name}/$*.$*/*",
            key_of_job(name),
            key_of_where(name),
            *(key_of_recall(name, asker) for asker in askers),
        )
    ]


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

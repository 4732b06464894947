"""The configuration of Zenoh, which carries all messages, for a site or relay: TLS with named neighbours."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from ...core.errors import MissingExtra, SiteError
from ...jobfile.toml_files import about_files
from ..files.job import NetworkJob
from ..files.site import Site
from ..protocol.frames import size_cap
from .trust import load_identity, load_trust, trusted_roots

LEASE = 5_000  # ms without a sign of life after which a link counts as lost
RETRY = {"period_init_ms": 200, "period_max_ms": 2_000, "period_increase_factor": 2}
_NO_SCOUTING = {"multicast": {"enabled": False}, "gossip": {"enabled": False}}


def largest_payload(job: NetworkJob) -> int:
    """A bound on the payload of a frame (a signed message of the protocol), in bytes."""
    return 8 * job.settings.longest + 2**14


def site_config(site: Site) -> dict[str, Any]:
    """The configuration of one site. Each neighbour may do only what its access rules allow."""
    keys, listen, relay, mine = site.file.keys, site.listens(), site.job.relay, [site.name]
    peers = {name: ([name], mine) for name in site.neighbours}
    if relay is not None:
        peers[relay.name] = list(site.neighbours), mine
    paths = (site.path(path) for path in (keys.private, keys.certificate, keys.authority))
    transport = _transport(site.job, *paths)
    if site.job.keys:  # accept only listed keys that are not revoked
        tls = transport["link"]["tls"]
        del tls["root_ca_certificate"]
        tls["root_ca_certificate_base64"] = base64.b64encode(trusted_roots(site)).decode()
    return {
        "mode": "client" if site.outward else "peer",  # a site that uses only the relay is its client
        "listen": {"endpoints": [] if listen is None else [listen]},
        "connect": {
            "endpoints": list(site.dials().values()),
            "timeout_ms": -1,
            "exit_on_failure": False,
            "retry": RETRY,
        },
        "scouting": _NO_SCOUTING,
        "transport": transport,
        "access_control": _access(peers),
    }


@about_files
def relay_settings(job: NetworkJob, *, private: Path, certificate: Path, authority: Path) -> dict[str, Any]:
    """The configuration of the job's relay, for `zenohd` or for `open_relay`. Checks the relay's keys.

    A relay serves sites that can only make outgoing connections. It routes encrypted messages, which it
    cannot read. Each site may publish only under its own name.
    """
    if job.relay is None:
        raise SiteError(f"the job {job.name} has no `relay`.")
    load_identity(private, certificate, job.relay.name, load_trust(authority, keys=job.keys))
    peers = {name: ([name], list(job.neighbours(name))) for name in job.names}
    return {
        "mode": "router",
        "listen": {"endpoints": [job.relay.endpoint]},
        "connect": {"endpoints": []},
        "scouting": _NO_SCOUTING,
        "transport": _transport(job, private, certificate, authority),
        "access_control": _access(peers),
    }


def open_relay(settings: dict[str, Any]) -> Any:
    """Start a router in this process; close the returned session to stop the router."""
    try:
        import zenoh
    except ImportError as error:
        raise MissingExtra("eclipse-zenoh", "zenoh") from error
    try:
        return zenoh.open(zenoh.Config.from_json5(json.dumps(settings)))
    except zenoh.ZError as error:
        raise SiteError(f"the relay cannot listen at {settings['listen']['endpoints'][0]}.") from error


def _transport(job: NetworkJob, private: Path, certificate: Path, authority: Path) -> dict[str, Any]:
    """Mutual TLS with checked names. Zenoh drops a message that is far larger than a frame."""
    largest = max(65_536, 4 * size_cap(largest_payload(job)))
    key, chain, root = (str(path.absolute()) for path in (private, certificate, authority))
    return {
        "unicast": {"open_timeout": 10_000, "accept_timeout": 5_000, "accept_pending": 256},
        "shared_memory": {"enabled": False},
        "link": {
            "protocols": ["tls"],
            "rx": {"max_message_size": largest},
            "tx": {"lease": LEASE, "keep_alive": 4},
            "tls": {
                "root_ca_certificate": root,
                "enable_mtls": True,
                "verify_name_on_connect": True,
                "close_link_on_expiration": True,
                "listen_private_key": key,
                "listen_certificate": chain,
                "connect_private_key": key,
                "connect_certificate": chain,
            },
        },
    }


def _access(peers: dict[str, tuple[list[str], list[str]]]) -> dict[str, Any]:
    """Access rules that allow each peer what `peers` states, and deny everything else.

    peers : for each peer, by the common name in its certificate: the names under which it may send, and the
        names from which it may receive.
    """
    rules: list[dict[str, Any]] = []
    for peer, (own, near) in peers.items():
        theirs, heard = ([f"taciturn/{name}/**" for name in names] for names in (own, near))
        allowed = (
            ("speaks", "put", "ingress", theirs),
            ("is heard", "declare_subscriber", "egress", theirs),
            ("hears", "put", "egress", heard),
            ("listens", "declare_subscriber", "ingress", heard),
        )
        rules += [
            {
                "id": f"{peer} {what}",
                "permission": "allow",
                "messages": [message],
                "flows": [flow],
                "key_exprs": keys,
            }
            for what, message, flow, keys in allowed
        ]
    ids = [rule["id"] for rule in rules]
    return {
        "enabled": True,
        "default_permission": "deny",
        "rules": rules,
        "subjects": [{"id": peer, "cert_common_names": [peer]} for peer in peers],
        "policies": [{"subjects": [p], "rules": ids[4 * k : 4 * k + 4]} for k, p in enumerate(peers)],
    }

"""A relay: a Zenoh router for sites that may only connect outward; it sees released values, signed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ...core.errors import MissingExtra, SiteError
from ...jobfile.toml_files import about_files
from ..files.job import NetworkJob
from .config import relay_config
from .trust import load_identity, load_trust


@about_files
def relay_settings(job: NetworkJob, *, private: Path, certificate: Path, authority: Path) -> dict[str, Any]:
    """The configuration of the job's relay, for `zenohd` or for `open_relay`; its keys are checked."""
    if job.relay is None:
        raise SiteError(f"the job {job.name} has no `relay`.")
    load_identity(private, certificate, job.relay.name, load_trust(authority, keys=job.keys))
    paths = {"private": private, "certificate": certificate, "authority": authority}
    return relay_config(job, **{name: str(path.absolute()) for name, path in paths.items()})


def open_relay(settings: dict[str, Any]) -> Any:
    """A router in this process; close what is returned to end it."""
    try:
        import zenoh
    except ImportError as error:
        raise MissingExtra("eclipse-zenoh", "zenoh") from error
    try:
        return zenoh.open(zenoh.Config.from_json5(json.dumps(settings)))
    except zenoh.ZError as error:
        raise SiteError(f"the relay cannot listen at {settings['listen']['endpoints'][0]}.") from error

"""The parties of a network's job: its sites and its relay, each with a name, an address and a key."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from ...core.toml import Facts
from ...jobfile.job_format import JobSite
from ...jobfile.toml_fields import NAME

_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
HOST = rf"{_LABEL}(\.{_LABEL})*"
ENDPOINT = rf"tls/(\[[0-9a-fA-F:.]+\]|{HOST}):[0-9]{{1,5}}"


def _endpoint(text: str) -> str:
    """Check that an endpoint has a valid host and port."""
    if not re.fullmatch(ENDPOINT, text) or not 0 < int(text.rpartition(":")[2]) < 2**16:
        raise ValueError(
            "must be tls/HOST:PORT, such as tls/alpha.example:7447, with a port of at most 65535"
        )
    return text


Name = Annotated[str, Field(pattern=NAME)]
Fingerprint = Annotated[str, Field(pattern=r"^[0-9a-f]{4}(-[0-9a-f]{4}){7}$")]
Endpoint = Annotated[str, AfterValidator(_endpoint)]


class NetworkSite(JobSite):
    """One site: its name, the endpoint where it listens (if it does), and B_i, its number of rows or persons.

    key : the fingerprint of the site's key, in a network that has no authority to certify keys.
    """

    name: Name
    endpoint: Endpoint | None = None
    samples: int = Field(ge=1)
    key: Fingerprint | None = None


class Relay(Facts):
    """A Zenoh router for sites that can only make outgoing connections. It cannot read what it forwards."""

    name: Name
    endpoint: Endpoint
    key: Fingerprint | None = None

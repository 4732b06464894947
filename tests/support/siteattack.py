"""An attacker on the network: any key, any certificate, any bytes, and an unrestricted Zenoh."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import zenoh

from taciturn.sites.files.site import Site
from taciturn.sites.wire.config import site_config


class Attacker:
    """A session that calls `victim` with the keys of `folder`/`name`, bound by no access control.

    mtls=False shows no certificate.
    """

    def __init__(
        self, victim: Site, folder: Path, name: str, *, mtls: bool = True, to: str | None = None
    ) -> None:
        config: dict[str, Any] = site_config(victim)
        del config["access_control"]
        config["listen"] = {"endpoints": []}
        config["connect"] |= {"endpoints": [to or victim.listens()]}
        config["transport"]["link"]["tls"] |= {"enable_mtls": mtls} | {
            f"{way}_{what}": str(folder / f"{name}.{suffix}")
            for way in ("listen", "connect")
            for what, suffix in (("private_key", "key"), ("certificate", "pem"))
        }
        self._zenoh: Any = zenoh.open(zenoh.Config.from_json5(json.dumps(config)))

    def linked(self) -> bool:
        """Whether there is a link at this moment."""
        return bool(self._zenoh.info.links())

    def put(self, key: str, payload: bytes) -> None:
        self._zenoh.put(key, payload, congestion_control=zenoh.CongestionControl.BLOCK, express=True)

    def ask(self, key: str) -> list[bytes]:
        """What the victim answers to a question within a second."""
        return [reply.ok.payload.to_bytes() for reply in self._zenoh.get(key, timeout=1.0) if reply.ok]

    def listen(self, key: str, heard: Callable[[str], None]) -> Any:
        """Subscribe; `heard` is told the key of each message."""
        return self._zenoh.declare_subscriber(key, lambda sample: heard(str(sample.key_expr)))

    def close(self) -> None:
        self._zenoh.close()

    def __enter__(self) -> Attacker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

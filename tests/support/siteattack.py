"""An attacker on the network: any key, any certificate, any bytes, and an unrestricted Zenoh."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import zenoh
from cryptography.hazmat.primitives.serialization import Encoding

from taciturn.sites.files.keys import load_certificates, load_key
from taciturn.sites.files.site import Site
from taciturn.sites.protocol.envelopes import MAGIC, Content, Envelopes
from taciturn.sites.protocol.frames import FrameRefused
from taciturn.sites.wire.config import site_config
from taciturn.sites.wire.trust import Identity


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
        self._files, self._victim = (folder / f"{name}.key", folder / f"{name}.pem"), victim
        self.heard: list[bytes] = []
        self.opened: list[tuple[Content, bytes]] = []

    def linked(self) -> bool:
        """Whether there is a link at this moment."""
        return bool(self._zenoh.info.links())

    def put(self, key: str, payload: bytes) -> None:
        self._zenoh.put(key, payload, congestion_control=zenoh.CongestionControl.BLOCK, express=True)

    def ask(self, key: str) -> list[bytes]:
        """What the victim answers to a question within a second."""
        return [reply.ok.payload.to_bytes() for reply in self._zenoh.get(key, timeout=1.0) if reply.ok]

    def speak_as(self, name: str) -> None:
        """Exchange keys with the victim, as the site of that name does; what it sends can then be opened."""
        der = load_certificates(self._files[1])[0].public_bytes(Encoding.DER)
        seal, job = Identity(name, load_key(self._files[0]), der).seal, self._victim.job
        self.envelopes = Envelopes(job.hash, job.names.index(name), seal, lambda *_: None, os.urandom)
        self._name = name
        self._zenoh.declare_subscriber(f"taciturn/{self._victim.name}/**", self._take)

    def _take(self, sample: Any) -> None:
        data = sample.payload.to_bytes()
        self.heard.append(data)
        if data.startswith(MAGIC):
            opened = self.envelopes.open(data, self._victim.number)
            if opened is not None:
                self.opened.append(opened)
            return
        try:
            frame = self.envelopes.read(data, self._victim.number)
            if (answer := self.envelopes.answer(frame)) is not None:
                self.put(f"taciturn/{self._name}/to/{self._victim.name}", answer)
            else:
                self.envelopes.learn(frame, self._victim.number)
        except FrameRefused:
            return

    def ask_for_key(self, seconds: float = 2.0) -> bool:
        """Request the key of the victim's envelopes, over and over; whether it came."""
        end = time.monotonic() + seconds
        while not self.envelopes.known and time.monotonic() < end:
            self.put(f"taciturn/{self._name}/to/{self._victim.name}", self.envelopes.request)
            time.sleep(0.05)
        return bool(self.envelopes.known)

    def say(self, data: bytes, content: Content = Content.FRAME) -> None:
        """Send something in an envelope."""
        self.put(f"taciturn/{self._name}/all", self.envelopes.close(content, data))

    def listen(self, key: str, heard: Callable[[str], None]) -> Any:
        """Subscribe; `heard` gets the key of each message."""
        return self._zenoh.declare_subscriber(key, lambda sample: heard(str(sample.key_expr)))

    def close(self) -> None:
        self._zenoh.close()

    def __enter__(self) -> Attacker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

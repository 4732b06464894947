"""Networks whose job lists the keys of its sites, and sites with a revoked key."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from taciturn.jobfile.toml_files import write_toml
from taciturn.sites.files.keys import load_key, new_key, self_signed, short_fingerprint
from taciturn.sites.protocol.pads import RoundKeys
from taciturn.sites.state.volatile_keys import VolatileMemory
from taciturn.sites.trial.rehearsal import LOOPBACK


def enrol(paths: Sequence[Path]) -> None:
    """Give every site a certificate of its own making, and list the keys in the job."""
    job = paths[0].parent.parent / "job.toml"
    facts, bundle = tomllib.loads(job.read_text()), b""
    for entry, path in zip(facts["sites"], paths, strict=True):
        key = load_key(path.parent / f"{entry['name']}.key")
        entry["key"] = short_fingerprint(key.public_key())
        text = self_signed(key, entry["name"], [LOOPBACK])
        (path.parent / f"{entry['name']}.pem").write_bytes(text)
        bundle += text
    job.write_text(write_toml(facts))
    (job.parent / "authority.pem").write_bytes(bundle)  # what every site calls its authority


def rekey(path: Path) -> str:
    """A new key and certificate for one site; the fingerprint of the key, for the job."""
    name = path.parent.name
    for old in (path.parent / f"{name}.key", path.parent / f"{name}.pem"):
        old.unlink()
    key = new_key(path.parent / f"{name}.key")
    (path.parent / f"{name}.pem").write_bytes(self_signed(key, name, [LOOPBACK]))
    return short_fingerprint(key.public_key())


def tell_keys(told: Path) -> None:
    """Write down every private key, salt and key that a mask is made with."""

    def note(*secrets: bytes) -> None:
        with told.open("a") as file:
            file.writelines(f"{secret.hex()}\n" for secret in secrets)

    real = VolatileMemory.change

    def change(self: VolatileMemory, entries: Mapping[str, bytes | None]) -> None:
        if (secret := entries.get("secret")) is not None:
            note(secret[4:])
        if (keys := entries.get("keys")) is not None:
            note(*RoundKeys.unpack(keys).keys.values())
        if (drawn := entries.get("y")) is not None:
            note(drawn[8:40])  # the salt
        real(self, entries)

    VolatileMemory.change = change  # type: ignore[method-assign]

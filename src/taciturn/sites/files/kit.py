"""A kit to begin with: from one job a folder for every party, without a key in any of them.

Keys are made where they will stay, by `taciturn site keys` and `taciturn site relay-keys`.
"""

from __future__ import annotations

import re
from pathlib import Path

from ...core.errors import SiteError
from ...core.templates import fill
from .job import NetworkJob, load_job
from .keys import fingerprint, new_key, signing_request, write_new


def write_kit(job: Path, folder: Path) -> list[Path]:
    """A folder for each site of a job, and for its relay; nothing that exists is overwritten."""
    loaded, text = load_job(job), job.read_bytes()
    written = [_write_site(folder / name, name, loaded, text) for name in loaded.names]
    if loaded.relay is not None:
        written.append(_write_relay(folder / loaded.relay.name, loaded, text))
    return written


def site_text(job: NetworkJob, name: str) -> str:
    """site.toml for one site of this very job."""
    text = fill(__package__, "site.toml", name=name)
    if job.table is not None:
        text = text.replace('data = "rows.npz" ', 'data = "rows.csv" ')
    if job.masked:
        text = re.sub(r"^(penalty|noise|output_noise) = ", r"# \1 = ", text, flags=re.M)
    return text


def relay_keys(job: Path, hosts: list[str]) -> tuple[list[Path], str]:
    """A key and a signing request for the relay of a job, beside it; and the key's fingerprint."""
    loaded = load_job(job)
    if loaded.relay is None:
        raise SiteError(f"{job}: the job {loaded.name} has no `relay`.")
    name = loaded.relay.name
    private, request = job.parent / f"{name}.key", job.parent / f"{name}.csr"
    key = new_key(private)
    write_new(request, signing_request(key, name, hosts))
    return [private, request], fingerprint(key.public_key())


def _write_site(folder: Path, name: str, job: NetworkJob, text: bytes) -> Path:
    own = "" if job.masked else "; penalty and noise, as `taciturn plan` finds them"
    seed = fill(__package__, "seed.txt") if job.simulated else ""
    steps = fill(
        __package__, "steps.txt", name=name, job=job.name, hash=job.hash.hex()[:16], own=own, seed=seed
    )
    return _write(
        folder, {"job.toml": text, "site.toml": site_text(job, name).encode(), "STEPS.txt": steps.encode()}
    )


def _write_relay(folder: Path, job: NetworkJob, text: bytes) -> Path:
    steps = fill(__package__, "relay.txt", name=folder.name, job=job.name, hash=job.hash.hex()[:16])
    return _write(folder, {"job.toml": text, "STEPS.txt": steps.encode()})


def _write(folder: Path, contents: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        write_new(folder / name, content)
    return folder

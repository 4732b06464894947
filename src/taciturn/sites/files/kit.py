"""A kit to begin with: from one job a folder for every party, without a key in any of them.

Keys are made where they will stay, by `taciturn site keys` and `taciturn site relay-keys`.
"""

from __future__ import annotations

import re
from pathlib import Path

from ...errors import SiteError
from .job import NetworkJob, load_job
from .keys import fingerprint, new_key, signing_request, write_new
from .templates import SITE

STEPS = """\
{name} in the job {job}, {hash}

1. Read job.toml. Its hash, above, is the same at every site: compare it by telephone.
2. Edit site.toml: data, budget{own}.{seed}
3. taciturn site keys site.toml
   Send {name}.csr to whoever signs for the network, and read its fingerprint out by telephone. What comes
   back is {name}.pem and authority.pem; the key, {name}.key, never leaves this machine.
4. taciturn site check site.toml --wait 60, at the same time as the others
5. taciturn site run site.toml
"""

SEED = """
   The job has a seed: everybody can repeat its noise, and nothing is private. It is a rehearsal, for rows
   about nobody; if you hold others, refuse it. If you agree, write `rehearsal = true` in site.toml."""

RELAY = """\
the relay {name} of the job {job}, {hash}

1. taciturn site relay-keys job.toml
   Send {name}.csr to whoever signs for the network, and read its fingerprint out by telephone. What comes
   back is {name}.pem and authority.pem.
2. taciturn site relay job.toml --private {name}.key --certificate {name}.pem --authority authority.pem
"""


def write_kit(job: Path, folder: Path) -> list[Path]:
    """A folder for each site of a job, and for its relay; nothing that exists is overwritten."""
    loaded, text = load_job(job), job.read_bytes()
    written = [_write_site(folder / name, name, loaded, text) for name in loaded.names]
    if loaded.relay is not None:
        written.append(_write_relay(folder / loaded.relay.name, loaded, text))
    return written


def site_text(job: NetworkJob, name: str) -> str:
    """site.toml for one site of this very job."""
    text = SITE.format(name=name)
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
    folder.mkdir(parents=True, exist_ok=True)
    own = "" if job.masked else "; penalty and noise, as `taciturn plan` finds them"
    seed = SEED if job.simulated else ""
    steps = STEPS.format(name=name, job=job.name, hash=job.hash.hex()[:16], own=own, seed=seed)
    write_new(folder / "job.toml", text)
    write_new(folder / "site.toml", site_text(job, name).encode())
    write_new(folder / "STEPS.txt", steps.encode())
    return folder


def _write_relay(folder: Path, job: NetworkJob, text: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    write_new(folder / "job.toml", text)
    steps = RELAY.format(name=folder.name, job=job.name, hash=job.hash.hex()[:16])
    write_new(folder / "STEPS.txt", steps.encode())
    return folder

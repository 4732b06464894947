"""Files that a party (a site or the relay) starts from: templates, a kit for a whole job, a systemd unit.

A kit has a folder for every party of a job. It contains no keys: each party creates its key on its own
machine, with `taciturn site keys` or `taciturn site relay-keys`. The templates are in the folder `texts`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ...core.errors import NOT_AGAIN, ParameterError, SiteError
from ...core.templates import fill
from .job import NetworkJob, load_job
from .keys import check_hosts, check_new, fingerprint, new_key, signing_request, write_new


def write_kit(job: Path, folder: Path) -> list[Path]:
    """Write a folder for each site of a job, and for its relay. An existing file is never overwritten."""
    loaded, text = load_job(job), job.read_bytes()
    about = {"job": loaded.name, "hash": loaded.hash.hex()[:16]}
    own = ", and the penalty and noise that `taciturn plan` finds" if loaded.settings.own else ""
    seed = fill(__package__, "seed.txt") if loaded.simulated else ""
    steps = {
        name: fill(__package__, "steps.txt", name=name, own=own, seed=seed, **about) for name in loaded.names
    }
    files = {folder / name / "site.toml": site_text(loaded, name).encode() for name in loaded.names}
    if loaded.relay is not None:
        steps[loaded.relay.name] = fill(__package__, "relay.txt", name=loaded.relay.name, **about)
    for name, words in steps.items():
        files |= {folder / name / "job.toml": text, folder / name / "STEPS.txt": words.encode()}
    _write_all(files)
    return [folder / name for name in steps]


def site_text(job: NetworkJob, name: str) -> str:
    """The text of site.toml for one site of this job."""
    text = fill(__package__, "site.toml", name=name)
    if job.table is not None:
        text = text.replace('data = "rows.npz" ', 'data = "rows.csv" ')
    if not job.settings.own:
        text = re.sub(r"^(penalty|noise|output_noise) = ", r"# \1 = ", text, flags=re.M)
    return text


def relay_keys(job: Path, hosts: list[str]) -> tuple[list[Path], str]:
    """Write a key and a signing request for the relay to the job's folder. Return paths and fingerprint."""
    loaded = load_job(job)
    if loaded.relay is None:
        raise SiteError(f"{job}: the job {loaded.name} has no `relay`.")
    name = loaded.relay.name
    private, request = job.parent / f"{name}.key", job.parent / f"{name}.csr"
    check_hosts(hosts)
    check_new(private, request)
    key = new_key(private)
    write_new(request, signing_request(key, name, hosts))
    return [private, request], fingerprint(key.public_key())


def _write_all(files: dict[Path, bytes]) -> None:
    """Write new files and their folders; if one of the files exists already, write none of them."""
    check_new(*files)
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_new(path, content)


def write_readme(state: Path) -> None:
    """Write README.txt to the state folder, if it is not there yet."""
    with suppress(SiteError):  # the file exists, or the disk is full, which the store reports
        write_new(state / "README.txt", fill(__package__, "state.txt").encode())


def write_templates(folder: Path, name: str) -> list[Path]:
    """Write job.toml and site.toml for the site `name`. An existing job.toml is kept."""
    job, site = folder / "job.toml", folder / "site.toml"
    places = [site] if job.exists() else [job, site]  # another party may have written the job
    _write_all({path: fill(__package__, path.name, name=name).encode() for path in places})
    return places


def unit(
    what: str,
    command: list[str],
    folder: Path,
    *,
    user: str,
    writes: Sequence[Path] = (),
) -> str:
    """A systemd unit that runs `command` in `folder` as `user`, in a sandbox.

    writes : the folders to which the command may write.

    systemd restarts the command after transient failures. The sandbox does not set `MemoryDenyWriteExecute`,
    because the solver is compiled at its first use.
    """
    places = list(dict.fromkeys(map(str, writes)))
    words = [*command, str(folder), *places]
    for word in [*words, user]:
        if not word.isprintable() or set(word) & set(" \t\"'\\%$;"):
            raise ParameterError(f"a systemd unit cannot contain {word!r}: use plain paths and names.")
    home = any(word.startswith(("/home/", "/root/", "/run/user/")) for word in words)
    return fill(
        __package__,
        "unit.service",
        what=what,
        command=" ".join(command),
        folder=str(folder),
        user=user,
        codes=" ".join(str(int(code)) for code in NOT_AGAIN),
        paths=f"ReadWritePaths={' '.join(places)}\n" if places else "",
        home="read-only" if home else "true",
    )

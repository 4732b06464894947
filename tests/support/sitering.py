"""A ring of five or twenty real sites that a test disturbs without changing the result."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support.siteend import charged_rounds
from support.sitemasked import masked_network
from support.siteprocess import SiteProcess
from support.sitework import network
from taciturn.sites.files.keys import Authority, load_key, pem, signing_request
from taciturn.sites.files.site import Site, load_site
from taciturn.sites.trial.rehearsal import free_ports, issue

SIZES = pytest.mark.parametrize("size", [5, 20])
KINDS = pytest.mark.parametrize("kind", ["penalty", "masked"])
REAL = {"output_noise": {"kind": "gaussian", "std": 1e-3}}


def ring_links(size: int) -> list[tuple[int, int]]:
    return [(i, (i + 1) % size) for i in range(size)]


def ring_network(
    folder: Path, size: int, kind: str, *, site: dict[str, Any] | None = None, **job: Any
) -> list[Path]:
    """The files of a ring with real noise, which no two draws give twice, unless `job` has a seed."""
    facts, own = {"seed": None, "rounds": 5} | job, {"patience": 400.0} | (site or {})
    pays = {"epsilon": 5.0, "colluding": 1} if kind == "masked" else {"epsilon": 50.0}  # for a few runs
    own = {"budget": pays} | own
    if kind == "masked":
        return masked_network(folder, ring_links(size), job=facts, site=own)
    return network(folder, ring_links(size), job=facts, site=REAL | own)


@dataclass
class Ring:
    """The sites of a network and the processes that were started for them."""

    paths: list[Path]
    sites: list[Site] = field(init=False)
    running: dict[int, SiteProcess] = field(default_factory=dict)
    others: list[SiteProcess] = field(default_factory=list)  # copies of sites

    def __post_init__(self) -> None:
        self.sites = [load_site(path) for path in self.paths]

    def start(self, *numbers: int, **fault: Any) -> None:
        for i in numbers:
            assert i not in self.running or self.running[i].process.exitcode is not None
            self.running[i] = SiteProcess(self.paths[i], fault or None)

    def start_copy(self, path: Path, **fault: Any) -> SiteProcess:
        """A process on another machine with the name and key of a site."""
        self.others.append(SiteProcess(path, fault or None))
        return self.others[-1]

    def kill(self, *numbers: int) -> None:
        for i in numbers:
            self.running[i].kill()

    def go(self, *numbers: int) -> None:
        """Let a site that holds back its frame send it."""
        for i in numbers:
            (self.paths[i].parent / "go").touch()

    def codes(self) -> list[int]:
        """With what each site has ended."""
        return [self.running[i].wait() for i in range(len(self.paths))]

    def text(self, i: int) -> str:
        return self.running[i].text()

    def logs(self) -> str:
        return "\n".join(f"== {i}\n{entry.text()[-2000:]}" for i, entry in sorted(self.running.items()))

    def stop(self) -> None:
        for entry in (*self.running.values(), *self.others):
            if entry.process.exitcode is None:
                entry.kill()

    def charged(self) -> list[list[int]]:
        """The rounds in the ledgers of all sites."""
        return [charged_rounds(site) if begun(site) else [] for site in self.sites]

    def copy(self, i: int, folder: Path) -> Path:
        """The folder of a site on another machine, with a port of its own."""
        place = folder / self.paths[i].parent.name
        shutil.copytree(
            self.paths[i].parent, place, ignore=shutil.ignore_patterns("*.lock", "log.txt", "held")
        )
        for name in ("job.toml", "authority.pem"):
            shutil.copy(self.paths[i].parent.parent / name, folder)
        with (place / "site.toml").open("a") as file:
            file.write(f'listen = "tls/127.0.0.1:{free_ports(1)[0]}"\n')
        return place / "site.toml"

    def shorten_certificate(self, i: int) -> None:
        """A site has a certificate that ends tomorrow."""
        site, keys = self.sites[i], self.sites[i].file.keys
        request = signing_request(load_key(site.path(keys.private)), site.name, ["127.0.0.1"])
        short = Authority.load(site.folder.parent).sign(request, days=1)
        site.path(keys.certificate).write_bytes(pem(short))

    def renew_certificate(self, i: int) -> None:
        """A site has a new key, and a certificate for it."""
        site = self.sites[i]
        issue(Authority.load(site.folder.parent), site.folder.parent, site.name, ["127.0.0.1"])
        for suffix in ("key", "pem"):
            (site.folder.parent / f"{site.name}.{suffix}").replace(site.folder / f"{site.name}.{suffix}")


def lose_file(site: Site, *, empty: bool = False) -> None:
    """The file in a state folder is gone, or has nothing in it."""
    for file in site.state.glob("site.sqlite*"):
        file.unlink()
    if empty:
        site.database.touch()


def begun(site: Site) -> bool:
    """Whether a site has made its tables."""
    return _ask(site, "SELECT 1 FROM sqlite_master WHERE name = 'records'") != []


def greeted(site: Site) -> bool:
    """Whether a site has said hello."""
    return _ask(site, "SELECT 1 FROM records WHERE key = 'hello'") != []


def _ask(site: Site, query: str) -> list[Any]:
    if not site.database.exists():
        return []
    try:
        with closing(sqlite3.connect(f"file:{site.database}?mode=ro", uri=True)) as db:
            return db.execute(query).fetchall()
    except sqlite3.OperationalError:  # not begun, or just being made
        return []

"""A soak test: real sites under kills, halts, rollbacks, lost or copied states, cut links and many clients.

    python -m tools.soak --minutes 10 --seed 1 --out build/soak.json

It makes many short runs, one after the other, with real processes and mutual TLS on loopback. A run with a
seed must end with the same bytes as an undisturbed run. In runs with real noise, states are also restored,
deleted and copied; these runs must end with one model and valid signed statements. In a run without masks, no
round may be charged twice.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import socket
import sqlite3
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from support.linkcut import Proxy  # noqa: E402
from support.siteend import charged_rounds, check_end  # noqa: E402
from support.sitemasked import masked_network, model_in_process  # noqa: E402
from support.siteprocess import SiteProcess  # noqa: E402
from support.sitework import network  # noqa: E402
from taciturn.core.errors import ExitCode  # noqa: E402
from taciturn.sites.files.keys import DAY, Authority, load_key, pem, signing_request  # noqa: E402
from taciturn.sites.files.site import load_site  # noqa: E402
from taciturn.sites.rounds.results import verify_statement  # noqa: E402
from taciturn.sites.trial.rehearsal import free_ports  # noqa: E402
from taciturn.sites.wire.trust import load_trust  # noqa: E402

PATIENT = {"patience": 60.0}  # seconds to wait for a silent site: a third of LONGEST
REAL = PATIENT | {"output_noise": {"kind": "gaussian", "std": 1e-3}}
RICH = PATIENT | {
    "budget": {"epsilon": 50.0, "colluding": 1}
}  # enough budget for a site that lost its state and pays for another run
LONGEST = 180.0  # the most seconds for one run
SETTLE = 30.0  # seconds in which a site that cannot continue must stop


class Scene:
    """One run: its folders, processes and links, and the events that disturbed them."""

    def __init__(self, folder: Path, rng: random.Random, sites: int, rounds: int, kind: str) -> None:
        ring = [(i, (i + 1) % sites) for i in range(sites)]
        seed = None if kind.endswith("real") else rng.randrange(10**6)
        job: dict[str, Any] = {"rounds": rounds, "seed": seed}
        self.masked = kind.startswith("masked")
        if self.masked:
            self.paths = masked_network(folder / "net", ring, job=job, site=RICH)
        else:
            self.paths = network(folder / "net", ring, job=job, site=REAL)
        self.sites = [load_site(path) for path in self.paths]
        self.folder, self.rng, self.kind, self.events = folder, rng, kind, Counter[str]()
        self.authority = Authority.load(folder / "net")
        self.proxies = self._put_proxies()
        self.kept: dict[int, list[Path]] = defaultdict(list)
        self.stopped: Counter[str] = Counter()
        self.running = [SiteProcess(path, {"slow": 0.05}) for path in self.paths]

    def _put_proxies(self) -> list[Proxy]:
        """Put a proxy into each link, so that the link can be cut."""
        proxies = []
        for path, site in zip(self.paths, self.sites, strict=True):
            ends = {}
            for name, endpoint in site.dials().items():
                proxies.append(Proxy(int(endpoint.rsplit(":", 1)[1])))
                ends[name] = f"tls/127.0.0.1:{proxies[-1].port}"
            if ends:
                inside = ", ".join(f'{name} = "{end}"' for name, end in ends.items())
                with path.open("a") as file:
                    file.write(f"endpoints = {{ {inside} }}\n")
        self.sites = [load_site(path) for path in self.paths]
        return proxies

    # -- the events -------------------------------------------------------------------------------------

    def start(self, i: int) -> None:
        self.running[i] = SiteProcess(self.paths[i], {"slow": 0.05})

    def kill(self, i: int) -> None:
        """Kill the process with SIGKILL, and start it again."""
        self.running[i].kill()
        self.start(i)

    def halt(self, i: int) -> None:
        """Stop the process for a while with SIGSTOP."""
        pid = self.running[i].process.pid or 0
        os.kill(pid, signal.SIGSTOP)
        time.sleep(self.rng.uniform(0.2, 1.5))
        os.kill(pid, signal.SIGCONT)

    def cut(self, i: int) -> None:
        """Make a link silent for a while, or close its connections."""
        proxy = self.rng.choice(self.proxies)
        proxy.cut()
        if self.rng.random() < 0.5:
            proxy.hang_up()
        time.sleep(self.rng.uniform(0.1, 1.5))
        proxy.heal()

    def crowd(self, i: int) -> None:
        """Connect many clients without a key: some stay idle, some send random bytes."""
        port = int(str(self.sites[i].listens()).rsplit(":", 1)[1])
        callers = []
        for k in range(self.rng.randrange(10, 120)):
            caller = socket.socket()
            caller.settimeout(1.0)
            if caller.connect_ex(("127.0.0.1", port)) == 0 and k % 3 == 0:
                caller.send(self.rng.randbytes(200))
            callers.append(caller)
        time.sleep(self.rng.uniform(0.1, 1.0))
        for caller in callers:
            caller.close()

    def keep(self, i: int) -> None:
        """Make a backup of the state while the site is down."""
        self.running[i].kill()
        if self.sites[i].state.exists():
            copy = self.folder / f"kept-{i}-{len(self.kept[i])}"
            shutil.copytree(self.sites[i].state, copy)
            self.kept[i].append(copy)
        self.start(i)

    def restored(self, i: int) -> None:
        """Replace the state by an older backup."""
        if not self.kept[i]:
            self.keep(i)
            return
        self._replace_state(i, lambda state: shutil.copytree(self.rng.choice(self.kept[i]), state))

    def rob(self, i: int) -> None:
        """Delete the state."""
        self._replace_state(i, lambda state: None)

    def _replace_state(self, i: int, put: Callable[[Path], object]) -> None:
        self.running[i].kill()
        state, today = self.sites[i].state, self.folder / f"today-{i}"
        if not state.exists():
            self.start(i)
            return
        begins_again = self.masked or not self._charged(i)  # a masked run continues in a new attempt
        state.rename(today)
        put(state)
        self.start(i)
        if begins_again:
            shutil.rmtree(today)
            return
        self.stopped["state lost"] += self._ends(i) == ExitCode.STATE_LOST
        self.running[i].kill()
        shutil.rmtree(state, ignore_errors=True)  # the site continues with its newest state
        today.rename(state)
        self.start(i)

    def _charged(self, i: int) -> bool:
        """Whether the site was charged for a round. If it was not, it may begin with an empty state."""
        try:
            return bool(charged_rounds(self.sites[i]))
        except sqlite3.Error:  # the site was killed while it created the file
            return False

    def copy(self, i: int) -> None:
        """Run a second process on a copy of the site's folder, as if on another machine."""
        if not self.sites[i].state.exists():
            return
        place = self.folder / f"copy-{self.events['copy']}" / self.sites[i].name
        shutil.copytree(
            self.paths[i].parent,
            place,
            ignore=shutil.ignore_patterns("*.lock", "*.part", "*.json", "log.txt"),
        )
        shutil.copy(self.folder / "net" / "job.toml", place.parent)
        shutil.copy(self.folder / "net" / "authority.pem", place.parent)
        with (place / "site.toml").open("a") as file:
            file.write(f'listen = "tls/127.0.0.1:{free_ports(1)[0]}"\n')
        double = SiteProcess(place / "site.toml", {"slow": 0.05})
        end = time.monotonic() + 8.0
        while time.monotonic() < end and double.process.exitcode is None:
            time.sleep(0.1)
        if double.process.exitcode == ExitCode.STATE_LOST:
            self.stopped["copy"] += 1
        double.kill()

    def dead_certificate(self, i: int) -> None:
        """Give the site an expired certificate, then a new one."""
        self.running[i].kill()
        site = self.sites[i]
        request = signing_request(load_key(site.path(site.file.keys.private)), site.name, ["127.0.0.1"])
        path = site.path(site.file.keys.certificate)
        path.write_bytes(pem(self.authority.sign(request, days=-1, starts=-3 * DAY)))
        self.start(i)
        assert self.running[i].wait() == ExitCode.WRONG_FILES, "the site runs with an expired certificate"
        self.stopped["certificate"] += 1
        path.write_bytes(pem(self.authority.sign(request)))
        self.start(i)

    def _ends(self, i: int) -> int | None:
        """The exit code of a site that should stop; None if it continues."""
        end = time.monotonic() + SETTLE
        while time.monotonic() < end and self.running[i].process.exitcode is None:
            if all(other.process.exitcode == 0 for k, other in enumerate(self.running) if k != i):
                break
            time.sleep(0.1)
        return self.running[i].process.exitcode

    # -- the end ----------------------------------------------------------------------------------------

    def alive(self) -> bool:
        """Whether any site is still running; a site that stopped for a transient reason is restarted."""
        for i, entry in enumerate(self.running):
            code = entry.process.exitcode
            if code in (-signal.SIGKILL, ExitCode.FAILED, ExitCode.NEIGHBOUR, ExitCode.STATE_LOST):
                self.stopped[f"again after {code}"] += 1
                self.start(i)
        return any(entry.process.exitcode is None for entry in self.running)

    def stop(self) -> None:
        for entry in self.running:
            if entry.process.exitcode is None:
                entry.kill()
        for proxy in self.proxies:
            proxy.close()

    def outcome(self) -> str:
        """The result as text. Raises if a site failed, a round was charged twice, or the results differ."""
        codes = [entry.process.exitcode for entry in self.running]
        rounds = {site.name: charged_rounds(site) for site in self.sites}
        twice = [name for name, found in rounds.items() if len(found) > len(set(found))]
        proofs = {path.name for site in self.sites for path in site.state.glob("proof-*.json")}
        if set(codes) == {int(ExitCode.CONTRADICTION)} and proofs:
            return "contradiction, proved"
        assert set(codes) == {0}, codes
        assert self.masked or not twice, f"a round was charged twice: {twice}"
        for site in self.sites:
            verify_statement(site.state / "statement.json", load_trust(site.path(site.file.keys.authority)))
        assert len({(site.state / "model.json").read_bytes() for site in self.sites}) == 1
        if self.kind == "penalty seeded":
            check_end(self.paths)
        elif self.kind == "masked seeded":
            coef = json.loads((self.sites[0].state / "model.json").read_text())["coef"][0]
            assert coef == model_in_process(self.sites).tolist()
        return "same bytes" if self.kind.endswith("seeded") else "one model, true statements"


EVENTS: dict[str, int] = {
    "kill": 8,
    "halt": 4,
    "cut": 5,
    "crowd": 3,
    "keep": 3,
    "restored": 3,
    "rob": 1,
    "copy": 2,
    "dead_certificate": 2,
}
ONLY_REAL = ("keep", "restored", "rob", "copy")  # a run with a seed has no account to detect these events
KINDS = ("penalty seeded", "penalty real", "masked seeded", "masked real")


def soak_once(scene: Scene) -> str:
    """Disturb the run with events until it is over."""
    begun = time.monotonic()
    left_out = ONLY_REAL if scene.kind.endswith("seeded") else ("copy",) if scene.masked else ()
    chosen = {name: weight for name, weight in EVENTS.items() if name not in left_out}
    names, weights = list(chosen), list(chosen.values())
    while scene.alive():
        late = time.monotonic() - begun
        assert late < LONGEST, "the run does not end"
        time.sleep(scene.rng.uniform(0.1, 0.8))
        going = [i for i, entry in enumerate(scene.running) if entry.process.exitcode is None]
        everybody = len(going) == len(scene.running)  # sites that left cannot help a site that lost its state
        if everybody and late < LONGEST / 2:
            name = scene.rng.choices(names, weights)[0]
            scene.events[name] += 1
            getattr(scene, name)(scene.rng.choice(going))
    return scene.outcome()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--minutes", type=float, default=10.0, help="run for at least this many minutes")
    parser.add_argument("--events", type=int, default=200, help="cause at least this many events")
    parser.add_argument("--seed", type=int, default=1, help="seed of the events")
    parser.add_argument("--sites", type=int, default=5, help="number of sites in a run")
    parser.add_argument("--rounds", type=int, default=40, help="number of rounds in a run")
    parser.add_argument("--out", type=Path, help="write the counts to this JSON file")
    given = parser.parse_args()
    rng, begun = random.Random(given.seed), time.monotonic()
    events, stopped, outcomes, runs = Counter[str](), Counter[str](), Counter[str](), 0
    while time.monotonic() - begun < 60 * given.minutes or sum(events.values()) < given.events:
        kind = KINDS[runs % len(KINDS)]
        folder = Path(tempfile.mkdtemp(prefix="soak-"))
        scene = Scene(folder, rng, given.sites, given.rounds, kind)
        try:
            outcome = soak_once(scene)
        except BaseException:
            print(f"run {runs} ({kind}) in {folder}: {dict(scene.events)}", file=sys.stderr)
            raise
        finally:
            scene.stop()
        shutil.rmtree(folder, ignore_errors=True)
        runs += 1
        outcomes[f"{kind}: {outcome}"] += 1
        events += scene.events
        stopped += scene.stopped
        print(f"run {runs} ({kind}): {outcome}; {dict(scene.events)}", flush=True)
    facts = {
        "seed": given.seed,
        "sites": given.sites,
        "rounds": given.rounds,
        "minutes": round((time.monotonic() - begun) / 60, 1),
        "runs": runs,
        "events": dict(events),
        "total": sum(events.values()),
        "stops": dict(stopped),
        "outcomes": dict(outcomes),
    }
    print(json.dumps(facts, indent=1))
    if given.out is not None:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Tasks of workers and drivers in cluster tests: die at a chosen moment, or inspect the node."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

import taciturn as tt
from support.problems import make_sites
from taciturn.core.errors import DataError
from taciturn.objective import SourcedProblem
from taciturn.runtime import RayEngine
from taciturn.runtime.engine_selection import cpus_here

PP = tt.PenaltyPerturbation(tt.Geometric(0.5, 1.04), 0.5, tt.NormNoise(3.0), output_noise=tt.NormNoise(1e9))


def in_worker():
    """Whether this process runs an actor of a cluster."""
    ray = sys.modules.get("ray")
    return ray is not None and ray.is_initialized() and ray.get_runtime_context().get_actor_id() is not None


@dataclass(frozen=True)
class Trapped(tt.Logistic):
    """Logistic loss with a trap for the first worker that finds folder/trap while folder/armed is there.

    deed: "die" ends its process with kill -9, "raise" raises, "wait" waits until folder/hold is gone.
    """

    folder: str = ""
    deed: str = "die"
    armed: str = "checkpoint.json"

    def value(self, z):
        folder = Path(self.folder)
        if (folder / self.armed).exists() and in_worker():
            try:
                (folder / "trap").unlink()
            except FileNotFoundError:
                return super().value(z)
            with (folder / "sprung").open("a") as file:
                file.write(f"{os.getpid()}\n")
            self._do()
        return super().value(z)

    def _do(self):
        if self.deed == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.deed == "raise":
            raise RuntimeError("a fault in the loss")
        while (Path(self.folder) / "hold").exists():
            time.sleep(0.05)


def trapped_problem(folder, **trap):
    loss = Trapped(folder=str(folder), **trap)
    return tt.Problem(make_sites(), loss=loss, C=20.0, regularization=0.5)


def told_rows(folder, i):
    """Rows of site i; leaves a file that says which node and process loaded them."""
    import ray

    (Path(folder) / f"{i}-{ray.get_runtime_context().get_node_id()}-{os.getpid()}").touch()
    return make_sites()[i]


def wide_rows(i, rows=40_000, d=40):
    """Rows made where they are asked for, some 13 MB of them."""
    rng = np.random.default_rng(i)
    X = rng.standard_normal((rows, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.where(rng.random(rows) < 0.5, 1.0, -1.0)


def cores(_):
    """How many cores a job thinks it has."""
    return cpus_here()


def square(x, forbidden=None):
    if x == forbidden:
        raise DataError("three is odd")
    return x * x


def die_at(fatal, folder, x):
    """x squared, except that one x kills its process, and leaves a file each time."""
    if x == fatal:
        (Path(folder) / uuid.uuid4().hex).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return x * x


def processes(mark):
    """{pid: command line} of all processes that carry TACITURN_TEST_MARK=mark."""
    found = {}
    for folder in Path("/proc").iterdir():
        try:
            if (
                folder.name.isdigit()
                and f"TACITURN_TEST_MARK={mark}".encode() in (folder / "environ").read_bytes()
            ):
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:  # gone, or another user's
            continue
    return found


def environment(pid):
    """What a process was started with; nothing of one that has ended."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def listening(pids):
    """Local addresses, in the hexadecimal of /proc, that these processes listen on."""
    inodes, found = set(), set()
    for pid in pids:
        with suppress(FileNotFoundError):  # it has ended since
            for link in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(FileNotFoundError):  # closed since
                    inodes.add(os.readlink(link))
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                found.add(fields[1].split(":")[0])
    return found


def look_around(i, path):
    """Rows of a site; the first site also writes down what the cluster looks like from inside."""
    if i == 0:
        mark = os.environ["TACITURN_TEST_MARK"]
        pids = processes(mark)
        quiet = {pid for pid in pids if "RAY_USAGE_STATS_ENABLED=0" in environment(pid)}
        quiet |= {pid for pid, name in pids.items() if name.startswith("ray::")}  # the title overwrote it
        seen = {
            "processes": sorted(pids.values()),
            "addresses": sorted(listening(pids)),
            "loud": sorted(pids[pid] for pid in set(pids) - quiet if environment(pid)),
        }
        Path(path).write_text(json.dumps(seen))
    return make_sites()[i]


def run_until_killed(address, folder):
    """A driver that is killed while its workers wait in the middle of a round."""
    problem = trapped_problem(folder, deed="wait")
    engine = RayEngine(address, checkpoint=folder)
    tt.simulate(problem, tt.Graph.ring(5), PP, rounds=24, repeats=2, engine=engine)


def run_on_many_rows(address):
    """Print by how many bytes the driver grew when the workers loaded some 50 MB of rows."""
    peaks = []
    for rows in (100, 40_000):
        sources = [partial(wide_rows, i, rows) for i in range(4)]
        problem = SourcedProblem(sources, C=10.0, regularization=0.5)
        tt.simulate(problem, tt.Graph.ring(4), PP, rounds=2, engine=RayEngine(address))
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
    print(peaks[1] - peaks[0])


def run_alone(path):
    """A run on a cluster of its own, which one of its workers describes in a file."""
    sources = [partial(look_around, i, path) for i in range(5)]
    problem = SourcedProblem(sources, C=20.0, regularization=0.5)
    tt.simulate(problem, tt.Graph.ring(5), PP, rounds=2, engine=RayEngine(shards=2))
    print("initialised:", sys.modules["ray"].is_initialized())


def run_alone_until_killed(folder):
    """The same, until kill -9."""
    problem = trapped_problem(folder, deed="wait", armed="hold")
    tt.simulate(problem, tt.Graph.ring(5), PP, rounds=2, engine=RayEngine(shards=1))


if __name__ == "__main__":
    from taciturn.runtime.ray import worker

    worker.PATIENCE = 600.0  # on a busy machine they start slowly
    deed, *arguments = sys.argv[1:]
    globals()[deed](*arguments)

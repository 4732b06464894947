"""Section 1, the work: one logistic regression on Adult's training rows, split evenly over five sites."""

from __future__ import annotations

import re
import shutil
import sys
import time
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import taciturn as tt

from .. import federations
from ..pins import Environment, own_size
from ..rows import DEAL, SITES, adult, read_model, scores, write_rows
from ..running.sandbox import Process, Script, marks, per_round, run
from . import ours

ROUNDS = {"flwr": 4, "appfl": 3, "nvflare": 8}
_SOLVED = "each site solves its own problem completely (C = 500 on a fifth of the rows, which corresponds to "
_SOLVED += "C = 100 on all rows), so the first round gives the model; other rounds only test times and faults"
HOW = {
    "flwr": f"FedAvg with scikit-learn's Newton solver; {_SOLVED}",
    "appfl": f"FedAvg with scikit-learn's Newton solver; {_SOLVED}",
    "nvflare": "its recipe for logistic regression with full Newton steps (`damping_factor` 1); its "
    "controller adds 1 to the diagonal of the Hessian, which is large for rows of length 1, so our sites "
    "multiply gradient and Hessian by twenty; clients ask for work every 0.1 s (`task_request_interval`) "
    "instead of every 2 s; its server checks its tasks every 0.5 s, and the recipe cannot change that",
}
FEWEST = 20  # the smallest number of rounds that is timed
ADAPTERS = Path(__file__).parents[1] / "adapters"
FILES = {
    "flwr": ("flower/pyproject.toml", "flower/adult/*.py"),
    "appfl": ("appfl/server.py", "appfl/client.py", "appfl/parts.py", "appfl/*.yaml"),
    "nvflare": ("nvflare/job.py", "nvflare/client.py"),
    "disropt": ("disropt/*.py",),
    "diffprivlib": ("diffprivlib/*.py",),
}


def fresh(folder: Path) -> Path:
    """Make an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def lines_written(peer: str) -> int:
    """The number of lines of an adapter, without empty lines, comments, and lines that only measure."""
    paths = [path for pattern in FILES[peer] for path in sorted(ADAPTERS.glob(pattern))]
    return sum(count_lines(path.read_text(encoding="utf-8")) for path in paths)


def count_lines(text: str) -> int:
    """The number of lines that are neither empty nor comments."""
    plain = re.sub(r'^\s*"""(.|\n)*?"""\s*$', "", text, flags=re.MULTILINE)
    lines = [line.strip() for line in plain.splitlines()]
    return sum(1 for line in lines if line and not line.startswith("#") and "mark" not in line)


def script_of(peer: str, env: Environment, folder: Path, rows: list[Path] | None = None) -> Script:
    """The peer's processes for the work."""
    rounds, rows = ROUNDS[peer], rows or write_rows(folder.parent / "rows")
    makers: dict[str, Callable[[], Script]] = {
        "flwr": lambda: federations.flower(env, rows, folder, rounds),
        "appfl": lambda: federations.appfl(env, rows, folder, rounds),
        "nvflare": lambda: federations.nvflare(env, rows, folder, rounds),
    }
    return makers[peer]()


PORTS = {"flwr": federations.PORT, "appfl": 50051, "nvflare": 8002}


def probed(script: Script, port: int, *shown: Path) -> Script:
    """The same script, with a client that only tries to connect, with a certificate and key if given."""
    probe = str(Path(__file__).parents[1] / "running" / "probe.py")
    knock = Process("probe", (sys.executable, probe, str(port), *map(str, shown)), apart=True)
    return replace(script, processes=(knock, *script.processes))


def door(folder: Path) -> str:
    """The result of the connection attempt."""
    log = folder / "probe.log"
    return log.read_text(encoding="utf-8").strip() if log.exists() else ""


def measure(peer: str, env: Environment, base: Path) -> dict[str, Any]:
    """The model of a federated peer, and the measurements of its run."""
    folder = fresh(base / f"work-{peer}")
    measured = run(probed(script_of(peer, env, folder), PORTS[peer]), folder)
    if not measured["ended"]:
        raise RuntimeError(last_words(folder))
    model = read_model(folder / "model.json")
    facts = scores(model) | {"model": model.tolist(), "tls": door(folder)} | per_round(marks(folder), SITES)
    facts |= {"how": HOW[peer]} | (first(measured, folder) if "first round" in HOW[peer] else {})
    return facts | kept(measured) | {"install": env.megabytes, "lines": lines_written(peer)}


def measure_ours(method: str, base: Path) -> dict[str, Any]:
    """The same for our sites. If a plan has too few rounds to be timed, a run with more rounds is timed."""
    folder, measured = _run_ours(method, base)
    model, same = ours.read_sites(folder)
    if not same:
        raise RuntimeError("the five sites hold different models")
    texts = [folder / "net" / "job.toml", folder / "net" / "site-0" / "site.toml"]
    lines = sum(count_lines(path.read_text(encoding="utf-8")) for path in texts)
    rounds = tomllib.loads(texts[0].read_text(encoding="utf-8"))["rounds"]
    timed = folder if rounds >= FEWEST else _run_ours(method, base, FEWEST)[0]
    facts = scores(model) | per_round(marks(timed), SITES) | {"rounds": rounds}
    return facts | kept(measured) | {"install": own_size(), "lines": lines}


def _run_ours(method: str, base: Path, rounds: int | None = None) -> tuple[Path, dict[str, Any]]:
    """One run as planned, or planned for this number of rounds."""
    folder = fresh(base / f"work-ours-{method}{'' if rounds is None else '-timed'}")
    measured = run(ours.script(folder, method, rounds=rounds), folder)
    if not measured["ended"]:
        raise RuntimeError(last_words(folder))
    return folder, measured


def measure_open() -> dict[str, Any]:
    """taciturn without noise and with the peers' regulariser, in `simulate`: real sites always add noise."""
    task = adult()
    weight = SITES / (100.0 * len(task.y))  # the mean loss with 1 / (C n), C = 100
    problem = tt.Problem(task.hands(SITES, DEAL), C=1.0, regularization=weight)
    tried = []
    for penalty in (1e-5, 3e-5, 1e-4):
        begun, used = time.perf_counter(), time.process_time()
        found = tt.simulate(
            problem, tt.Graph.complete(SITES), tt.ADMM(penalty), rounds=100, tol=1e-7, seed=0, progress=False
        )
        spent = {"seconds": time.perf_counter() - begun, "cpu": time.process_time() - used}
        tried.append(scores(np.asarray(found.coef[0]).mean(axis=0)) | spent | {"rounds": 100})
    best = min(tried, key=lambda entry: entry["loss"])
    return best | {"round_cpu": best["cpu"] / 100, "round_seconds": best["seconds"] / 100}


def measure_pooled(env: Environment, base: Path) -> dict[str, Any]:
    """diffprivlib with almost no noise: one process that has all rows."""
    folder = fresh(base / "work-diffprivlib")
    measured = run(federations.diffprivlib(env, write_rows(base / "rows"), 1e6, 100.0, 1), folder)
    if not measured["ended"]:
        raise RuntimeError(last_words(folder))
    facts = scores(read_model(folder / "model.json")) | kept(measured)
    return facts | {"install": env.megabytes, "lines": lines_written("diffprivlib")}


def first(measured: dict[str, Any], folder: Path) -> dict[str, float]:
    """Seconds from the first process to the end of the first round, which gives the model."""
    noted = marks(folder)
    return {"settled": noted[0]["at"] - measured["begun"]} if noted else {}


def kept(measured: dict[str, Any]) -> dict[str, Any]:
    """The measurements of a run that the page shows."""
    return {name: measured[name] for name in ("seconds", "cpu", "largest", "processes")}


def last_words(folder: Path) -> str:
    """The reason why a run failed: the last error line of a log, without paths."""
    for log in sorted(folder.glob("*.log")):
        lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if "rror" in line]
        if lines:
            return re.sub(r"/\S+", "...", lines[-1])[:160]
    return "no model in time"

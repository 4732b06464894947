"""Run a script of processes without any network except loopback, and return the measurements."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

# No peer may send telemetry. The namespace would block it; these settings switch it off.
SILENT = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "WANDB_MODE": "disabled",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONUNBUFFERED": "1",
}


@dataclass(frozen=True)
class Process:
    """One process of a run.

    ready : the process is ready when this text is in its log, or, for port:N, when port N answers.
    late : the process starts this many seconds later.
    apart : the process only observes, so its CPU seconds do not count.
    """

    name: str
    argv: tuple[str, ...]
    ready: str | None = None
    late: float = 0.0
    apart: bool = False
    env: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Script:
    """The processes of a run. It ends when the file `model` exists and the processes in `waits_for` ended."""

    processes: tuple[Process, ...]
    timeout: float
    model: str = "model.json"
    waits_for: tuple[str, ...] = ()
    fails_with: str = ""
    disturb: dict[str, Any] | None = None
    env: dict[str, str] = field(default_factory=dict)


ENTER = ("unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
UP = ("sh", "-c", 'ip link set lo up && exec "$@"', "sh")


def refusal() -> str | None:
    """The reason why this machine cannot make a network namespace with only loopback; None if it can."""
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        return "needs `unshare` and `ip`, to be sure that nothing but loopback is reached"
    done = subprocess.run([*ENTER, *UP, "true"], capture_output=True, text=True, check=False)
    said = " ".join(done.stderr.split())[:120] or f"code {done.returncode}"
    return None if done.returncode == 0 else f"needs root, for a network namespace of its own ({said})"


def surroundings() -> dict[str, str]:
    """Our environment variables without proxies, which cannot be reached from the namespace."""
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}


def run(script: Script, folder: Path) -> dict[str, Any]:
    """Run the script in a new namespace; the folder keeps logs, marks and the model."""
    why = refusal()
    if why is not None:
        raise RuntimeError(why)
    (folder / "tmp").mkdir(parents=True, exist_ok=True)
    adapters = Path(__file__).parents[1] / "adapters"
    env = {
        "PEER_MARKS": str(folder / "marks.jsonl"),
        "PEER_FOLDER": str(folder),
        "PYTHONPATH": str(adapters),
        "HOME": str(folder),
        "TMPDIR": str(folder / "tmp"),
    }
    facts = asdict(script) | {"env": SILENT | env | script.env}
    (folder / "script.json").write_text(json.dumps(facts), encoding="utf-8")
    inside = [sys.executable, str(Path(__file__).with_name("alone.py")), str(folder / "script.json")]
    subprocess.run([*ENTER, *UP, *inside], check=True, timeout=script.timeout + 300, env=surroundings())
    measured = dict(json.loads((folder / "measured.json").read_text(encoding="utf-8")))
    if measured["undone"]:
        raise RuntimeError(f"the run was over before it was disturbed: {', '.join(measured['undone'])}")
    return measured


def marks(folder: Path) -> list[dict[str, float]]:
    """The records of the adapters after every round."""
    file = folder / "marks.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [json.loads(line) for line in lines]


def per_round(noted: list[dict[str, float]], sites: int) -> dict[str, float]:
    """Mean seconds, CPU seconds and bytes (per site) of a round, from the first mark to the last."""
    if len(noted) < 2 or noted[-1]["round"] <= noted[0]["round"]:
        return {}
    rounds = noted[-1]["round"] - noted[0]["round"]
    return {
        "round_seconds": (noted[-1]["at"] - noted[0]["at"]) / rounds,
        "round_cpu": (noted[-1]["cpu"] - noted[0]["cpu"]) / rounds,
        "round_bytes": (noted[-1]["bytes"] - noted[0]["bytes"]) / rounds / sites,
        "rounds": noted[-1]["round"],
    }

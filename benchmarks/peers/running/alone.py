"""Start, watch, disturb and stop processes inside a network namespace that has only loopback.

This program runs as process 1 of its own process namespace, so that no process outlives it. It reads
SCRIPT.json and writes measured.json, and uses only the standard library.
"""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "adapters"))
from marks import loopback

EVERY = 0.1


def main() -> None:
    """Run a script and write the measurements."""
    if os.getpid() != 1:
        sys.exit(
            "alone.py ends every process that it sees, so it must be process 1; start it with sandbox.py"
        )
    script_file = Path(sys.argv[1])
    play = Play(json.loads(script_file.read_text()), script_file.parent)
    play.run()
    script_file.with_name("measured.json").write_text(json.dumps(play.measured))


class Play:
    """Runs one script: processes in order, a condition for the end, and at most one disturbance."""

    def __init__(self, script: dict, folder: Path) -> None:
        self.script, self.folder = script, folder
        self.running: dict[str, subprocess.Popen] = {}
        self.memory: dict[int, float] = {}
        self.apart: dict[int, float] = {}  # processes that only observe, and their CPU seconds
        self.todo = self.plan(script["disturb"]) if script.get("disturb") else []
        self.measured: dict = {"ended": False, "events": []}

    def run(self) -> None:
        """Start all processes, wait for the end, and stop all processes."""
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        self.begun = self.measured["begun"] = time.time()
        for entry in self.script["processes"]:
            if not entry.get("late"):
                self.start(entry)
        self.wait()
        self.measured |= {"seconds": time.time() - self.begun, "bytes": loopback()}
        self.stop()
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.measured |= {"cpu": used.ru_utime + used.ru_stime - sum(self.apart.values())}
        self.measured |= {"undone": [f"{step['do']} {named(step)}" for step in self.todo]}
        self.measured |= {"largest": max(self.memory.values(), default=0.0), "processes": len(self.memory)}

    def start(self, entry: dict) -> None:
        """Start one process, with its output in a file. Wait until its port or output shows it is ready."""
        log = self.folder / f"{entry['name']}.log"
        environment = os.environ | self.script["env"] | entry.get("env", {})
        with log.open("ab") as out:
            started = self.running[entry["name"]] = subprocess.Popen(
                entry["argv"], stdout=out, stderr=out, env=environment, cwd=entry.get("cwd", self.folder)
            )
        if entry.get("apart"):
            self.apart[started.pid] = 0.0
            listed = self.folder / "apart.json"
            listed.with_suffix(".part").write_text(json.dumps(list(self.apart)))
            os.replace(listed.with_suffix(".part"), listed)  # atomic, because adapters read it at any time
        until = time.time() + 120
        while entry.get("ready") and time.time() < until:
            self.look()
            if is_ready(entry["ready"], log):
                return
            time.sleep(EVERY)

    def wait(self) -> None:
        """Wait until the model exists, or the process that makes it has ended, or time is up."""
        end = self.folder / self.script["model"]
        while time.time() - self.begun < self.script["timeout"]:
            self.look()
            if self.todo and self.due(self.todo[0]) and self.act(self.todo[0]):
                self.todo.pop(0)
            if end.exists() and all(
                self.running[name].poll() is not None for name in self.script.get("waits_for", ())
            ):
                self.measured["ended"] = True
                return
            last = self.running.get(self.script.get("fails_with", ""))
            if last is not None and last.poll() not in (None, 0):
                return
            time.sleep(EVERY)

    def plan(self, disturbance: dict) -> list[dict]:
        """The steps of a disturbance, each with the time when it is due."""
        entries = {entry["name"]: entry for entry in self.script["processes"]}
        if disturbance["kind"] == "kill":
            back = {"do": "start", "entry": entries[disturbance["again"]], "after": disturbance["back"]}
            return [{"do": "kill", "who": disturbance["who"], "round": disturbance["round"]}, back]
        return [{"do": "start", "entry": entry, "after": entry["late"]} for entry in self.late()]

    def late(self) -> list[dict]:
        """The steps that start the late processes."""
        return [entry for entry in self.script["processes"] if entry.get("late")]

    def due(self, step: dict) -> bool:
        """Whether a step is due: after this many rounds, or this many seconds after the last step."""
        if "round" in step:
            marks = self.folder / "marks.jsonl"
            return marks.exists() and len(marks.read_text().splitlines()) >= step["round"]
        since = self.measured["events"][-1]["at"] if self.measured["events"] else self.begun
        return time.time() - since >= step["after"]

    def act(self, step: dict) -> bool:
        """Start a process; or kill a process and all its children at once, as when a machine crashes.

        Return False if there is no process to kill.
        """
        if step["do"] == "kill":
            who = self.running.get(step["who"])
            if who is None:
                doomed = at_home(step["who"])
            else:
                doomed = family(who.pid) if who.poll() is None else []
            if not doomed:
                return False
            # stop all of them first, so that none can report the end of another
            for kind in (signal.SIGSTOP, signal.SIGKILL):
                for pid in doomed:
                    send(pid, kind)
        else:
            self.start(step["entry"])
        self.measured["events"].append({"do": step["do"], "who": named(step), "at": time.time()})
        return True

    def look(self) -> None:
        """Record the largest memory of each process. Orphans that have ended are reaped, as init does."""
        ours = {process.pid for process in self.running.values()}
        for pid in others():
            try:
                status = Path(f"/proc/{pid}/status").read_text()
                if pid not in ours and "\nState:\tZ" in status and "\nPPid:\t1\n" in status:
                    os.waitpid(pid, os.WNOHANG)
            except OSError:
                continue
            peak = [line for line in status.splitlines() if line.startswith("VmHWM")]
            if peak and pid not in self.apart:
                self.memory[pid] = max(self.memory.get(pid, 0.0), int(peak[0].split()[1]) / 1e3)

    def stop(self) -> None:
        """End all processes and wait for them: their usage is counted after their end."""
        for kind in (signal.SIGTERM, signal.SIGKILL):
            for pid in others():
                send(pid, kind)
            until = time.time() + 3
            while others() and time.time() < until:
                try:
                    pid, _, used = os.wait4(-1, os.WNOHANG)
                except ChildProcessError:
                    break
                if pid == 0:
                    time.sleep(0.05)
                elif pid in self.apart:
                    self.apart[pid] = used.ru_utime + used.ru_stime


def named(step: dict) -> str:
    """The name of the process that a step is about."""
    return str(step.get("who") or step["entry"]["name"])


def send(pid: int, kind: signal.Signals) -> None:
    """Send a signal to a process, which may have ended already."""
    try:
        os.kill(pid, kind)
    except ProcessLookupError:
        pass


def is_ready(sign: str, log: Path) -> bool:
    """Whether a port answers, or a text is in the log."""
    if sign.startswith("port:"):
        with socket.socket() as attempt:
            return attempt.connect_ex(("127.0.0.1", int(sign[5:]))) == 0
    return sign.encode() in log.read_bytes()


def others() -> list[int]:
    """All other processes of this namespace."""
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit() and path.name != "1"]


def at_home(name: str) -> list[int]:
    """The processes that were started in a folder of this name, or have it in their command line."""
    found = []
    for pid in others():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if any(f"/{name}/" in f"{word}/" for word in words):
            found.append(pid)
    return found


def family(pid: int) -> list[int]:
    """A process and all processes that it started; the process itself is last."""
    parents = {}
    for other in others():
        try:
            parents[other] = int(Path(f"/proc/{other}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found[::-1]


if __name__ == "__main__":
    main()

"""`python -m benchmarks.peers`: its output, the results that it reuses, and the results that it ignores."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.peers import __main__ as command
from benchmarks.peers import pins
from benchmarks.peers.page import page
from benchmarks.peers.results import Finding, begin, end, obtain, read_all, read_one, state_of
from benchmarks.peers.running import alone, sandbox
from benchmarks.peers.sections import work
from benchmarks.peers.whole import lacking
from benchmarks.peers.words import EXPECTED

ROOT = Path(__file__).resolve().parents[2]
KEPT = [Finding(**entry) for entry in json.loads((ROOT / "docs" / "compared.json").read_text("utf-8"))]
PEERS = [peer for peer in command.expected() if peer != "taciturn"]


def failed(peers, error="RuntimeError: no"):
    return [replace(entry, result=None, error=error) if entry.peer in peers else entry for entry in KEPT]


def test_the_sections_are_those_that_the_page_expects():
    assert {peer: set(sections) for peer, sections in command.expected().items() if peer != "taciturn"} == {
        peer: set(sections) for peer, sections in EXPECTED.items()
    }


def test_a_page_is_complete_when_all_peers_were_tried_and_one_ran():
    def lacks(findings):
        return lacking(findings, command.expected())

    assert lacks(KEPT) == [] and lacks(failed(["flwr"])) == []
    assert lacks(failed(PEERS)) == ["none of the peers ran"]
    assert lacks(failed(["taciturn"])) == ["nothing of taciturn ran"]
    two = [entry for entry in KEPT if entry.peer in ("taciturn", "diffprivlib")]
    assert "flwr has no work, privacy, kill, stranger, late, budget, guarded" in lacks(two)
    mixed = [replace(entry, commit="abc") if entry.section == "workopen" else entry for entry in KEPT]
    assert lacks(mixed) == ["the results of taciturn are of several versions"]


def test_docs_are_not_overwritten_by_an_incomplete_run(tmp_path, monkeypatch, capsys):
    docs, results = (tmp_path / name for name in ("docs", "results"))
    monkeypatch.setattr(command, "DOCS", docs)
    command.publish([entry for entry in KEPT if entry.peer != "appfl"], docs, results)
    said = capsys.readouterr().out.splitlines()
    assert not docs.exists() and (results / "compared.md").exists()
    assert len(said) == 2 and "appfl has no work" in said[0] and said[1] == str(results / "compared.md")
    command.publish(KEPT, docs, results)
    assert (docs / "compared.json").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [(["--section", "wrok"], "invalid choice: 'wrok'"), (["--only", "flwr"], "needs root, for a network")],
)
def test_impossible_requests_are_refused_before_anything_is_installed(
    arguments, told, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(sandbox, "ENTER", ("false",))
    monkeypatch.setattr(sandbox.shutil, "which", str)
    monkeypatch.setattr(command, "environment", lambda name: pytest.fail("it was installed"))
    monkeypatch.setattr(sys, "argv", ["peers", *arguments, "--results", str(tmp_path / "results")])
    with pytest.raises(SystemExit) as stopped:
        command.main()
    assert told in f"{stopped.value.code}{capsys.readouterr().err}" and not (tmp_path / "results").exists()


def test_process_killer_refuses_to_start_outside_its_namespace(tmp_path):
    started = [sys.executable, alone.__file__, str(tmp_path / "none.json")]
    done = subprocess.run(started, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "must be process 1" in done.stderr and len(done.stderr.splitlines()) == 1


def test_results_of_another_version_or_commit_are_measured_again(tmp_path):
    def ask(peer, version, commit, result):
        return obtain(tmp_path, peer, "work", version, lambda: result, commit=commit).result

    assert [ask("flwr", "1", "a", 1), ask("flwr", "1", "b", 2), ask("flwr", "2", "b", 3)] == [1, 1, 3]
    assert [ask("taciturn", "1", "a", 1), ask("taciturn", "1", "a", 2), ask("taciturn", "1", "b", 3)] == [
        1,
        1,
        3,
    ]
    assert read_one(tmp_path, "flwr", "work", "2") == 3
    with pytest.raises(RuntimeError, match="no result to compare with"):
        read_one(tmp_path, "flwr", "work", "1")


def test_result_is_kept_when_its_environment_cannot_be_rebuilt(tmp_path):
    obtain(tmp_path, "flwr", "work", "1", lambda: 1)
    assert obtain(tmp_path, "flwr", "work", "1", dict, "no index").result == 1
    assert obtain(tmp_path, "flwr", "kill", "1", dict, "no index").version == ""


def test_a_truncated_file_counts_as_missing(tmp_path):
    begin(tmp_path, "1", "a")
    obtain(tmp_path, "flwr", "work", "1", lambda: 1)
    for path in tmp_path.glob("*.json"):
        path.write_text(path.read_text("utf-8")[:40], "utf-8")
    assert read_all(tmp_path) == []
    end(tmp_path)
    begin(tmp_path, "1", "b")
    assert obtain(tmp_path, "flwr", "work", "1", lambda: 2).result == 2
    run, work_ = sorted(read_all(tmp_path), key=lambda entry: entry.section)
    assert run.result["calls"] == 2 and run.commit == "b" and work_.result == 2  # not one run any more
    assert {path.suffix for path in tmp_path.iterdir()} == {".json"}


def test_the_commit_says_whether_the_code_is_what_was_committed(tmp_path):
    assert state_of(tmp_path / "nowhere") == ""

    def git(*words):
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", "-C", str(tmp_path), *who, *words], check=True, capture_output=True)

    git("init")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").touch()
    git("add", ".")
    git("commit", "-m", "a")
    clean = state_of(tmp_path)
    (tmp_path / "README.md").touch()  # which the command itself writes
    assert len(clean) == 12 and state_of(tmp_path) == clean
    (tmp_path / "src" / "b.py").touch()
    assert state_of(tmp_path) == f"{clean}+changes"


def test_results_of_other_packages_are_forgotten(tmp_path):
    for result, packages in (
        (1, ["flwr==1", "numpy==1"]),
        (2, ["flwr==1", "numpy==1"]),
        (3, ["flwr==1", "numpy==2"]),
    ):
        command.note_packages(tmp_path, "flwr", "1", packages, "")
        found = obtain(tmp_path, "flwr", "work", "1", lambda result=result: result)
        assert found.result == (3 if result == 3 else 1)
    (noted,) = [entry for entry in read_all(tmp_path) if entry.section == "packages"]
    assert noted.result == packages
    assert "numpy==2" not in page({("flwr", "packages"): noted, ("flwr", "work"): KEPT[0]})


class Installer:
    """venv and pip as far as `environment` sees them; `python` is a file that is there or not."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.made, self.works = folder, 0, False

    def __call__(self, words: list[str]) -> str:
        if "venv" in words:
            assert "--clear" in words
            (self.folder / "bin").mkdir(parents=True, exist_ok=True)
            self.made, self.works = self.made + 1, True
        elif not self.works:
            raise FileNotFoundError(2, "No such file or directory", words[0])
        return "disropt==0.1.9\nnumpy==1.0" if "list" in words else ""


@pytest.fixture
def installer(tmp_path, monkeypatch):
    monkeypatch.setenv("TACITURN_PEERS", str(tmp_path))
    monkeypatch.setattr(pins.shutil, "which", str)
    found = Installer(tmp_path / "disropt")
    monkeypatch.setattr(pins, "_said", found)
    return found


def test_an_environment_is_rebuilt_when_its_pin_or_python_changed_or_it_is_broken(installer, monkeypatch):
    for made in (1, 1):
        env = pins.environment("disropt")
        assert installer.made == made and env.error is None and env.version == "0.1.9"
        assert env.packages == ("disropt==0.1.9", "numpy==1.0")
    installer.works = False
    assert pins.environment("disropt").error is None and installer.made == 2
    monkeypatch.setattr(pins.platform, "python_version", lambda: "3.99.0")
    assert pins.environment("disropt").error is None and installer.made == 3
    pin = pins.PINS["disropt"]
    monkeypatch.setitem(pins.PINS, "disropt", replace(pin, requirements=(*pin.requirements, "numpy==1.0")))
    assert pins.environment("disropt").error is None and installer.made == 4
    (installer.folder / "made.txt").unlink()  # stopped while it was made
    assert pins.environment("disropt").error is None and installer.made == 5


@pytest.mark.parametrize(
    ("python", "error"),
    [("/no/python", "FileNotFoundError: No such file or directory"), ("false", "no reason")],
)
def test_an_environment_that_cannot_be_made_is_a_peer_that_is_skipped(python, error, tmp_path, monkeypatch):
    monkeypatch.setenv("TACITURN_PEERS", str(tmp_path))
    monkeypatch.setattr(pins.sys, "executable", python)
    env = pins.environment("diffprivlib")
    assert env.python is None and env.error is not None and env.error.startswith(error)


def test_installer_output_is_shown_without_paths():
    assert pins.brief("one\n/x/bin/python: No module named pip\n\n") == "... No module named pip"


def test_skipped_peer_is_listed_once_in_the_table_and_once_below():
    error = "No matching distribution found for appfl==1.12.0 for this Python"
    gone = [replace(entry, version="") for entry in failed(["appfl"], error) if entry.peer == "appfl"]
    text = page({(entry.peer, entry.section): entry for entry in [*KEPT, *gone]})
    assert text.count("not installed: No matching distribution ...") == 1
    assert text.count(error) == 1 and f"- APPFL: not installed: {error}" in text


def test_what_a_user_writes_for_a_peer_is_short():
    assert all(0 < work.lines_written(peer) < 150 for peer in work.FILES)


SPIN = "import time\nuntil = time.process_time() + {}\nwhile time.process_time() < until: pass\n"


def played(script, folder):
    why = sandbox.refusal()
    if why is not None:
        pytest.skip(why)
    return sandbox.run(script, folder)


def test_observing_processes_do_not_count_as_parties(tmp_path):
    looks = SPIN.format(1.5) + "held = bytearray(150_000_000)\nopen('seen', 'w')\ntime.sleep(600)"
    works = (
        "import os, time\nfrom marks import mark\n"
        "while not os.path.exists('seen'): time.sleep(0.01)\nmark(1)\n"
        + SPIN.format(0.1)
        + "mark(2)\nopen('model.json', 'w')"
    )
    both = (
        sandbox.Process("looks", (sys.executable, "-c", looks), apart=True),
        sandbox.Process("works", (sys.executable, "-c", works)),
    )
    measured = played(sandbox.Script(both, timeout=120.0, waits_for=("works",)), tmp_path)
    noted = sandbox.marks(tmp_path)
    assert measured["processes"] == 1 and measured["largest"] < 100 and 0.1 <= measured["cpu"] < 1.2
    assert 0.08 <= noted[1]["cpu"] - noted[0]["cpu"] and noted[1]["cpu"] < 1.2


def test_undisturbed_run_does_not_count_as_survival(tmp_path):
    ends = sandbox.Process("site", (sys.executable, "-c", "open('model.json', 'w')"))
    kill = {"kind": "kill", "who": "site", "round": 1, "back": 1.0, "again": "site"}
    script = sandbox.Script((ends,), timeout=60.0, disturb=kill)
    with pytest.raises(RuntimeError, match="before it was disturbed: kill site, start site"):
        played(script, tmp_path / "unmarked")
    later = (
        "import os, time\nfrom marks import mark\nwhile not os.path.exists('model.json'): time.sleep(0.01)\n"
    )
    later += "time.sleep(1)\nmark(1)\ntime.sleep(1)"
    other = sandbox.Process("other", (sys.executable, "-c", later))  # a round is done: nobody is left to kill
    with pytest.raises(RuntimeError, match="before it was disturbed: kill site, start site"):
        played(replace(script, processes=(ends, other), waits_for=("other",)), tmp_path / "gone")


def test_peers_see_no_proxy_and_leave_nothing_in_the_machines_tmp(tmp_path, monkeypatch):
    for name in ("http_proxy", "HTTPS_PROXY", "all_proxy", "grpc_proxy"):
        monkeypatch.setenv(name, "http://proxy.example")
    code = (
        "import json, os, tempfile\n"
        "out = {'tmp': tempfile.mkdtemp(), 'proxies': [n for n in os.environ if 'proxy' in n.lower()]}\n"
        "open('model.json', 'w').write(json.dumps(out))"
    )
    look = sandbox.Process("look", (sys.executable, "-c", code))
    played(sandbox.Script((look,), timeout=60.0, waits_for=("look",)), tmp_path)
    seen = json.loads((tmp_path / "model.json").read_text("utf-8"))
    assert Path(seen["tmp"]).parent == tmp_path / "tmp" and seen["proxies"] == []

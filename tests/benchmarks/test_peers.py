"""The comparison with other packages: its page is made from its results, and one cheap peer runs for real."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import uuid
from functools import partial
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.peers import federations
from benchmarks.peers.cells import after_kill, came_late, outcome, stranger, stranger_at_locks
from benchmarks.peers.page import page, write_page
from benchmarks.peers.pins import PINS, brief, environment
from benchmarks.peers.results import Finding, begin, end, forget, obtain, read_all
from benchmarks.peers.running import alone, sandbox
from benchmarks.peers.sections import work
from benchmarks.peers.sections.accounting import gaussian_epsilon, gaussian_noise
from benchmarks.peers.sections.privacy import CENTRAL, LOCAL, OPACUS

ADAPTERS = federations.ADAPTERS
WORK = {
    "rounds": 5,
    "accuracy": 0.84567,
    "loss": 0.3279,
    "round_seconds": 9.31,
    "round_cpu": 7.77,
    "seconds": 123.4,
    "cpu": 61.2,
    "round_bytes": 54321.0,
    "largest": 137.6,
    "processes": 17,
    "install": 455.0,
    "lines": 87,
}
PLAIN = {"ended": True, "seconds": 50.0, "tls": "no TLS"}
FAULTS = {
    "plain": PLAIN,
    "kill": {"ended": True, "seconds": 96.0, "gap": 0.25, "same": False},
    "late": {"ended": True, "seconds": 70.0, "gap": 0.0, "same": True},
    "stranger": {"ended": True, "seconds": 55.0, "gap": 0.75, "same": False},
}
PRIVATE = [
    {"contender": "central noise", "trusts": "the server", "prints": 12.301, "unit": "a client, whole run"}
    | {"whole_run": 30.01, "accuracy": 0.9, "loss": 0.5, "loss_std": 0.1},
    {"contender": "local noise", "trusts": "nobody", "prints": None, "unit": "nothing"}
    | {"whole_run": 1.0, "accuracy": 0.8123, "loss": 0.4, "loss_std": 0.01},
]


def found(peer, section, result=None, error=None):
    return Finding(peer, section, "1.41.0", "2026-11-16", 2.5, result, error, cores=7)


def as_map(*entries):
    return {(entry.peer, entry.section): entry for entry in entries}


FIXED = as_map(
    found("flwr", "work", WORK | {"tls": "no TLS"}),
    *(found("flwr", what, FAULTS[what]) for what in ("kill", "late", "stranger")),
    found("flwr", "privacy", PRIVATE),
    found("disropt", "solving", error="needs the command mpirun, which is not installed"),
)


def test_the_page_shows_what_was_found_and_the_version():
    text = page(FIXED)
    head, first = text.split("\n\n")[2].splitlines()[0], text.split("\n\n")[4]
    assert "Flower 1.41.0" in head and "2026-11-16" in first and "7 cores" in first
    for shown in ("0.846", "9.3", "7.8", "123", "54,321", "455", "87"):
        assert shown in text
    assert "needs the command mpirun" in text
    assert "- NVIDIA FLARE, work, kill, stranger, late, budget, strict: not measured yet" in text


def test_the_page_says_when_it_was_made_and_what_else_the_machine_did():
    facts = {"begun": "2026-11-16 16:31", "ended": "2026-11-16 17:14", "calls": 1, "load": 0.31}
    run = found("taciturn", "run", facts | {"python": "Linux, Python 3.11.2"})
    text = page(FIXED | as_map(run)).split("\n\n")[4]
    assert "one run, begun 2026-11-16 16:31 and ended 2026-11-16 17:14 UTC" in text
    assert "a load of 0.3 at the start" in text and "Flower 1.41.0" in text and "other work" not in text
    again = found("taciturn", "run", facts | {"python": "", "calls": 2, "load": 3.0})
    text = page(FIXED | as_map(again))
    assert "2 runs" in text and "due to other work" in text


def test_models_over_the_budget_do_not_count_as_the_best_private_model():
    """0.9 at epsilon 30 does not count."""
    line = next(line for line in page(FIXED).splitlines() if line.startswith("| best accuracy"))
    assert "| 0.812 |" in line and "0.900" not in line


@pytest.mark.parametrize(("last", "sure"), [(0.395, True), (0.41, True), (0.35, False)])
def test_best_result_is_final_when_more_rounds_gain_less_than_seeds_vary(last, sure):
    edge = PRIVATE[1] | {"setting": "300 rounds, step 8", "ladder": [[100, 0.4], [300, last]]}
    text = page(as_map(found("flwr", "privacy", [edge])))
    assert ("at least 0.812" in text) is not sure and "300 rounds, step 8 (best of 100, 300)" in text
    unknown = PRIVATE[1] | {"setting": "300 rounds, step 8"}
    assert "at least 0.812" in page(as_map(found("flwr", "privacy", [unknown])))


def test_grid_of_step_sizes_has_a_middle():
    """A best at the end of a grid would say nothing."""
    for grid in (CENTRAL, LOCAL, OPACUS):
        assert len(grid) > 1 and all(len(steps) == 3 for steps in grid.values())


def test_epsilon_of_a_peer_is_rounded_up():
    assert "| 12.4 | a client, whole run | 30.1 |" in page(FIXED)


def test_a_disturbed_run_is_compared_with_the_undisturbed_one():
    assert outcome(FAULTS["kill"], PLAIN) == "another model (by 25%), 46 s more"
    assert outcome(FAULTS["late"], PLAIN) == "same model, bit for bit, 20 s more"
    assert outcome(FAULTS["late"] | {"gap": 1e-5}, PLAIN) == "same model, 20 s more"
    assert outcome({"ended": False, "seconds": 240.2, "patience": 240.0}, PLAIN) == "no end within 240 s"
    assert outcome({"ended": False, "seconds": 90.0}, PLAIN) == "the run fails"
    assert stranger(FAULTS["stranger"]) == "accepted (model moved by 75%)"
    assert stranger({"ended": True, "same": True, "gap": 0.0}) == "rejected"
    at_door = {"ended": True, "same": True, "gap": 0.0, "door": "TLS, refuses this certificate"}
    assert stranger(at_door) == "rejected"
    let_in = at_door | {"door": "TLS, lets this certificate in"}
    assert stranger(let_in) == "accepted, but does not affect the model"
    late = FAULTS["late"] | {"since": 8.13}
    assert came_late({"late": late, "plain": PLAIN}) == "same model, bit for bit, 8.1 s after it arrived"
    assert came_late({"late": {"ended": False, "seconds": 90.0}, "plain": PLAIN}) == "the run fails"


def test_settings_that_were_changed_for_a_fault_are_shown():
    kill = FAULTS["kill"] | {"set": "with four replies enough", "status": "ABNORMAL"}
    strict = {"ended": False, "seconds": 150.1, "patience": 150.0}
    told = after_kill({"plain": PLAIN, "kill": kill, "strict": strict})
    assert told == (
        "another model (by 25%), 46 s more, with four replies enough; the package calls the job ABNORMAL. "
        "With the recipe unchanged: no end within 150 s"
    )
    assert after_kill(FAULTS) == "another model (by 25%), 46 s more"
    locked = FAULTS | {"guarded": {"ended": True, "same": True, "gap": 0.0}}
    assert stranger_at_locks(locked) == "accepted (model moved by 75%); with authentication enabled: rejected"


def test_security_findings_are_shown_as_measured():
    guarded = {
        "ended": True,
        "same": True,
        "gap": 0.0,
        "seconds": 60.0,
        "tls": "TLS, no certificate asked for",
    }
    more = as_map(
        found("flwr", "guarded", guarded | {"bare": "does not start"}),
        found("flwr", "budget", {"counter": 0.5001, "whole": 0.7501}),
    )
    text = page(FIXED | more)
    assert "| an unauthenticated client, authentication enabled | rejected |" in text
    assert (
        "| TLS, no certificate asked for; without `--insecure` and certificates it does not start |" in text
    )
    assert "| its counter of epsilon, killed and started again | 0.501 of 0.751 |" in text


def test_one_round_methods_have_their_model_after_the_first_round():
    line = "| seconds to the model |"
    assert f"{line} 123 |" in page(FIXED).replace("| – |", "|")
    early = as_map(found("flwr", "work", WORK | {"settled": 20.4}))
    assert f"{line} 20 |" in page(FIXED | early).replace("| – |", "|")


def test_findings_are_kept_and_failures_are_measured_again(tmp_path):
    calls = []

    def measure():
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("no model in /tmp/secret/place")
        return {"accuracy": 0.5}

    first = obtain(tmp_path, "flwr", "work", "1", measure)
    assert first.error == "RuntimeError: no model in ..." and first.result is None
    for _ in range(2):
        assert obtain(tmp_path, "flwr", "work", "1", measure).result == {"accuracy": 0.5}
    assert len(calls) == 2
    assert [entry.peer for entry in read_all(tmp_path)] == ["flwr"]


def test_one_section_can_be_dropped_and_the_others_kept(tmp_path):
    begin(tmp_path, "1")
    for section in ("work", "kill"):
        obtain(tmp_path, "flwr", section, "1", dict)
    forget(tmp_path, "flwr", "kill")
    assert {(entry.peer, entry.section) for entry in read_all(tmp_path)} == {
        ("flwr", "work"),
        ("taciturn", "run"),
    }
    forget(tmp_path, "flwr", None)
    forget(tmp_path, "taciturn", None)
    assert [entry.section for entry in read_all(tmp_path)] == ["run"]


def test_second_call_is_counted_and_the_load_of_the_first_is_kept(tmp_path):
    begin(tmp_path, "1")
    first = read_all(tmp_path)[0]
    begin(tmp_path, "1")
    end(tmp_path)
    last = read_all(tmp_path)[0]
    assert first.result["calls"] == 1 and first.result["ended"] is None
    assert last.result["calls"] == 2 and last.result["ended"] and last.result["load"] == first.load


def test_failed_disturbance_is_shown_as_failed():
    broken = found("flwr", "kill", error="RuntimeError: no port")
    text = page(FIXED | as_map(broken))
    assert (
        "| kill -9, restart | failed, see below |" in text and "- Flower, kill: RuntimeError: no port" in text
    )


def test_installer_errors_do_not_show_the_package_index():
    text = (
        "WARNING: x\nERROR: No match for x>=2 (from versions: 1, 2) at https://index.example/simple\nERROR: y"
    )
    assert brief(text) == "No match for x>=2  at an index"


def test_every_adapter_is_short_and_every_pin_exact():
    for folder in (path for path in ADAPTERS.iterdir() if path.is_dir() and path.name != "__pycache__"):
        for path in folder.rglob("*.py"):
            assert len(path.read_text(encoding="utf-8").splitlines()) < 150, path
    for pin in PINS.values():
        assert all("==" in entry for entry in pin.requirements)


def test_no_adapter_names_another_machine():
    files = [path for path in ADAPTERS.rglob("*") if path.suffix in (".py", ".yaml", ".toml")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in (*files, Path(federations.__file__)))
    assert len(files) > 10 and not re.search(r"\w+://", text)
    assert set(re.findall(r"[\w.]+(?=:\d{4,5}\b)", text)) == {"localhost", "port"}  # port:50051 is a sign
    assert set(re.findall(r"\b\d+\.\d+\.\d+\.\d+\b", text)) == {"127.0.0.1"}


def test_lines_that_only_measure_do_not_count():
    text = '"""Doc."""\n\nfrom marks import mark\n# a comment\nx = 1\nmark(x)\n'
    assert work.count_lines(text) == 1


def test_rounds_are_counted_between_the_first_mark_and_the_last():
    noted = [
        {"round": 1, "at": 10.0, "bytes": 100, "cpu": 3.0},
        {"round": 5, "at": 18.0, "bytes": 4100, "cpu": 5.0},
    ]
    expected = {"round_seconds": 2.0, "round_cpu": 0.5, "round_bytes": 200.0, "rounds": 5}
    assert sandbox.per_round(noted, 5) == expected
    assert sandbox.per_round(noted[:1], 5) == {}


def test_the_noise_that_peers_are_given_is_just_enough():
    for releases in (1, 30):
        std = gaussian_noise(1.0, releases, 1e-5)
        assert 0.999 < gaussian_epsilon(1 / std, releases, 1e-5) <= 1.0
        assert gaussian_epsilon(1 / (0.9 * std), releases, 1e-5) > 1.05


def test_sandboxed_process_reaches_only_loopback(tmp_path):
    """A process in the sandbox cannot leave it, and its telemetry is off."""
    _need_a_namespace()
    code = (
        "import json, os, socket; s = socket.socket(); s.settimeout(2)\n"
        "out = {'code': s.connect_ex(('192.0.2.1', 80)), 'env': os.environ['FLWR_TELEMETRY_ENABLED'],"
        " 'links': [name for _, name in socket.if_nameindex()]}\n"
        "open('model.json', 'w').write(json.dumps(out))"
    )
    process = sandbox.Process("try", (shutil.which("python3") or "python3", "-c", code))
    measured = sandbox.run(sandbox.Script((process,), timeout=300.0, waits_for=("try",)), tmp_path)
    seen = json.loads((tmp_path / "model.json").read_text())
    assert measured["ended"] and seen["code"] != 0 and seen["env"] == "0" and seen["links"] == ["lo"]


def test_killing_a_party_ends_all_its_processes_and_no_others():
    """A surviving parent process would notify the others at once, which a dead machine does not do."""
    wait = [sys.executable, "-c", "input(1)"]  # the 1 shows that the process runs, with its command line
    name = f"site-{uuid.uuid4()}"  # of no other process on this machine
    folders = ([f"/x/{name}"], ["-m", f"/x/{name}/startup"], [f"/x/{name}0"], [name])
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    parties = [subprocess.Popen(wait + words, **pipes) for words in folders]
    try:
        assert [party.stdout.read(1) for party in parties] == [b"1"] * 4
        doomed = set(alone.at_home(name))
        assert doomed == {parties[0].pid, parties[1].pid}
    finally:
        for party in parties:
            party.communicate(b"\n")


def _need_a_namespace() -> None:
    try:
        done = subprocess.run(["unshare", "--net", "--pid", "--fork", "--mount-proc", "true"], check=False)
    except FileNotFoundError:
        pytest.skip("needs `unshare`")
    if done.returncode != 0 or shutil.which("ip") is None:
        pytest.skip("needs root, for a network namespace, and `ip`")


def test_one_peer_from_end_to_end(tmp_path):
    """diffprivlib in its own environment, on all of Adult; the page is made from what it gave."""
    _need_a_namespace()
    env = environment("diffprivlib")
    if env.python is None:
        pytest.skip(f"diffprivlib cannot be installed: {env.error}")
    kept = tmp_path / "results"
    finding = obtain(
        kept, "diffprivlib", "work", env.version, partial(work.measure_pooled, env, tmp_path / "runs")
    )
    assert finding.error is None, finding.error
    result = finding.result
    assert finding.version == "0.6.6" and 0.84 < result["accuracy"] < 0.85 and result["loss"] < 0.34
    text = write_page(read_all(kept), tmp_path / "docs").read_text(encoding="utf-8")
    assert "diffprivlib 0.6.6" in text and f"{result['accuracy']:.4f}" in text
    assert str(tmp_path) not in text + (tmp_path / "docs" / "compared.json").read_text(encoding="utf-8")
    assert not (Path(tmp_path) / "docs" / "runs").exists()


ROOT = Path(__file__).resolve().parents[2]


def test_page_matches_the_stored_results():
    entries = [Finding(**entry) for entry in json.loads((ROOT / "docs" / "compared.json").read_text("utf-8"))]
    kept = as_map(*entries)
    assert (ROOT / "docs" / "compared.md").read_text("utf-8") == page(kept)


def test_stored_results_contain_no_local_path():
    text = (ROOT / "docs" / "compared.json").read_text("utf-8")
    assert not re.search(r"/(tmp|root|home|work|usr)/|https?://", text)

"""Exit codes of a site: SIGTERM is not a failure and loses nothing; every other end has its own code."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.linkcut import until
from support.siteend import check_end, rounds_of
from support.siteprocess import SiteProcess
from support.sitestore import open_store
from support.sitework import network
from taciturn.core.errors import ExitCode, SiteError, WrongFiles
from taciturn.sites.files.site import load_site
from taciturn.sites.rounds.prepare import make_ready
from taciturn.sites.watch.status import read_status

PROGRAM = """
import signal, sys
from taciturn.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job is started with it ignored
main(["site", "run", sys.argv[1]])
"""


def command(path: Path) -> subprocess.Popen[bytes]:
    with (path.parent / "log.txt").open("ab") as log:
        return subprocess.Popen([sys.executable, "-c", PROGRAM, str(path)], stdout=log, stderr=log)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, ExitCode.DONE), (signal.SIGINT, ExitCode.INTERRUPTED)]
)
def test_a_signal_ends_a_site_that_goes_on_with_the_same_bytes(tmp_path, number, code):
    paths = network(tmp_path)
    others = [SiteProcess(paths[0]), SiteProcess(paths[1], {"hold": 3})]
    stopped = command(paths[2])
    try:
        site = load_site(paths[2])
        until(lambda: rounds_of(site) == 3)  # in the middle of a round: one is not heard
        stopped.send_signal(number)
        assert stopped.wait(120) == code
        assert "stopped; everything is kept" in (paths[2].parent / "log.txt").read_text()
        (paths[1].parent / "go").touch()
        again = SiteProcess(paths[2])
        assert [entry.wait() for entry in (*others, again)] == [0, 0, 0]
    finally:
        stopped.kill()
    check_end(paths)


EARLY = """
import os, signal, sys
from taciturn.cli import main

class Stop:
    def find_spec(self, name, *rest):
        if name == "taciturn.sites.rounds.driver":
            os.kill(os.getpid(), signal.SIGTERM)

sys.meta_path.insert(0, Stop())
main(["site", sys.argv[1], sys.argv[2]])
"""


@pytest.mark.parametrize("what", ["run", "finish"])
def test_a_site_that_is_stopped_while_it_loads_its_libraries_has_not_failed(tmp_path, what):
    path = network(tmp_path, [(0, 1)])[0]
    done = subprocess.run([sys.executable, "-c", EARLY, what, str(path)], capture_output=True, check=False)
    assert done.returncode == ExitCode.DONE and b"stopped; everything is kept" in done.stderr


SWALLOWED = """
import os, signal, sys
import taciturn.sites.files.site as files
from taciturn.cli import main

load = files.load_site

class Last:
    def __del__(self):
        os.kill(os.getpid(), getattr(signal, sys.argv[2]))
        sum(range(10_000))

def load_and_be_stopped(path):
    Last()
    return load(path)

files.load_site = load_and_be_stopped
main(["site", "run", sys.argv[1]])
"""


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", ExitCode.DONE), ("SIGINT", ExitCode.INTERRUPTED)])
def test_signal_in_a_finaliser_is_not_lost(tmp_path, name, code):
    """Python discards an exception in a finaliser; the site would go on and ignore further signals."""
    path = network(tmp_path, [(0, 1)], site={"patience": 600.0})[0]
    command = [sys.executable, "-c", SWALLOWED, str(path), name]
    done = subprocess.run(command, capture_output=True, check=False, timeout=300)
    assert done.returncode == code and b"stopped; everything is kept" in done.stderr
    assert b"Exception ignored" in done.stderr  # it was forgotten indeed


def test_invalid_or_foreign_state_folder_is_refused(tmp_path):
    mine, other = (make_ready(load_site(path)) for path in network(tmp_path, [(0, 1)]))
    mine.site.state.write_text("not a folder")
    with pytest.raises(WrongFiles, match="`state` must be a folder"):
        open_store(mine)
    mine.site.state.unlink()
    with open_store(other):
        pass
    other.site.state.rename(mine.site.state)
    with pytest.raises(WrongFiles, match="belongs to another site"):
        open_store(mine)
    with pytest.raises(SiteError, match="belongs to another site"):
        read_status(mine.site)


def test_each_outcome_has_its_exit_code(tmp_path):
    """A missing neighbour, a budget that is too small, an invalid file."""
    silent = network(tmp_path / "silent", [(0, 1)], site={"patience": 0.5})[0]
    assert SiteProcess(silent).wait() == ExitCode.NEIGHBOUR
    wrong = network(tmp_path / "wrong", [(0, 1)])[0]
    wrong.write_text(wrong.read_text().replace('"rows.npz"', '"none.npz"'))
    assert SiteProcess(wrong).wait() == ExitCode.WRONG_FILES
    poor = network(tmp_path / "poor", [(0, 1)], site={"budget": {"epsilon": 1.0}})
    codes = [entry.wait() for entry in [SiteProcess(path) for path in poor]]
    assert codes == [ExitCode.BUDGET_SPENT] * 2

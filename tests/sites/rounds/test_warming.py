"""Modules that a site loads before it connects."""

import subprocess
import sys

import pytest

from support.sitemasked import masked_network
from support.sitework import network

LOOK = """
import sys, time
from pathlib import Path
from taciturn.sites.files.site import load_site
from taciturn.sites.rounds import driver, prepare
from taciturn.sites.rounds.prepare import make_ready
ready = make_ready(load_site(Path(sys.argv[1])))
prepare.suppress = lambda *kinds: __import__("contextlib").nullcontext()
ready.warm_up()
before = set(sys.modules)
method = ready.method()
members = tuple(range(len(ready.site.job.names)))
method.attempt(members, 0, 1.0).message(method.start())
late = sorted(set(sys.modules) - before)
assert not late, late
assert "sklearn" not in sys.modules, "an import of seconds, which such a job has no use for"
from taciturn.sites.rounds.results import model_facts
model_facts(ready.site.job, __import__("numpy").zeros(ready.site.job.dimension))
from taciturn.jobs import job_reports
assert "sklearn" not in sys.modules, "the report of a site does not need it"
"""


@pytest.mark.parametrize("make", [network, masked_network])
@pytest.mark.process
def test_nothing_is_imported_after_all_sites_are_connected(tmp_path, make):
    """Otherwise all sites would wait for the import in the first and the last round."""
    path = make(tmp_path)[0]
    done = subprocess.run([sys.executable, "-c", LOOK, str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

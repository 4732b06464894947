"""The R package: plan, train, predict and verify through the command, by its own tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.process, pytest.mark.slow]


def test_r_package_passes_its_own_tests(tmp_path):
    r = shutil.which("Rscript")
    needed = (
        "quit(status = !all(sapply(c('jsonlite', 'processx', 'testthat'), requireNamespace, quietly = TRUE)))"
    )
    if r is None or subprocess.run([r, "-e", needed], capture_output=True).returncode:
        pytest.skip("Rscript with jsonlite, processx and testthat is not installed")
    library = tmp_path / "library"
    library.mkdir()
    source = shutil.copytree(ROOT / "r", tmp_path / "r")
    install = ["R", "CMD", "INSTALL", f"--library={library}", str(source)]
    subprocess.run(install, check=True, capture_output=True)
    command = Path(sys.executable).with_name("taciturn")
    env = os.environ | {"R_LIBS": str(library), "TACITURN": str(command)}
    done = subprocess.run([r, "testthat.R"], cwd=source / "tests", env=env, capture_output=True, text=True)
    assert done.returncode == 0 and "FAIL 0" in done.stdout, done.stdout + done.stderr

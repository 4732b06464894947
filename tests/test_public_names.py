"""`import tacit` is light, and every public name is where it says."""

from __future__ import annotations

import subprocess
import sys

import tacit


def test_every_public_name_resolves():
    assert list(tacit._HOMES) == tacit.__all__
    for name in tacit.__all__:
        assert getattr(tacit, name) is not None and name in dir(tacit)


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(tacit, "no_such_name")


def test_import_and_help_load_nothing_heavy():
    program = (
        "import sys, tacit\n"
        "from tacit.cli.app import run\n"
        "run(['--help'])\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'matplotlib', 'networkx', 'ray', 'zenoh'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"

"""The common part of the adapters' budget.py: count epsilon in a process that is killed in the middle.

python budget.py NAME runs four rounds; after each, the package's epsilon is appended to NAME.said.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from marks import mark

ROUNDS = 4
name = sys.argv[1]
folder = Path(os.environ["PEER_FOLDER"])
said = folder / f"{name}.said"


def count(spend: Callable[[], float]) -> None:
    """Run the remaining rounds. `spend` runs one round and returns the epsilon counted by the package."""
    done = len(said.read_text().splitlines()) if said.exists() else 0
    for number in range(done + 1, ROUNDS + 1):
        epsilon = spend()
        with said.open("a") as file:
            file.write(json.dumps(epsilon) + "\n")
        if name != "whole":
            mark(number)
            time.sleep(1.0)  # the process may be killed here
    (folder / f"{name}.json").write_text(said.read_text().splitlines()[-1])

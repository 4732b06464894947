"""A counter of epsilon whose process is killed in the middle: what the adapters' budget.py have in common.

python budget.py NAME: four rounds in all; what the package says after each is appended to NAME.said.
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
    """The rounds that are still to do; `spend` does one and says what the package has counted by then."""
    done = len(said.read_text().splitlines()) if said.exists() else 0
    for number in range(done + 1, ROUNDS + 1):
        epsilon = spend()
        with said.open("a") as file:
            file.write(json.dumps(epsilon) + "\n")
        if name != "whole":
            mark(number)
            time.sleep(1.0)  # here it may be killed
    (folder / f"{name}.json").write_text(said.read_text().splitlines()[-1])

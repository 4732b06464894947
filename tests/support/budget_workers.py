"""Tasks of worker processes in tests of budgets: small releases, at once or on a signal."""

from __future__ import annotations

import multiprocessing
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import taciturn as tt
from taciturn.privacy.ledger import open_budgets

X = np.random.default_rng(0).uniform(-0.5, 0.5, (200, 2))
Y = np.where(X[:, 0] > 0, "yes", "no")


def describe(*_: Any) -> str:
    """A release that carries no estimator: "done", or the error."""
    try:
        tt.private_description({"a": X[:, 0]}, {"a": (-1, 1)}, epsilon=0.2, sites=3, colluding=1)
    except tt.errors.TaciturnError as error:
        return str(error)
    return "done"


def fit(model: Any) -> Any:
    """A fit of an estimator that came here in a pickle."""
    return model.fit(X, Y)


def describe_when_told(go: str, answer: str) -> None:
    """Waits for a file, and answers in another."""
    while not Path(go).exists():
        time.sleep(0.01)
    part = Path(f"{answer}.part")
    part.write_text(describe())
    part.replace(answer)


def describe_in(path: Any) -> str:
    """The same in a block of this process's own."""
    try:
        with tt.Budget(path):
            return describe()
    except tt.errors.LedgerError as error:
        return str(error)


def open_and_wait(folder: str, when: str) -> None:
    """A process that is killed in its block; its worker is started before the block, or inside."""
    place = Path(folder)
    open_budgets.FOLDERS = (folder,)  # other tests of this user forget what killed processes left
    worker = multiprocessing.get_context("fork").Process(
        target=describe_when_told, args=(str(place / "go"), str(place / "told"))
    )
    if when == "before":
        worker.start()
    with tt.Budget(place / "A.sqlite", epsilon=3):
        if when == "inside":
            worker.start()
        (place / "ready").touch()
        time.sleep(60)


if __name__ == "__main__":
    describe_when_told(sys.argv[1], sys.argv[2])

"""Tasks of worker processes in tests of budgets: small releases, at once or on a signal."""

from __future__ import annotations

import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
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


def describe_after(go: str) -> str:
    """The same release, once a file exists."""
    while not Path(go).exists():
        time.sleep(0.01)
    return describe()


def describe_in_a_process(method: str) -> str:
    """The same in a process that this one starts."""
    with ProcessPoolExecutor(1, multiprocessing.get_context(method)) as pool:
        return pool.submit(describe).result()


def fit_in_a_process(model: Any, method: str) -> Any:
    with ProcessPoolExecutor(1, multiprocessing.get_context(method)) as pool:
        return pool.submit(fit, model).result()


def block_and_late_thread(path: str) -> tuple[str, str]:
    """After a block of this process: a release in an older thread, and one in the main thread."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(abs, 1).result()
        with tt.Budget(path):
            describe()
        return pool.submit(describe).result(), describe()


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

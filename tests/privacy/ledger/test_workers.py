"""A release in any worker is charged to the block from which it was called, or refused."""

from __future__ import annotations

import asyncio
import contextvars
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import joblib
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import taciturn as tt
from support import budget_workers
from support.budget_workers import X, Y, describe, describe_when_told, fit
from taciturn.core.errors import LedgerError
from taciturn.privacy.ledger import open_budgets

pytestmark = pytest.mark.process
LATE = "was running when the `with` block of a budget ended"
MODEL = tt.PrivateLogisticRegression(epsilon=0.3, sites=3, colluding=1, rounds=3)


@pytest.fixture
def budgets(tmp_path):
    return [tt.Budget(tmp_path / f"{name}.sqlite", epsilon=3) for name in "AB"]


@pytest.fixture(params=["fork", "spawn"])
def pool(request):
    """Workers that were started before any block."""
    with ProcessPoolExecutor(2, multiprocessing.get_context(request.param)) as made:
        list(made.map(abs, range(4)))
        yield made


def answer(path: Path) -> str:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return path.read_text()


def test_workers_older_than_the_block_charge_it(pool, budgets):
    with budgets[0]:
        list(pool.map(fit, [MODEL] * 2))
        assert set(pool.map(describe, range(2))) == {"done"}
    with budgets[1]:
        assert pool.submit(describe).result() == "done"
    assert [len(budget.runs) for budget in budgets] == [4, 1]
    assert LATE in pool.submit(describe).result()
    with pytest.raises(LedgerError, match=LATE):
        pool.submit(fit, MODEL).result()
    assert pool.submit(budget_workers.describe_in, budgets[1].path).result() == "done"
    assert [len(budget.runs) for budget in budgets] == [4, 2]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_that_were_started_in_one_block_charge_the_next(method, budgets):
    with ProcessPoolExecutor(1, multiprocessing.get_context(method)) as pool:
        with budgets[0]:
            assert pool.submit(describe).result() == "done"
        with budgets[1]:
            assert pool.submit(describe).result() == "done"
            trained = pool.submit(fit, MODEL).result()
        assert [len(budget.runs) for budget in budgets] == [1, 2]
        with pytest.raises(LedgerError, match=LATE):
            pool.submit(fit, trained).result()
        assert LATE in pool.submit(describe).result()
    assert [len(budget.runs) for budget in budgets] == [1, 2]


def test_a_fit_that_was_sent_in_one_block_and_begins_in_the_next_is_refused(budgets):
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        with budgets[0]:
            sent = pickle.dumps(MODEL)
        with budgets[1], pytest.raises(LedgerError, match=r"A\.sqlite, but .*B\.sqlite is open"):
            pool.submit(load_and_fit, sent).result()
        pool.submit(load_and_fit, sent).result()
    assert [len(budget.runs) for budget in budgets] == [1, 0]


def load_and_fit(sent):
    return fit(pickle.loads(sent))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_process_that_outlives_its_block_is_refused(method, budgets, tmp_path):
    go, told = tmp_path / "go", tmp_path / "told"
    with budgets[0]:
        late = multiprocessing.get_context(method).Process(
            target=describe_when_told, args=(str(go), str(told))
        )
        late.start()
    go.touch()
    late.join()
    assert LATE in answer(told) and budgets[0].runs == ()


def test_an_orphan_charges_the_block_that_it_was_started_in(budgets, tmp_path):
    go, told = tmp_path / "go", tmp_path / "told"
    command = f"{sys.executable} {budget_workers.__file__} {go} {told} &"
    where = [str(Path(budget_workers.__file__).parents[1]), str(Path(tt.__file__).parents[1])]
    with budgets[0]:
        subprocess.run(
            command, shell=True, check=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(where)}
        )
        go.touch()
        assert answer(told) == "done"
    assert len(budgets[0].runs) == 1


@pytest.mark.parametrize("when", ["before", "inside"])
def test_a_worker_whose_parent_was_killed_in_the_block_is_refused(when, tmp_path):
    go, told, ready = tmp_path / "go", tmp_path / "told", tmp_path / "ready"
    parent = multiprocessing.get_context("spawn").Process(
        target=budget_workers.open_and_wait, args=(str(tmp_path), when)
    )
    parent.start()
    answer(ready)
    parent.kill()
    parent.join()
    go.touch()
    assert "no noise was drawn and nothing was charged" in answer(told)
    assert tt.Budget(tmp_path / "A.sqlite").runs == ()


def test_a_budget_inside_a_budget_is_refused_in_a_worker_too(pool, budgets):
    with budgets[0]:
        told = pool.submit(budget_workers.describe_in, budgets[1].path).result()
        assert "A.sqlite is in use by the process that started this one" in told
        assert pool.submit(budget_workers.describe_in, budgets[0].path).result() == "done"
    assert [len(budget.runs) for budget in budgets] == [1, 0]


@pytest.mark.filterwarnings("ignore:A worker stopped")  # one that grew too much: loky starts another
def test_a_search_with_noisy_scores_in_workers_is_charged_whole(budgets):
    def noisy_accuracy(model, X, y):
        return tt.private_score(model, X, y, epsilon=0.2, sites=3, colluding=1).accuracy.value

    joblib.Parallel(n_jobs=2)(joblib.delayed(abs)(k) for k in range(2))
    with budgets[0] as budget:
        grid = {"regularization": [1e-3, 1e-1]}
        model = clone(MODEL).set_params(epsilon=0.5)
        search = GridSearchCV(model, grid, cv=2, scoring=noisy_accuracy, error_score="raise", n_jobs=2)
        search.fit(X, Y)
    assert (
        sorted(run.what for run in budget.runs) == ["PrivateLogisticRegression"] * 5 + ["private_score"] * 4
    )
    with pytest.raises(LedgerError, match=LATE):
        search.fit(X, Y)
    joblib.externals.loky.get_reusable_executor().shutdown()  # as the error advises
    search.fit(X, Y)
    assert len(budget.runs) == 9


class Slow:
    """A public model that answers once it may."""

    classes_ = ("no", "yes")

    def __init__(self):
        self.asked, self.go = threading.Event(), threading.Event()

    def decision_function(self, X):
        self.asked.set()
        assert self.go.wait(60)
        return X[:, 0]


def test_a_call_in_a_thread_belongs_to_the_block_in_which_it_began(budgets):
    slow = Slow()
    options = {"epsilon": 0.2, "sites": 3, "colluding": 1, "public": True}
    with ThreadPoolExecutor(1) as pool:
        with budgets[0]:
            late = pool.submit(tt.private_score, slow, X, Y, **options)
            assert slow.asked.wait(60)
        with budgets[1]:
            slow.go.set()
            late.result()
            pool.submit(describe).result()
    assert [len(budget.runs) for budget in budgets] == [1, 1]


def test_a_thread_that_outlives_its_block_is_refused_outside_of_any_block(budgets):
    with ThreadPoolExecutor(1) as older, ThreadPoolExecutor(1) as late:
        older.submit(describe).result()
        with budgets[0]:
            late.submit(describe).result()
        assert LATE in late.submit(describe).result() and LATE in older.submit(describe).result()
        with ThreadPoolExecutor(1) as newer:
            assert newer.submit(describe).result() == "done"
        with budgets[1]:
            assert late.submit(describe).result() == "done"
    assert [len(budget.runs) for budget in budgets] == [1, 1]


class Callback:
    """A public model that calls a function when it is first asked."""

    classes_ = ("no", "yes")

    def __init__(self, call):
        self.calls = [call]

    def decision_function(self, X):
        while self.calls:
            self.calls.pop()()
        return X[:, 0]


def test_a_block_that_is_opened_during_a_call_is_charged_for_what_is_inside_it(budgets):
    def describe_in_a_block():
        with budgets[0]:
            assert describe() == "done"

    tt.private_score(Callback(describe_in_a_block), X, Y, epsilon=0.2, sites=3, colluding=1, public=True)
    assert len(budgets[0].runs) == 1


def test_a_context_that_was_copied_during_a_call_is_charged_to_a_later_block(budgets):
    kept = []
    model = Callback(lambda: kept.append(contextvars.copy_context()))
    tt.private_score(model, X, Y, epsilon=0.2, sites=3, colluding=1, public=True)
    with budgets[0]:
        assert kept[0].run(describe) == "done"
    assert len(budgets[0].runs) == 1


def test_a_forked_child_that_leaves_the_block_leaves_its_parent_inside(budgets):
    reader, writer = os.pipe()
    with budgets[0]:
        child = os.fork()
        if child == 0:
            try:
                budgets[0].__exit__(None, None, None)  # as a `with` statement does on the way out
                os.write(writer, describe().encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert open_budgets.block_at_start()[1] is not None
    os.close(writer)
    assert os.read(reader, 100) == b"done" and len(budgets[0].runs) == 1


def test_tasks_of_asyncio_are_charged_to_their_block_or_refused(budgets):
    async def later(go):
        await go.wait()
        return describe()

    async def work():
        go = asyncio.Event()
        with budgets[0]:
            late = asyncio.create_task(later(go))
            assert await asyncio.to_thread(describe) == "done"
            assert await asyncio.create_task(asyncio.to_thread(describe)) == "done"
            await asyncio.sleep(0)
        go.set()
        return await late

    assert "this task was started inside the budget" in asyncio.run(work())
    assert len(budgets[0].runs) == 2

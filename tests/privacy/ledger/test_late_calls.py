"""A call that is given to a worker inside a block, and begins after the block, is charged or refused."""

from __future__ import annotations

import _thread
import asyncio
import contextvars
import multiprocessing
import multiprocessing.pool
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import joblib
import pytest
from joblib.externals import loky

import taciturn as tt
from support import budget_workers
from support.budget_workers import describe, describe_after, fit
from support.linkcut import until
from taciturn.core.errors import LedgerError

pytestmark = pytest.mark.process
LATE = "was running when the `with` block of a budget ended"
MODEL = tt.PrivateLogisticRegression(epsilon=0.3, sites=3, colluding=1, rounds=3)


@pytest.fixture
def budget(tmp_path):
    return tt.Budget(tmp_path / "A.sqlite", epsilon=30)


@pytest.fixture
def go(tmp_path):
    """A file that lets calls begin."""
    return tmp_path / "go"


def make_pool(kind: str, size: int = 1):
    if kind == "threads":
        return ThreadPoolExecutor(size)
    if kind == "loky":
        return loky.ProcessPoolExecutor(size)
    return ProcessPoolExecutor(size, multiprocessing.get_context(kind))


@pytest.mark.parametrize("kind", ["threads", "fork", "spawn", "loky"])
@pytest.mark.parametrize("older", [True, False], ids=["older pool", "pool of the block"])
def test_calls_that_begin_after_their_block_are_refused(kind, older, budget, go):
    with make_pool(kind) as pool:
        if older:
            pool.submit(abs, 1).result()
        with budget:
            calls = [pool.submit(describe_after, str(go)) for _ in range(2)]
            fits = [pool.submit(fit, MODEL) for _ in range(6)]  # the last ones are pickled after the block
        go.touch()
        assert all(LATE in call.result() for call in calls)
        ran = [call for call in fits if call.exception() is None]
        assert all(LATE in str(call.exception()) for call in fits if call not in ran)
    assert len(ran) < 6 and len(budget.runs) == len(ran)
    with make_pool(kind) as pool:
        assert pool.submit(describe).result() == "done"
    assert describe() == "done" and len(budget.runs) == len(ran)


def test_block_that_ends_by_an_error_leaves_late_workers_too(budget):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(abs, 1).result()
        with pytest.raises(ValueError, match="stop"):
            with budget:
                raise ValueError("stop")
        assert LATE in pool.submit(describe).result()


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_pool_that_replaces_its_workers_after_the_block_is_refused(method, budget, go):
    """Each task has a new process, so most are started after the block."""
    with multiprocessing.get_context(method).Pool(1, maxtasksperchild=1) as pool:
        first = pool.apply(os.getpid)
        until(lambda: pool._pool and pool._pool[0].pid not in (None, first))
        with budget:
            calls = [pool.apply_async(describe_after, (str(go),)) for _ in range(3)]
        go.touch()
        told = [call.get(60) for call in calls]
        assert all(LATE in text for text in told), told
    assert budget.runs == ()


def test_end_of_a_block_waits_for_processes_that_are_being_started(budget):
    """Otherwise the operating system could show such a process as younger than the block."""

    class SlowStart(multiprocessing.get_context("fork").Process):
        @staticmethod
        def _Popen(process):  # noqa: N802
            begun.set()
            time.sleep(1.0)
            return multiprocessing.get_context("fork").Process._Popen(process)

    begun, process = threading.Event(), SlowStart(target=abs, args=(1,))
    starter = threading.Thread(target=process.start)
    starter.start()
    with budget:
        begun.wait()
    assert process.pid is not None
    starter.join()


def test_thread_pool_of_multiprocessing_and_threads_of_joblib_are_refused(budget, go):
    with multiprocessing.pool.ThreadPool(1) as pool:
        with budget:
            call = pool.apply_async(describe_after, (str(go),))
        go.touch()
        assert LATE in call.get(60)
    with ThreadPoolExecutor(1) as outer:
        outer.submit(abs, 1).result()
        with budget:
            pass
        told = outer.submit(describe_in_threads).result()
        assert len(told) == 2 and all(LATE in text for text in told)
    assert describe_in_threads() == ["done"] * 2 and budget.runs == ()


def describe_in_threads():
    return joblib.Parallel(n_jobs=2, prefer="threads")(joblib.delayed(describe)(k) for k in range(2))


@pytest.mark.parametrize(
    ("outer", "method"),
    [
        ("threads", "fork"),
        ("threads", "spawn"),
        ("threads", "forkserver"),
        ("fork", "spawn"),
        ("spawn", "fork"),
    ],
)
def test_workers_that_a_late_call_starts_are_refused(outer, method, budget):
    """A pool inside a pool: the inner one is started after the block."""
    with make_pool(outer) as pool:
        pool.submit(abs, 1).result()
        with budget:
            pass
        assert LATE in pool.submit(budget_workers.describe_in_a_process, method).result()
        with pytest.raises(LedgerError, match=LATE):
            pool.submit(budget_workers.fit_in_a_process, MODEL, method).result()


def test_program_that_a_late_thread_starts_is_refused(budget, go, tmp_path):
    go.touch()
    where = [str(Path(budget_workers.__file__).parents[1]), str(Path(tt.__file__).parents[1])]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(where)}
    command = [sys.executable, budget_workers.__file__, str(go), str(tmp_path / "told")]
    with ThreadPoolExecutor(1) as pool:
        pool.submit(abs, 1).result()
        with budget:
            pass
        pool.submit(subprocess.run, command, env=env, check=True).result()
        assert LATE in (tmp_path / "told").read_text()
    subprocess.run(command, env=env, check=True)
    assert (tmp_path / "told").read_text() == "done"


def test_fork_server_of_the_block_starts_new_workers_after_it(budget):
    """The server itself is older than the end of the block; what counts is who asked it."""
    context = multiprocessing.get_context("forkserver")
    with budget:
        with ProcessPoolExecutor(1, context) as pool:
            assert pool.submit(describe).result() == "done"
    with ProcessPoolExecutor(1, context) as pool:
        assert pool.submit(describe).result() == "done"
    assert len(budget.runs) == 1


def test_block_in_a_worker_leaves_its_own_late_threads(budget):
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        told = pool.submit(budget_workers.block_and_late_thread, str(budget.path)).result()
        assert LATE in told[0] and told[1] == "done"
        assert pool.submit(describe).result() == "done"  # the next call of the same main thread


def test_tasks_of_asyncio_that_are_older_than_the_block_are_refused(budget):
    async def consume(jobs):
        return (await jobs.get())()

    async def work():
        jobs, held, loop = asyncio.Queue(), threading.Event(), asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        consumer = asyncio.create_task(consume(jobs))
        await asyncio.to_thread(abs, 1)
        with budget:
            jobs.put_nowait(describe)
            first = loop.run_in_executor(None, held.wait, 60)
            late = loop.run_in_executor(None, describe)
        held.set()
        await first
        return [await consumer, await late], await asyncio.to_thread(describe)

    late, later = asyncio.run(work())
    assert all(LATE in told for told in late) and later == "done" and budget.runs == ()


def test_tasks_that_an_older_task_starts_after_the_block_are_refused(budget):
    async def release():
        return describe()

    async def start_later(go):
        await go.wait()
        return await asyncio.create_task(release())

    async def work():
        go = asyncio.Event()
        older = asyncio.create_task(start_later(go))
        await asyncio.sleep(0)
        with budget:
            go.set()
        return await older, await asyncio.create_task(release())

    late, later = asyncio.run(work())
    assert LATE in late and later == "done" and budget.runs == ()


@pytest.mark.parametrize("kind", ["threads", "spawn"])
def test_new_worker_of_an_older_pool_is_refused(kind, budget, go):
    """It may take a call out of the queue that the block left there."""
    with make_pool(kind, 2) as pool:
        pool.submit(abs, 1).result()
        with budget:
            busy = pool.submit(describe_after, str(go))
        told = pool.submit(describe).result()
        assert not busy.done()
        go.touch()
        assert LATE in told and LATE in busy.result()


def test_to_thread_in_the_block_that_begins_after_it_is_refused(budget):
    async def work():
        held, loop = threading.Event(), asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        await asyncio.to_thread(abs, 1)
        with budget:
            first = asyncio.create_task(asyncio.to_thread(held.wait, 60))
            late = asyncio.create_task(asyncio.to_thread(describe))
            await asyncio.sleep(0)
        held.set()
        await first
        return await late

    assert "this task was started inside the budget" in asyncio.run(work()) and budget.runs == ()


def test_only_the_main_thread_may_go_on_after_its_block(budget):
    """A thread of a pool may be given the next call by the block that it ran itself."""
    jobs = queue.Queue()

    def consume():
        while (job := jobs.get()) is not None:
            job()

    told = []

    def block():
        with budget:
            jobs.put(lambda: told.append(describe()))

    jobs.put(block)
    thread = threading.Thread(target=consume)
    thread.start()
    while not told:
        time.sleep(0.01)
    assert LATE in told[0] and LATE in describe()
    contextvars.Context().run(lambda: told.append(describe()))
    assert LATE in told[1]
    jobs.put(None)
    thread.join()
    with budget:
        assert describe() == "done"
    assert describe() == "done" and len(budget.runs) == 1


def test_thread_that_python_did_not_start_is_refused_after_a_block(budget):
    """Nothing shows whether it is older than the block."""
    go, told = threading.Event(), queue.Queue()
    _thread.start_new_thread(lambda: told.put(go.wait(60) and describe()), ())
    with budget:
        pass
    go.set()
    assert LATE in told.get(timeout=60) and budget.runs == ()


SCRIPT = """
import multiprocessing, os, subprocess, sys
sys.path[:0] = sys.argv[3:]
import taciturn as tt
from taciturn.privacy.ledger import open_budgets

open_budgets.FOLDERS = (sys.argv[1],)
pool = multiprocessing.get_context("fork").Pool(1)
silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}  # the parent waits for open pipes
child = subprocess.Popen(["sleep", "60"], **silent) if sys.argv[2] == "child" else None
with tt.Budget(sys.argv[1] + "/A.sqlite", epsilon=3):
    pass
(home,) = open_budgets._readable()
print(len(os.listdir(home)), child and child.pid)
"""


@pytest.mark.parametrize("child", ["child", "none"])
def test_file_of_a_process_disappears_with_it_unless_its_children_go_on(child, tmp_path):
    where = [str(Path(budget_workers.__file__).parents[1]), str(Path(tt.__file__).parents[1])]
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, str(tmp_path), child, *where]
    files, pid = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    (home,) = tmp_path.glob("taciturn-budgets-*")
    left = len(list(home.iterdir()))
    if child == "child":
        os.kill(int(pid), signal.SIGKILL)
    assert files == "1" and left == (child == "child")

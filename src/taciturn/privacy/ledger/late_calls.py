"""Find late workers: those that may still run calls from a budget's `with` block after the end of the block.

A thread or an asyncio task that was alive when the block ended may still run a call that was submitted inside
the block, and nothing records when a call was submitted. So this thread or task counts as late. Threads,
tasks and processes that a late worker starts are late too. Workers that join the pool of a late worker
afterwards are also late, because they read the queue of this pool. The code that ended the block is not late
if it runs in the main thread or in a task. Code that runs in a copy of the context of this code is not late
either, if the copy was made after the end of the block. If another thread ended the block, that thread is
late.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from functools import wraps
from multiprocessing.process import BaseProcess, current_process
from typing import Any

from .open_budgets import VARIABLE

_MARK = "taciturn-late"
_LONGEST_START = 60.0  # seconds that the end of a block waits for processes that are being started
_alive_at_end: weakref.WeakSet[Any] = weakref.WeakSet()
"""Threads and tasks that were alive when a block ended, threads and tasks that these started later, and the
queues that the threads hold."""
_ended = [""]
"""The name of the block that ended last in this process, or in its parent before the fork."""
_in_flight: set[Any] = set()
"""Processes whose `start` has not returned. Their start time may be after the end of the block, although they
were started inside it."""
_left: ContextVar[str] = ContextVar("left", default="")
"""The name of the last block that this code has left. A copy of this code's context keeps the name."""


def note_workers(name: str) -> None:
    """Mark as late the threads, and the tasks of the current event loop, that are alive at a block's end.

    The current task is not marked. The current thread is not marked if it is the main thread; any other
    current thread is marked, because it may be a worker that runs further calls from inside the block.
    """
    watch_starts()
    end = time.monotonic() + _LONGEST_START
    while _in_flight and time.monotonic() < end:
        time.sleep(0.001)
    thread, task = threading.current_thread(), _task()
    alone = thread is threading.main_thread()
    threads = {*threading.enumerate()} - ({thread} if alone else set())
    _alive_at_end.update(threads)
    for other in threads:
        _alive_at_end.update(_queues(other))
    with suppress(KeyError, RuntimeError):  # no event loop runs here
        _alive_at_end.update(sys.modules["asyncio"].all_tasks() - {task})
    _ended[0] = name
    if alone or task is not None:
        _left.set(name)


def block_of_late_call() -> str:
    """The name of the ended block that a call in this process, thread or task may come from, or ""."""
    if mark := _config(current_process()).get(_MARK):
        return str(mark)
    if _left.get() == _ended[0]:
        return ""
    thread, task = threading.current_thread(), _task()
    unknown = isinstance(thread, threading._DummyThread)  # such a thread may be older than the block
    late = unknown or thread in _alive_at_end or (task is not None and task in _alive_at_end)
    return _ended[0] if late else ""


def _task() -> Any:
    """The asyncio task that runs this code, or None."""
    with suppress(KeyError, RuntimeError):
        return sys.modules["asyncio"].current_task()
    return None


def _config(process: Any) -> dict[str, Any]:
    """Settings that a process of multiprocessing passes on to all processes that it starts."""
    found: dict[str, Any] = process._config
    return found


def watch_starts() -> None:
    """Replace the functions that start threads, processes and tasks, so that what a late worker starts from
    now on is marked as late."""
    starts: list[tuple[Any, str]] = [(threading.Thread, "start"), (BaseProcess, "start")]
    starts.append((subprocess.Popen, "__init__"))
    if "asyncio" in sys.modules:
        starts.append((sys.modules["asyncio"].BaseEventLoop, "create_task"))
    for kind, name in starts:
        if not hasattr(getattr(kind, name), _MARK):
            setattr(kind, name, _marked(getattr(kind, name)))


def _marked(start: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(start)
    def mark_and_start(worker: Any, *args: Any, **options: Any) -> Any:
        name = block_of_late_call()
        if isinstance(worker, threading.Thread | BaseProcess):
            older = any(queue in _alive_at_end for queue in _queues(worker))
            name = name or (_ended[0] if older else "")
        if name and isinstance(worker, BaseProcess):
            _config(worker)[_MARK] = name
        elif name and isinstance(worker, threading.Thread):
            _alive_at_end.add(worker)
        elif name and isinstance(worker, subprocess.Popen):
            options["env"] = {**(options.get("env") or os.environ), VARIABLE: f"- {name}"}
        if isinstance(worker, BaseProcess):
            _in_flight.add(worker)
        try:
            started = start(worker, *args, **options)
        finally:
            _in_flight.discard(worker)
        if name and started is not None:  # a task; `worker` is its event loop
            _alive_at_end.add(started)
        return started

    setattr(mark_and_start, _MARK, True)
    return mark_and_start


def _queues(worker: Any) -> list[Any]:
    """The queues among the arguments and attributes of a thread or process, such as the queue of its pool."""
    found = []
    for held in (*(getattr(worker, "_args", None) or ()), *vars(worker).values()):
        if hasattr(type(held), "get") and hasattr(type(held), "put"):
            with suppress(TypeError):  # a weak set cannot contain this object
                hash(weakref.ref(held))
                found.append(held)
    return found


os.register_at_fork(after_in_child=_in_flight.clear)

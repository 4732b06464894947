"""BLAS threads: sites run side by side, so each product should stay on one core."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep every BLAS at one thread inside; enter it once per run, since it is slow."""
    with threadpool_limits(limits=1, user_api="blas"):
        yield

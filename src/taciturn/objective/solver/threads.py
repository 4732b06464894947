"""Limit BLAS to one thread: sites run in parallel, so each matrix product should use one core only."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from threadpoolctl import ThreadpoolController


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit every BLAS to one thread inside the `with` block. Entering it is slow, so do it once per run."""
    with _libraries(len(sys.modules)).limit(limits=1, user_api="blas"):
        yield


@lru_cache(maxsize=1)
def _libraries(modules: int) -> ThreadpoolController:
    """The loaded BLAS libraries. The search is repeated if the number of loaded modules has changed."""
    return ThreadpoolController()

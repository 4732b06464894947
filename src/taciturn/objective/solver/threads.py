"""BLAS threads: sites run side by side, so each product should stay on one core."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from threadpoolctl import ThreadpoolController


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep every BLAS at one thread inside; enter it once per run, since it is slow."""
    with _libraries(len(sys.modules)).limit(limits=1, user_api="blas"):
        yield


@lru_cache(maxsize=1)
def _libraries(modules: int) -> ThreadpoolController:
    """What is loaded while there are so many modules; an import may load a BLAS: it is looked for again."""
    return ThreadpoolController()

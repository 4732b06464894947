"""One BLAS thread inside, as many as before outside."""

from __future__ import annotations

from threadpoolctl import threadpool_info

import taciturn.objective


def threads() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_every_blas_is_held_to_one_thread() -> None:
    before = threads()
    with taciturn.objective.one_blas_thread():
        assert set(threads()) == {1}
    assert threads() == before

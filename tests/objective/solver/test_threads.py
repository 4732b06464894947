"""One BLAS thread inside, as many as before outside."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import taciturn.objective
from taciturn.objective.solver import threads as held


def threads() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_every_blas_is_held_to_one_thread() -> None:
    with threadpool_limits(2, user_api="blas"):
        assert set(threads()) == {2}
        with taciturn.objective.one_blas_thread():
            assert set(threads()) == {1}
        assert set(threads()) == {2}


def test_libraries_are_looked_for_again_after_an_import(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    real = held.ThreadpoolController
    monkeypatch.setattr(held, "ThreadpoolController", lambda: looked.append(1) or real())
    held._libraries.cache_clear()
    for _ in range(2):
        with taciturn.objective.one_blas_thread():
            assert set(threads()) == {1}
    assert len(looked) == 1
    monkeypatch.setitem(sys.modules, "brought", ModuleType("brought"))
    with taciturn.objective.one_blas_thread():
        pass
    assert len(looked) == 2

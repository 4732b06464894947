"""Compiled functions have the same bits here, on another processor's kernels, and without a compiler."""

from __future__ import annotations

import pytest

from support.bits import DIGESTS, digests_elsewhere

PROCESSOR = {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR"}


@pytest.mark.process
@pytest.mark.parametrize(
    ("names", "environment"),
    [(("noise", "descent"), PROCESSOR), (tuple(DIGESTS), {"NUMBA_DISABLE_JIT": "1"})],
    ids=["another processor", "no compiler"],
)
def test_the_bits_are_the_same_elsewhere(names: tuple[str, ...], environment: dict[str, str]) -> None:
    """The rows of the solves are made by BLAS: those are compared on one processor only."""
    assert digests_elsewhere(*names, **environment) == {name: DIGESTS[name]() for name in names}

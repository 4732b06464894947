"""Linear algebra in a fixed order: right, and the same bits whatever kernels the machine has."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.masked.public.algebra import eigenpairs, product, rebuild, total, transposed_product

PROGRAM = """
import hashlib
import numpy as np
from taciturn.masked.public.descent import Descent
from taciturn.masked.public.losses import BoundedLogistic
from taciturn.objective import LogCosh, Logistic, SmoothHinge
from taciturn.objective.softmax import Softmax

digest = hashlib.sha256()
rng = np.random.Generator(np.random.PCG64(7))
for loss in (BoundedLogistic(), Logistic(), SmoothHinge(), LogCosh(), Softmax(3, True)):
    outputs = getattr(loss, "classes", 1)
    for full in (True, False):
        d, steps = 9, 6
        descent = Descent(loss, d, outputs, full, (1e-3,) * (steps + 1), 1e-4, 0.4)
        rows = rng.integers(-1000, 1000, size=(200, d))
        rows[:, -1] = 1638
        M = (rows.T @ rows) / (4096.0**2 * 200)  # of integers: exact
        first = (np.triu(M, 1) * 2**0.5 + np.diag(np.diag(M)))[np.triu_indices(d)]
        if not full:
            first = np.concatenate([M[-1, :-1] / 0.4, np.diag(M)[:-1]])
        state = descent.advance(descent.start(2), np.stack([first, 1.25 * first]))
        for _ in range(steps):
            g = rng.integers(-(2**40), 2**40, size=(2, outputs * d)) / 2.0**41
            state = descent.advance(state, g)
            for array in (state.x, state.y, state.f):
                digest.update(np.ascontiguousarray(array).tobytes())
print(digest.hexdigest())
"""
KERNELS = [
    {"OPENBLAS_CORETYPE": "Haswell"},
    {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR"},
    {"NUMBA_DISABLE_JIT": "1"},
]


@settings(max_examples=40, deadline=None)
@given(d=st.integers(1, 12), seed=st.integers(0, 2**32), kind=st.integers(0, 3))
def test_eigenpairs(d, seed, kind):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(d, d))
    A = (A + A.T, np.outer(A[0], A[0]), np.diag(np.rint(A[0])), 0 * A)[kind]
    levels, vectors = eigenpairs(A)
    size = 1 + np.abs(A).max()
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(d), atol=1e-13)
    np.testing.assert_allclose(rebuild(levels, vectors), A, atol=1e-13 * size * d)
    np.testing.assert_allclose(np.sort(levels), np.linalg.eigvalsh(A), atol=1e-12 * size * d)


def test_products_and_sums():
    rng = np.random.default_rng(0)
    A, x, y = rng.normal(size=(5, 3)), rng.normal(size=3), rng.normal(size=5)
    np.testing.assert_allclose(product(A, x), A @ x, rtol=1e-13)
    np.testing.assert_allclose(transposed_product(A, y), A.T @ y, rtol=1e-12)
    assert total(np.array([1e16, 1.0, -1e16])) == 0.0  # from the left, and not otherwise


@pytest.mark.parametrize("change", KERNELS[1:], ids=["another processor", "no compiler"])
def test_the_descent_has_the_same_bits_on_other_kernels(change):
    runs = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, **kernels},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for kernels in (KERNELS[0], change)
    ]
    assert runs[0] == runs[1]
    assert len(runs[0].strip()) == len(hashlib.sha256().hexdigest())

"""Our exp and log: accurate, with the same bits one by one, in arrays and in the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy import sparse

from taciturn.kernels.arithmetic import compiled, exp, log, log1p
from taciturn.kernels.clipped_sums import add_dense, add_sparse

made = np.random.default_rng(0)
NEAR = 1.0 + np.linspace(-0.3, 0.42, 301)
SMALL = 10.0 ** made.uniform(-300, 0, 300)
CASES = {
    "exp": (exp, np.concatenate([made.uniform(-708, 708, 400), made.normal(size=400), -SMALL, SMALL]), 2),
    "log": (log, np.concatenate([SMALL, NEAR, made.uniform(0, 1, 400), 1.0 - 2.0 ** -np.arange(2.0, 53)]), 3),
    "log1p": (log1p, np.concatenate([SMALL, made.uniform(0, 1, 400), [0.0, 1.0, 2.0**-53]]), 3),
}
EXACT: dict[str, Callable[[Decimal], Decimal]] = {
    "exp": Decimal.exp,
    "log": Decimal.ln,
    "log1p": lambda x: (1 + x).ln(),
}


@pytest.mark.parametrize("name", CASES)
def test_within_a_few_units(name: str) -> None:
    function, numbers, most = CASES[name]
    with localcontext() as context:
        context.prec = 400 if name == "log1p" else 60
        for x in numbers.tolist():
            true = EXACT[name](Decimal(x))
            error = abs(Decimal(function(x)) - true)
            assert error <= most * Decimal(2) ** -53 * abs(true), x


@compiled
def exp_of_each(x: np.ndarray, out: np.ndarray) -> None:
    for i in range(len(x)):
        out[i] = exp(x[i])


def test_one_by_one_or_many_at_once_gives_the_same_bits() -> None:
    """The loop over an array uses vector instructions; its length and its start must not matter."""
    numbers = CASES["exp"][1]
    alone = np.array([exp(x) for x in numbers.tolist()])
    for start, stop in ((0, len(numbers)), (1, 8), (3, 1000)):
        together = np.empty(stop - start)
        exp_of_each(numbers[start:stop], together)
        assert np.array_equal(together, alone[start:stop])


@pytest.mark.parametrize("name", CASES)
def test_the_interpreter_gives_the_same_bits_as_machine_code(name: str) -> None:
    function, numbers, _ = CASES[name]
    plain = getattr(function, "py_func", function)
    assert [plain(x) for x in numbers.tolist()] == [function(x) for x in numbers.tolist()]


def test_slopes_of_a_group_of_rows_have_the_bits_of_single_ones() -> None:
    """With one column both kernels multiply once: what is left is the slope, in groups and one by one."""
    generator = np.random.default_rng(0)
    Z = generator.standard_normal((1000, 1)) * np.geomspace(1e-3, 1e3, 1000)[:, None]
    limits, weights = generator.uniform(0.1, 1.0, 1000), generator.uniform(0.0, 1.0, 1000)
    for rows in (0, 1, 63, 64, 65, 1000):
        some = sparse.csr_array(Z[:rows])
        own, f = (limits[:rows], weights[:rows]), np.array([1.7])
        sums = np.zeros((2, 2, 1))
        add_sparse(*sums[0], some.data, some.indices, some.indptr, f, *own)
        add_dense(*sums[1], Z[:rows], f, *own)
        assert sums[0].tobytes() == sums[1].tobytes()

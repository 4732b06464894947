"""Numbers as a reader sees them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.report.html.number_tables import digits
from taciturn.report.html.numbers import power, written


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        (0.36912, "plain", "0.3691"),
        (-0.5, "plain", "−0.5000"),
        (0.0, "plain", "0"),
        (1234.56, "plain", "1235"),
        (2.5e-7, "plain", "2.50 × 10⁻⁷"),
        (0.84531, "percent", "84.53%"),
        (2.9611, "bound", "2.97"),
        (1.1, "bound", "1.10"),
        (58.05, "bound", "58.1"),
        (0.012341, "bound", "0.0124"),
        (1e-12, "bound", "0.00000000000100"),
        (0.0, "bound", "0"),
        (math.inf, "bound", "∞"),
        (-math.inf, "plain", "−∞"),
        (math.nan, "plain", "not known"),
        (None, "bound", "not known"),
    ],
)
def test_written(value: float | None, form: str, text: str) -> None:
    assert written(value, form) == text


@pytest.mark.parametrize(
    ("value", "text"), [(1e-5, "10⁻⁵"), (2.5e-6, "2.5 × 10⁻⁶"), (0.05, "0.05"), (9.9996e-6, "10⁻⁵")]
)
def test_power(value: float, text: str) -> None:
    assert power(value) == text


@given(st.floats(1e-6, 1e6))
def test_a_bound_is_never_printed_below_itself(epsilon: float) -> None:
    assert float(written(epsilon, "bound")) >= epsilon * (1 - 1e-8)
    assert float(digits(epsilon, "bound")) >= epsilon * (1 - 1e-11)


@given(st.floats(1e-6, 1e6))
def test_a_bound_is_printed_close_above(epsilon: float) -> None:
    assert float(written(epsilon, "bound")) <= epsilon * 1.1 + 1e-9
    assert float(digits(epsilon, "bound")) <= epsilon * 1.01

"""Parameter checks: the value in its type, or one line with name, value and range."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from taciturn.core import checks
from taciturn.core.errors import ParameterError, TaciturnError


def refused(check, value, message, **options):
    with pytest.raises(ParameterError) as caught:
        check("p", value, **options)
    assert str(caught.value) == message
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, TaciturnError)


@pytest.mark.parametrize("value", [3, 3.0, np.float32(3), np.int64(3), Fraction(3)])
def test_real_takes_every_kind_of_number(value):
    number = checks.real("p", value)
    assert number == 3.0 and type(number) is float


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (True, "`p` must be a number; got bool."),
        ("3", "`p` must be a number; got str."),
        (None, "`p` must be a number; got NoneType."),
        ([3.0], "`p` must be a number; got list."),
        (float("nan"), "`p` must be finite; got nan."),
        (float("inf"), "`p` must be finite; got inf."),
    ],
)
def test_real_refuses(value, message):
    for check in (checks.real, checks.positive, checks.nonnegative, checks.probability):
        refused(check, value, message)


def test_positive():
    assert checks.positive("p", 1e-300) == 1e-300
    refused(checks.positive, 0, "`p` must be above 0; got 0.")
    refused(checks.positive, -2.5, "`p` must be above 0; got -2.5.")


def test_nonnegative():
    assert checks.nonnegative("p", 0) == 0.0
    refused(checks.nonnegative, -1e-9, "`p` must be at least 0; got -1e-09.")


def test_probability():
    assert checks.probability("p", 0.5) == 0.5
    for value in (0, 1, -0.1, 1.1):
        refused(checks.probability, value, f"`p` must be strictly between 0 and 1; got {value:g}.")


def test_whole():
    assert checks.whole("p", np.int32(4)) == 4 and type(checks.whole("p", np.int32(4))) is int
    assert checks.whole("p", 0) == 0
    refused(checks.whole, -1, "`p` must be at least 0; got -1.")
    refused(checks.whole, 1, "`p` must be at least 2; got 1.", least=2)
    refused(checks.whole, 3.0, "`p` must be a whole number; got float.")
    refused(checks.whole, True, "`p` must be a whole number; got bool.")


def test_choice():
    assert checks.choice("p", "norm", ("norm", "gaussian")) == "norm"
    with pytest.raises(ParameterError, match=r"^`p` must be one of norm, gaussian; got 'laplace'\.$"):
        checks.choice("p", "laplace", ("norm", "gaussian"))
    with pytest.raises(ParameterError, match="got None"):
        checks.choice("p", None, ("norm",))

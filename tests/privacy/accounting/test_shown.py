"""What is shown of a bound is never below it, wherever it is shown."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.example_run import run_facts, site_facts
from taciturn.errors import BudgetExceeded
from taciturn.privacy.accounting.shown import odds, rounded_down, rounded_up, shown_delta
from taciturn.privacy.certificate.certificate import Certificate
from taciturn.privacy.facts import Charge, SiteBudget
from taciturn.privacy.ledger.memory import MemoryLedger
from taciturn.report.html.numbers import power, written

SOURCE = Path(__file__).resolve().parents[3] / "src" / "taciturn"
_UP = 1 - 4e-15  # what a product of floats may lose
bounds = st.floats(1e-12, 1e12)
deltas = st.floats(1e-300, 0.999)


@given(bounds)
@example(1.67154)
@example(2.9600000001)
def test_a_bound_is_shown_from_above_and_a_rest_from_below(value):
    assert value * _UP <= float(rounded_up(value)) <= value * 1.01 + 1e-300
    assert value * 0.99 <= float(rounded_down(value)) <= value / _UP
    if value > 1e-6:
        assert float(written(value, "bound")) >= value * _UP


@given(deltas)
@example(1.2345674e-5)
@example(9.9999999e-6)
def test_a_delta_is_shown_from_above(delta):
    assert delta <= float(shown_delta(delta)) <= delta * (1 + 2e-5)
    if delta > 1e-15:
        assert 1 / int(odds(delta).removeprefix("1 in ").replace(",", "")) >= delta * (1 - 1e-9)
    text = power(delta).translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
    if delta < 1e-2:
        digits, exponent = re.fullmatch(r"(?:(.*) × )?10(-\d+)", text).groups()
        assert float(f"{digits or 1}e{exponent}") >= delta * _UP


def test_a_budget_that_is_passed_is_told_from_above():
    ledger = MemoryLedger(run_facts(), site_facts(1), SiteBudget(0.3, 1e-5))
    with pytest.raises(BudgetExceeded) as caught:
        for t in range(1, 5):
            ledger.charge(Charge(0, t, 0.5, 3.0))
    free = MemoryLedger(run_facts(), site_facts(1), SiteBudget(99.0, 1e-5))
    for t in (1, 2):
        free.charge(Charge(0, t, 0.5, 3.0))
    truth = Certificate.from_ledger(free, 1e-5).epsilon
    told = float(re.search(r"epsilon = ([0-9.]+)", str(caught.value))[1])
    assert truth <= told <= 1.01 * truth


def test_no_line_of_the_package_formats_an_epsilon_to_the_nearest():
    """Every f-string: what is called epsilon, pure or certified goes through a function that rounds up."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FormattedValue) or node.format_spec is None:
                continue
            value, form = ast.unparse(node.value), ast.unparse(node.format_spec)
            if re.search(r"(^|[.'_\[])(epsilon|certified|pure|renyi)\b", value) and "." in form:
                found.append(f"{path.relative_to(SOURCE)}:{node.lineno}: {value}")
    assert not found

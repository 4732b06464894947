"""A displayed bound is never below its value."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.example_run import run_facts, site_facts
from taciturn.core.errors import BudgetExceeded
from taciturn.core.formatting import format_at_least, format_cost, format_delta, format_odds
from taciturn.privacy.certificate.certificate import Certificate
from taciturn.privacy.facts import Charge, SiteBudget
from taciturn.privacy.ledger.memory import MemoryLedger
from taciturn.report.html.number_tables import digits
from taciturn.report.html.numbers import power, written

SOURCE = Path(__file__).resolve().parents[2] / "src" / "taciturn"
_UP = 1 - 4e-15  # what a product of floats may lose
COSTS = re.compile(r"(^|[.'_\[(])(epsilon|certified|pure|renyi|spent|alone)\b")
bounds = st.floats(1e-12, 1e12)
deltas = st.floats(1e-300, 0.999)


@given(bounds)
@example(1.67154)
@example(2.9600000001)
def test_bounds_are_rounded_up_and_remainders_are_rounded_down(value):
    assert value * _UP <= float(format_cost(value)) <= value * 1.01 + 1e-300
    assert value * 0.99 <= float(format_at_least(value)) <= value / _UP
    if value > 1e-6:
        assert float(written(value, "bound")) >= value * _UP


@given(deltas)
@example(1.2345674e-5)
@example(9.9999999e-6)
def test_delta_is_rounded_up(delta):
    assert delta <= float(format_delta(delta)) <= delta * (1 + 2e-5)
    if delta > 1e-15:
        assert 1 / int(format_odds(delta).removeprefix("1 in ").replace(",", "")) >= delta * (1 - 1e-9)
    text = power(delta).translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
    if delta < 1e-2:
        digits, exponent = re.fullmatch(r"(?:(.*) × )?10(-\d+)", text).groups()
        assert float(f"{digits or 1}e{exponent}") >= delta * _UP


def test_exceeded_budget_is_shown_rounded_up():
    ledger = MemoryLedger(run_facts(), site_facts(1), SiteBudget(0.3, 1e-5))
    with pytest.raises(BudgetExceeded) as caught:
        for t in range(1, 5):
            ledger.charge(Charge(0, t, 0.5, 3.0))
    free = MemoryLedger(run_facts(), site_facts(1), SiteBudget(99.0, 1e-5))
    for t in (1, 2):
        free.charge(Charge(0, t, 0.5, 3.0))
    truth = Certificate.from_ledger(free, 1e-5).charged_epsilon
    told = float(re.search(r"raise the epsilon of .* to ([0-9.]+),", str(caught.value))[1])
    assert truth <= told <= 1.01 * truth


def test_every_page_shows_the_same_digits():
    assert format_cost(0.12345) == written(0.12345, "bound") == digits(0.12345, "bound") == "0.124"
    assert float(format_cost(58.05)) == 58.1


def formats_a_cost_by_hand(node: ast.AST) -> bool:
    """An f-string that writes what is called a cost with digits of its own choice, or rounds it."""
    if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
        value, form = ast.unparse(node.value), ast.unparse(node.format_spec)
        return bool(COSTS.search(value)) and bool(re.fullmatch(r"f'[#0-9.,]*[efg%]'", form))
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("round", "np.round", "format"):
        return any(COSTS.search(ast.unparse(argument)) for argument in node.args)
    return False


@pytest.mark.parametrize("line", ["f'{run.epsilon:.3f}'", "f'{epsilon:g}'", "round(cost.epsilon, 2)"])
def test_a_cost_that_is_formatted_by_hand_is_found(line):
    assert any(map(formats_a_cost_by_hand, ast.walk(ast.parse(line))))
    assert not any(map(formats_a_cost_by_hand, ast.walk(ast.parse("f'{format_cost(epsilon):>9} {n:.3f}'"))))


def test_no_line_of_the_package_formats_a_cost_by_hand():
    """`format_cost` formats costs, `format_at_least` remainders, and `format_given` limits."""
    found = [
        f"{path.relative_to(SOURCE)}:{getattr(node, 'lineno', 0)}"
        for path in sorted(SOURCE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if formats_a_cost_by_hand(node)
    ]
    assert not found

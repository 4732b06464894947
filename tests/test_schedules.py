"""Schedules: values, JSON both ways, tables, and every refusal."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn import Constant, Geometric, Table, schedules
from taciturn.core.errors import ParameterError

POSITIVE = st.floats(1e-3, 1e3)
ANY = st.one_of(
    st.builds(Constant, POSITIVE),
    st.builds(Geometric, POSITIVE, st.floats(0.5, 2.0)),
    st.builds(lambda start, more: Geometric(start, 1.5, cap=start + more), POSITIVE, POSITIVE),
    st.builds(Table, st.lists(POSITIVE, min_size=1, max_size=5)),
)


def test_values():
    assert [Constant(2)(t) for t in (1, 9)] == [2.0, 2.0]
    assert [Geometric(3.0, 2.0)(t) for t in (1, 2, 3)] == [3.0, 6.0, 12.0]
    assert [Geometric(3.0, 2.0, cap=7.0)(t) for t in (1, 2, 3)] == [3.0, 6.0, 7.0]
    assert [Table([1, 5])(t) for t in (1, 2, 3)] == [1.0, 5.0, 5.0]


def test_overflow_is_infinite_and_caught_by_the_table():
    assert Geometric(1.0, 10.0)(400) == np.inf
    assert Geometric(1.0, 10.0, cap=5.0)(400) == 5.0


def test_bounded():
    assert Constant(1.0).bounded and Table([1.0, 2.0]).bounded
    assert Geometric(1.0, 1.0).bounded and Geometric(1.0, 0.9).bounded
    assert Geometric(1.0, 1.1, cap=2.0).bounded and not Geometric(1.0, 1.1).bounded


def test_frozen_and_hashable():
    assert {Constant(1), Constant(1.0)} == {Constant(1.0)}
    assert hash(Table([1, 2])) == hash(Table((1.0, 2.0)))
    with pytest.raises(AttributeError):
        Constant(1.0).value = 2.0


@pytest.mark.parametrize("bad", [0, -1.0, np.inf, np.nan, "1", None, True])
def test_refusals_name_the_parameter(bad):
    with pytest.raises(ParameterError, match="`value` must be"):
        Constant(bad)
    with pytest.raises(ParameterError, match="`start` must be"):
        Geometric(bad)
    with pytest.raises(ParameterError, match="`ratio` must be"):
        Geometric(1.0, bad)
    with pytest.raises(ParameterError, match=r"`values\[1\]` must be"):
        Table([1.0, bad])
    with pytest.raises(ParameterError, match="`eta` must be"):
        schedules.as_schedule("eta", bad)


@pytest.mark.parametrize("bad", [0, -1.0, np.inf, np.nan, "1", True])
def test_bad_caps(bad):
    with pytest.raises(ParameterError, match="`cap` must be"):
        Geometric(1.0, 1.1, cap=bad)


def test_cap_below_start_and_empty_table():
    with pytest.raises(ParameterError, match=r"^`cap` must be at least `start` = 2; got 1\.$"):
        Geometric(2.0, 1.1, cap=1.0)
    with pytest.raises(ParameterError, match=r"^`values` must contain at least one number; it is empty\.$"):
        Table([])


def test_as_schedule_and_per_site():
    schedule = Geometric(1.0, 2.0)
    assert schedules.as_schedule("eta", schedule) is schedule
    assert schedules.as_schedule("eta", 3) == Constant(3.0)
    assert schedules.per_site("eta", 3.0, 2) == (Constant(3.0), Constant(3.0))
    assert schedules.per_site("eta", [1.0, schedule], 2) == (Constant(1.0), schedule)
    assert schedules.per_site("eta", np.array([1.0, 2.0]), 2) == (Constant(1.0), Constant(2.0))
    with pytest.raises(ParameterError, match=r"^`eta` must have one entry for each of the 3 sites; got 2\.$"):
        schedules.per_site("eta", [1.0, 2.0], 3)
    with pytest.raises(ParameterError, match=r"`eta\[1\]` must be above 0; got -2\."):
        schedules.per_site("eta", [1.0, -2.0], 2)
    with pytest.raises(ParameterError, match="`eta` must be a number; got str"):
        schedules.per_site("eta", "12", 2)


def test_tabulate():
    table = schedules.tabulate("eta", [Constant(2.0), Geometric(1.0, 3.0)], 3)
    assert table.tolist() == [[2.0, 2.0, 2.0], [1.0, 3.0, 9.0]]
    with pytest.raises(
        ParameterError, match=r"^`eta` must stay finite and above 0; got inf at t=310 for site 1\.$"
    ):
        schedules.tabulate("eta", [Constant(1.0), Geometric(1.0, 10.0)], 400)
    with pytest.raises(ParameterError, match=r"got 0 at t=\d+ for site 0"):
        schedules.tabulate("eta", [Geometric(1.0, 0.1)], 400)


def test_any_callable_with_bounded_is_a_schedule():
    class Steps:
        bounded = True

        def __call__(self, t):
            return float(t)

    assert isinstance(Steps(), schedules.Schedule)
    assert (
        schedules.tabulate("eta", schedules.per_site("eta", Steps(), 2), 3).tolist() == [[1.0, 2.0, 3.0]] * 2
    )
    with pytest.raises(ParameterError, match="type Steps cannot be written as JSON; use a `Table`"):
        schedules.to_dict(Steps())


@given(ANY)
def test_json_both_ways(schedule):
    assert schedules.from_dict(schedules.to_dict(schedule)) == schedule


def test_json_refusals():
    with pytest.raises(
        ParameterError, match="`kind` must be one of constant, geometric, table; got 'cosine'"
    ):
        schedules.from_dict({"kind": "cosine"})
    with pytest.raises(ParameterError, match="`kind` must be one of"):
        schedules.from_dict({"value": 1.0})
    with pytest.raises(ParameterError, match=r"a constant schedule does not accept these keys: \['speed'\]"):
        schedules.from_dict({"kind": "constant", "speed": 1.0})
    with pytest.raises(ParameterError, match=r"a geometric schedule needs these keys: \['start'\]"):
        schedules.from_dict({"kind": "geometric", "ratio": 1.0})
    with pytest.raises(ParameterError, match="`value` must be a number; got str"):
        schedules.from_dict("fast")
    with pytest.raises(ParameterError, match="`value` must be above 0"):
        schedules.from_dict({"kind": "constant", "value": -1.0})


@pytest.mark.parametrize("values", [5, None, {1: 2.0}])
def test_table_of_something_else_than_a_list_is_refused(values):
    with pytest.raises(ParameterError, match="`values` must be a list of numbers; got"):
        schedules.from_dict({"kind": "table", "values": values})


@pytest.mark.parametrize("values", ["high", [1.0, [2.0]]])
def test_rounds_that_are_not_numbers_are_refused_by_name(values):
    with pytest.raises(ParameterError, match="`penalty` must be a number, or a list of one number per round"):
        schedules.trim_repeats("penalty", values)

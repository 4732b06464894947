"""Every schedule keeps what `Schedule` promises: a positive number for each round, fixed beforehand."""

from __future__ import annotations

import json
import tomllib

import numpy as np
import pytest

import taciturn as tt
from taciturn.core.errors import ParameterError
from taciturn.schedules import SCHEDULES, Schedule, from_dict, tabulate, to_dict

EXAMPLES: list[Schedule] = [
    tt.Constant(0.5),
    tt.Geometric(0.5, 1.04),
    tt.Geometric(2.0, 0.9),
    tt.Geometric(0.5, 1.5, cap=3.0),
    tt.Table([0.5]),
    tt.Table([0.5, 0.7, 0.6]),
]
every_schedule = pytest.mark.parametrize("schedule", EXAMPLES, ids=repr)


def test_no_kind_goes_untested() -> None:
    assert {type(schedule) for schedule in EXAMPLES} == set(SCHEDULES.values())


@every_schedule
def test_it_is_positive_and_finite_and_the_same_whenever_it_is_asked(schedule: Schedule) -> None:
    assert isinstance(schedule, Schedule)
    forth = [schedule(t) for t in range(1, 200)]
    back = [schedule(t) for t in range(199, 0, -1)]
    assert forth == back[::-1] and all(type(value) is float and 0 < value < np.inf for value in forth)


@every_schedule
def test_bounded_schedule_stays_below_its_bound(schedule: Schedule) -> None:
    far = schedule(10**6)
    assert (far <= max(schedule(t) for t in range(1, 100))) == schedule.bounded


@every_schedule
def test_it_is_a_fact(schedule: Schedule) -> None:
    again = from_dict(to_dict(schedule))
    assert again == schedule and hash(again) == hash(schedule) and repr(again) == repr(schedule)
    for name in vars(schedule):
        with pytest.raises(AttributeError):
            setattr(schedule, name, 1.0)


@every_schedule
def test_json_and_toml_bring_it_back_to_the_last_bit(schedule: Schedule) -> None:
    entry = to_dict(schedule)
    assert from_dict(json.loads(json.dumps(entry))) == schedule
    pairs = (
        ", ".join(f"{key} = {json.dumps(value)}" for key, value in entry.items())
        if isinstance(entry, dict)
        else ""
    )
    written = f"penalty = {{ {pairs} }}" if pairs else f"penalty = {entry!r}"
    assert from_dict(tomllib.loads(written)["penalty"]) == schedule


@pytest.mark.parametrize("kind", SCHEDULES)
def test_a_key_too_many_or_a_bad_number_is_refused_by_name(kind: str) -> None:
    entry = next(
        {"kind": kind, **vars(schedule)} for schedule in EXAMPLES if type(schedule) is SCHEDULES[kind]
    )
    with pytest.raises(ParameterError, match="does not accept these keys: \\['theta'\\]"):
        from_dict(entry | {"theta": 1.0})
    name = next(name for name in entry if name != "kind")
    bad = [0.0] if isinstance(entry[name], tuple) else 0.0
    with pytest.raises(ParameterError, match=f"`{name}"):
        from_dict(entry | {name: bad})


@every_schedule
def test_schedule_can_serve_as_any_parameter_that_varies_by_round(schedule: Schedule) -> None:
    expected = [[schedule(t) for t in (1, 2, 3)]] * 2
    assert tabulate("penalty", (schedule, schedule), 3).tolist() == expected
    noise = tt.NormNoise(rate=[schedule, schedule])
    tables = tt.PenaltyPerturbation(
        schedule, schedule, noise, output_noise=tt.GaussianNoise(schedule)
    ).tables(2, 3)
    for table in (tables.eta, tables.theta, tables.scale, tables.output_scale):
        assert table is not None and table.tolist() == expected

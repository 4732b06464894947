from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import taciturn as tt
from taciturn.core.errors import ParameterError
from taciturn.data import FeatureMap
from taciturn.data.features.blind_choice import choose_map
from taciturn.data.features.expansion import Expansion, frequencies

MAP = FeatureMap(
    ranges={0: (0, 1), 1: (-5, 1e6, "log"), 2: (18, 90)}, groups=[[3, 4], [5]], curves=5, surfaces=7
)
hostile = st.one_of(st.floats(), st.sampled_from([0.0, 1.0, 1e308, -1e308, 90.0, 17.999]))


@given(st.lists(st.lists(hostile, min_size=6, max_size=6), min_size=1, max_size=20))
@settings(deadline=None)
def test_no_row_is_longer_than_1_whatever_it_holds(rows: list[list[float]]) -> None:
    Z = MAP.transform(np.array(rows))
    assert np.isfinite(Z).all()
    assert all(math.fsum(value * value for value in z) <= 1.0 for z in Z)


def test_hostile_rows_are_finite_and_no_longer_than_1() -> None:
    odd = [np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0, 0.3, 18.0, 90.0]
    rows = np.array([[a, b, c, d, a, b] for a, b, c, d in product(odd, odd, odd, (np.nan, 1.0, np.inf))])
    Z = MAP.transform(rows)
    assert np.isfinite(Z).all()
    assert all(sum(Fraction(value) ** 2 for value in z.tolist()) <= 1 for z in Z[::7])


@pytest.mark.parametrize("numbers", range(1, 9))
def test_the_longest_rows_are_within_the_bound_to_the_last_bit(numbers: int) -> None:
    """At the ends of all ranges a row has norm exactly 1: rounding must not lift it above."""
    one = FeatureMap(ranges={k: (0, 1) for k in range(numbers)}, curves=9, surfaces=0)
    Z = one.transform(np.vstack([np.eye(numbers), np.ones((1, numbers)), np.zeros((1, numbers))]))
    exact = [sum(Fraction(value) ** 2 for value in z.tolist()) for z in Z]
    assert all(1 - 1e-12 < square <= 1 for square in exact)


def test_two_flags_of_one_group_do_not_shorten_the_other_columns() -> None:
    one = FeatureMap(ranges={0: (0, 1)}, groups=[[1, 2, 3]], curves=3, surfaces=0)
    Z = one.transform([[0.2, 1, 0, 0], [0.2, 1, 1, 1]])
    assert np.allclose(Z[0, :5], Z[1, :5], rtol=1e-12) and np.linalg.norm(Z[1, 5:]) == pytest.approx(0.5**0.5)


def test_text_and_none_are_missing_values() -> None:
    Z = MAP.transform(np.array([["a", None, "30", 1, 0, 0]], dtype=object))
    names = MAP.get_feature_names_out().tolist()
    assert Z[0, names.index("x0?")] > 0 and Z[0, names.index("x1?")] > 0 and Z[0, names.index("x2?")] == 0


def test_a_row_depends_on_itself_alone() -> None:
    X = np.random.default_rng(0).uniform(size=(50, 6)) * 100
    whole = MAP.transform(X)
    assert np.allclose(whole[7:8], MAP.transform(X[7:8]), rtol=0, atol=1e-15)
    assert np.array_equal(whole, clone(MAP).fit(X[:3]).transform(X))


@pytest.mark.parametrize("rows", [1, 2, 7, 64, 199])
def test_a_row_has_the_same_bits_whatever_rows_are_expanded_beside_it(rows: int) -> None:
    rng = np.random.default_rng(0)
    wide = FeatureMap(ranges={k: (0, 1) for k in range(20)}, curves=5, surfaces=50)
    for some_map, columns in ((MAP, 6), (wide, 20)):
        X = rng.uniform(size=(200, columns))
        whole, some = some_map.transform(X), rng.permutation(200)[:rows]
        assert some_map.lazy_rows(X).take(some).tobytes() == whole[some].tobytes()
        assert some_map.transform(X[some]).tobytes() == whole[some].tobytes()


def test_hats_are_the_linear_interpolation_between_knots() -> None:
    one = FeatureMap(ranges={0: (10, 20)}, curves=5, surfaces=0)
    values = np.array([10.0, 11.0, 13.7, 20.0, 25.0])
    hats = one.transform(values[:, None])[:, 1:6]
    weights = np.array([3.0, -1.0, 4.0, 1.0, -5.0])
    expected = np.interp(values, np.linspace(10, 20, 5), weights) * math.sqrt(0.7)
    assert np.allclose(hats @ weights, expected, atol=1e-12)


def test_a_missing_number_has_an_indicator_and_a_norm_like_the_others() -> None:
    Z = FeatureMap(ranges={0: (0, 1), 1: (0, 1)}, curves=3, surfaces=0).transform([[np.nan, 0.5]])
    assert np.allclose(Z[0], [0, 0, 0, 0, 0.5**0.5, 0, 0, 0.35**0.5, 0, 0])


def test_frequencies_are_normal_and_follow_from_the_seed_alone() -> None:
    w, phase = frequencies(0, 4000, 3)
    assert abs(w.mean()) < 0.1 and abs(w.std() - 2) < 0.05 and 0 <= phase.min() < phase.max() < 2 * math.pi
    assert np.array_equal(w, frequencies(0, 4000, 3)[0]) and not np.allclose(w, frequencies(1, 4000, 3)[0])
    few, phases = frequencies(7, 1, 2)
    assert np.allclose([*few[0], *phases], PINNED, rtol=1e-12)


PINNED = [-0.39178870592618364, 0.007766761904277117, 5.790316369804838]


def test_the_names_fit_the_columns() -> None:
    names = MAP.get_feature_names_out().tolist()
    assert len(names) == MAP.transform(np.zeros((1, 6))).shape[1] == len(set(names))
    assert names[:8] == ["x0", "x0@1", "x0@2", "x0@3", "x0@4", "x0@5", "x0?", "x1"]
    assert names[-9:-7] == ["x4", "x5"] and names[-1] == "surface 7"
    by_name = FeatureMap(ranges={"age": (0, 100)}, groups=[["ward"]], curves=2, surfaces=0)
    assert by_name.get_feature_names_out().tolist() == ["age", "age@1", "age@2", "age?", "ward"]
    table = {"ward": [1, 0], "age": [50, 10]}
    assert np.allclose(
        by_name.transform(table),
        FeatureMap(ranges={0: (0, 100)}, groups=[[1]], curves=2, surfaces=0).transform([[50, 1], [10, 0]]),
    )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "`ranges` must give the public range"),
        ({"ranges": {0: (0, 1)}}, "column 1 is in neither"),
        ({"ranges": {0: (0, 1), 7: (0, 1)}, "groups": [[1]]}, "name the column 7"),
        ({"ranges": {0: (0, 1), 1: (2, 1)}}, "must be above low = 2"),
        ({"ranges": {0: (0, 1), 1: (0, 1, "root")}}, "must be .low, high. or"),
        ({"ranges": {0: (0, 1), 1: (0, 1)}, "groups": [[1]]}, "each column of X once"),
        ({"ranges": {0: (0, 1), 1: (0, 1)}, "groups": 3}, "`groups` must list"),
        ({"ranges": {0: (0, 1), 1: (0, 1)}, "curves": -1}, "`curves` must be at least 0"),
        ({"ranges": {0: (0, 1), 1: (0, 1)}, "surfaces": -1}, "`surfaces` must be at least 0"),
        ({"ranges": {0: (0, 1), 1: (0, 1)}, "surfaces": 10**9}, "`surfaces` must be at most"),
        ({"ranges": {0: (0, 1), 1: (0, 1)}, "curves": "auto"}, "`n` must be given"),
        ({"ranges": {0: (0, 1), 1: (0, 1)}, "curves": "auto", "n": 9}, "`epsilon` must be given"),
        ({"ranges": {0: (0, 1), 1: (0, 1)}, "curves": "many"}, "`curves` must be"),
    ],
)
def test_wrong_parameters_are_refused_in_one_line(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        FeatureMap(**({"curves": 3, "surfaces": 2} | parameters)).fit([[0.0, 1.0]])


def test_more_records_and_budget_never_make_the_map_smaller() -> None:
    for numbers, others in ((3, 0), (6, 99), (20, 10)):
        sizes = [
            [sum(choose_map(n, e, 1e-5, numbers=numbers, others=others)) for e in (0.01, 0.1, 1, math.inf)]
            for n in (100, 3_000, 30_000, 10**6, 10**8)
        ]
        assert sizes == np.maximum.accumulate(np.maximum.accumulate(sizes, axis=0), axis=1).tolist()
        assert sizes[0][0] == 0 and sizes[-1][-1] == 109
    assert choose_map(10**8, 10.0, 1e-5, numbers=0, others=30) == (0, 0)


def test_the_choice_is_reported_and_can_be_made_in_part() -> None:
    given = {"ranges": {0: (0, 1)}, "n": 10**6, "epsilon": 1.0}
    assert FeatureMap(**given).chosen == (9, 100)
    assert FeatureMap(**given, surfaces=0).chosen == (9, 0)
    assert FeatureMap(**given | {"n": 100}).chosen == (0, 0)
    assert FeatureMap(**given | {"epsilon": 1e-5}).chosen == (0, 0)
    assert FeatureMap(**given | {"epsilon": 1e-4, "delta": 1e-9}).chosen == (0, 0)
    assert FeatureMap(**given | {"epsilon": 0.001, "delta": 1e-2}).chosen == (9, 100)


def test_a_private_model_behind_the_map_learns_a_bend() -> None:
    draw = np.random.default_rng(0)
    X = draw.uniform(-1, 1, (20_000, 2))
    y = np.abs(X[:, 0]) > 0.5
    model = make_pipeline(
        FeatureMap(ranges={0: (-1, 1), 1: (-1, 1)}, curves=9, surfaces=0),
        tt.PrivateLogisticRegression(epsilon=1.0, colluding=1, sites=5, random_state=0),
    ).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model[-1].certificate_.epsilon <= 1.0


def test_an_expansion_without_numbers_has_no_surfaces() -> None:
    Z = Expansion(9, 50).rows(np.zeros((2, 0)), [np.eye(2)])
    assert np.array_equal(Z, np.eye(2)) and Expansion(9, 50).names((), [["a", "b"]]) == ("a", "b")

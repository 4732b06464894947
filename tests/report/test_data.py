"""The data classes of a report, and their checks."""

import pytest

from taciturn.core.errors import ParameterError
from taciturn.report import Chart, Curve, KeyNumber, NetworkMap, ReportData, SiteCosts


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Curve("a", (1, 2), (0.1,)), "`mean` must have one value per round, so 2 in total; got 1"),
        (lambda: Curve("a", (1, 2), (0.1, 0.2), (0.1,), (0.2, 0.3)), "`low` must have one value per round"),
        (lambda: Curve("a", (1,), (0.1,), (0.1,)), "`low` and `high` must be given together"),
        (lambda: Chart("k", "t", "l", (), format="euro"), "`format` must be one of plain, percent, bound"),
        (lambda: KeyNumber("Loss", 1.0, "euro"), "`format` must be one of"),
        (
            lambda: SiteCosts("a", (1.0, 2.0), ((1.0,),)),
            "`by_round` must have one row per site, so 2 in total",
        ),
        (lambda: NetworkMap(("a", "b"), ((0, 1),), ((0.0, 0.0),)), "`places` must have one point per site"),
        (
            lambda: NetworkMap(("a", "b"), ((0, 2),), ((0.0, 0.0), (1.0, 1.0))),
            "`edges` must name sites 0 to 1",
        ),
    ],
)
def test_facts_that_do_not_fit_are_refused(make, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        make()


def test_names_keep_their_first_order() -> None:
    curves = [Curve("b", (1,), (1.0,)), Curve("a", (1,), (1.0,))]
    data = ReportData("t", "h", key_numbers={"c": ()}, charts=[Chart("k", "t", "l", curves)])
    assert data.names == ("c", "b", "a")

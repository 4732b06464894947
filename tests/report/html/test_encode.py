"""JSON inside a page."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.core.errors import ParameterError
from taciturn.report import ReportData
from taciturn.report.html.numbers import embed, to_plain


@given(st.text())
def test_any_text_survives_encoding_and_cannot_close_the_script(text: str) -> None:
    inside = embed(ReportData(text, text + "</script><!--\u2028\u2029", settings={text: text}))
    assert inside.isascii()
    assert not set("<>&") & set(inside)
    found = json.loads(inside)
    assert found["title"] == text and found["settings"] == {text: text}
    assert found["headline"].endswith("</script><!--\u2028\u2029")


def test_numbers_come_back_exactly(single: ReportData) -> None:
    found = json.loads(embed(single))
    assert found["charts"][0]["curves"][0]["mean"] == single.charts[0].curves[0].mean
    assert found["names"] == list(single.names)


def test_infinities_and_nan_are_encoded_as_text(single: ReportData) -> None:
    found = to_plain(
        replace(single, settings={"a": math.inf, "b": -math.inf, "c": math.nan, "d": np.float64(2.0)})
    )
    assert found["settings"] == {"a": "inf", "b": "-inf", "c": None, "d": 2.0}


def test_arrays_are_lists_and_objects_are_refused(single: ReportData) -> None:
    assert to_plain(replace(single, settings={"a": np.arange(3)}))["settings"] == {"a": [0, 1, 2]}
    with pytest.raises(ParameterError, match="got object"):
        to_plain(replace(single, settings={"a": object()}))

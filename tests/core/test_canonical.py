"""JSON that every reader accepts: RFC 8259 knows neither NaN nor Infinity."""

import json

import numpy as np
import pytest

from taciturn.core.canonical import canonical, plain
from taciturn.core.errors import ParameterError


def test_plain_facts_have_no_number_that_json_cannot_write():
    facts = {"low": -np.inf, "each": (np.float64(1.5), np.nan), 3: np.array([np.inf, 2])}
    expected = {"low": "-inf", "each": [1.5, None], "3": ["inf", 2.0]}
    assert plain(facts) == expected and json.loads(canonical(plain(facts))) == expected
    with pytest.raises(ParameterError, match="got set"):
        plain({1, 2})


def test_result_of_a_question_with_an_infinite_bound_is_json():
    from taciturn.questions.asking import Asking

    class Answer:
        kind = "evaluate"

        def facts(self):
            return {"R2": {"value": 0.1, "low": -np.inf}}

    asking = Asking((Answer(),), None, None)
    document = asking.document([Answer()], np.zeros(2), {"run": {}})
    assert json.loads(json.dumps(document, allow_nan=False))["answers"][0]["R2"]["low"] == "-inf"

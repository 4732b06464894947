"""What docs/utility.md says is what a user gets."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

import taciturn as tt
from taciturn.errors import DataUnavailable

NUMBERS = Path(__file__).resolve().parents[2] / "docs" / "utility.json"
OURS = "taciturn (planned, never tuned)"


@pytest.fixture(scope="module")
def table():
    """Adult, five sites, (1, 1e-5), by contender; rivals as tuned on the test rows."""
    rows = json.loads(NUMBERS.read_text(encoding="utf-8"))
    return {
        row["contender"]: row
        for row in rows
        if (row["data"], row["sites"], row["epsilon"]) == ("adult", 5, 1.0)
        and (row["contender"] == OURS or not row["blind"])
    }


def test_the_aim_is_met(table):
    own, base = table[OURS], table["no privacy, pooled"]["loss"]
    price = table["objective perturbation, pooled"]["loss"] - base
    assert own["accuracy"] >= 0.82 and own["loss"] - base <= 1.5 * price and own["spent"] <= 1.0
    peers = [row for name, row in table.items() if row["decentralised"] and name != OURS]
    assert len(peers) >= 6
    for row in peers:  # chance: ten seeds each
        error = math.hypot(own["loss_std"], row["loss_std"]) / math.sqrt(own["seeds"])
        assert own["loss"] <= row["loss"] + 2 * error, row["contender"]
    for name in ("each site alone", "DVP, the papers' accounting"):
        assert own["loss"] - base < 0.7 * (table[name]["loss"] - base)


def test_five_lines_give_what_the_table_says(table, adult_files):
    try:
        adult = tt.data.load_adult(scaling="public")
    except DataUnavailable as reason:
        pytest.skip(str(reason))
    X, y, test = adult.X, adult.y, adult.test
    clf = tt.PrivateLogisticRegression(epsilon=1.0, delta=1e-5, sites=5).fit(X[~test], y[~test])
    own = table[OURS]
    assert abs(clf.score(X[test], y[test]) - own["accuracy"]) < 6 * own["accuracy_std"] + 0.002
    assert clf.certificate_.epsilon <= 1.0 and not clf.certificate_.run.simulated

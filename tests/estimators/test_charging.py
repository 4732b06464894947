"""The ledger file of a fit: one per fit, and the source of its certificate."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

from taciturn.core.errors import ParameterError
from taciturn.estimators import PrivateLogisticRegression
from taciturn.estimators.charging import LedgerFile
from taciturn.privacy.certificate.certificate import Certificate
from taciturn.privacy.ledger.disk import SqliteLedger


@pytest.mark.parametrize("classes", [2, 4])
def test_the_certificate_is_that_of_the_file(rows, quick, tmp_path, classes):
    X, _ = rows
    y = np.digitize(X[:, 0], np.linspace(-0.3, 0.3, classes - 1))
    fitted = PrivateLogisticRegression(ledger=tmp_path / "a.sqlite", classes=range(classes), **quick).fit(
        X, y
    )
    with SqliteLedger(tmp_path / "a.sqlite", readonly=True) as ledger:
        found = Certificate.from_ledger(ledger, 1e-5, fitted.certificate_.released)
        assert found.to_json() == fitted.certificate_.to_json()
        assert ledger.run.outputs == len(fitted.trace_.released[0, 0]) and not ledger.run.simulated
        assert ledger.head == fitted.certificate_.head and ledger.budgets[0].epsilon == 1.0
    plain = PrivateLogisticRegression(classes=range(classes), **quick).fit(X, y)
    assert plain.certificate_.epsilon == fitted.certificate_.epsilon <= 1.0


def test_marks_are_shown(rows, quick, tmp_path):
    X, y = rows
    file = LedgerFile(tmp_path / "a.sqlite", marks=("something else was released",))
    fitted = PrivateLogisticRegression(ledger=file, **quick).fit(X, y)
    assert "something else was released" in fitted.certificate_.statement()


def test_every_fit_needs_a_file_of_its_own(rows, quick, tmp_path):
    X, y = rows
    model = PrivateLogisticRegression(ledger=str(tmp_path / "a.sqlite"), **quick).fit(X, y)
    with pytest.raises(ParameterError, match=r"`ledger` must be a new file; .* exists"):
        model.fit(X, y)
    with pytest.raises(ParameterError, match="Every fit spends budget again"):
        cross_val_score(model, X, y, error_score="raise")


@pytest.mark.parametrize(
    ("ledger", "seed", "words"),
    [("a.sqlite", 0, "`ledger` must be None with a `random_state`"), (3, None, "must be a path; got int")],
)
def test_unrecordable_fits_are_refused(rows, quick, tmp_path, monkeypatch, ledger, seed, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParameterError, match=words):
        PrivateLogisticRegression(ledger=ledger, random_state=seed, **quick).fit(*rows)
    assert not list(tmp_path.iterdir())

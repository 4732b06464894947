"""The estimators behave as scikit-learn's own do."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from joblib import parallel_config
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from taciturn.core.errors import DataError
from taciturn.data import BoundedEncoder, Category, Number, Schema
from taciturn.estimators import PrivateHuberRegressor, PrivateLinearSVC, PrivateLogisticRegression

pytestmark = pytest.mark.filterwarnings(
    "ignore::taciturn.core.errors.ClippedRowsWarning"
)  # long rows on purpose
ALL = [PrivateLogisticRegression, PrivateLinearSVC, PrivateHuberRegressor]
CANNOT_APPLY: dict[type, dict[str, str]] = {  # check -> reason
    PrivateHuberRegressor: {
        "check_supervised_y_no_nan": "a row without a target becomes zeros: an error would tell of it"
    }
}
SKIPPED = {"check_array_api_input": "scikit-learn skips it unless SCIPY_ARRAY_API is set"}


@pytest.mark.parametrize("kind", ALL)
def test_check_estimator(kind, quick):
    results = check_estimator(
        kind(random_state=0, **quick), expected_failed_checks=CANNOT_APPLY.get(kind), on_skip=None
    )
    skipped = {result["check_name"] for result in results if result["status"] == "skipped"}
    assert skipped <= set(SKIPPED) and len(results) > 40


def test_a_pipeline_from_a_table_to_a_model(quick):
    rng = np.random.default_rng(0)
    age, sex = rng.integers(20, 80, 2000), np.array(["female", "male"])[rng.integers(0, 2, 2000)]
    table = {"age": age, "sex": sex}
    y = age + 20 * (sex == "male") > 60
    schema = Schema((Number("age", 0, 100), Category("sex", ("female", "male"))))
    model = make_pipeline(BoundedEncoder(schema), PrivateLogisticRegression(epsilon=2.0, **quick)).fit(
        table, y
    )
    assert model.score(table, y) > 0.75
    assert model[-1].certificate_.epsilon <= 2.0


@pytest.mark.parametrize("kind", ALL)
def test_cross_validation_clone_and_search(kind, rows, quick):
    X, labels = rows
    y = X[:, 0] if kind is PrivateHuberRegressor else labels
    model = kind(epsilon=1.0, **quick)
    assert clone(model).get_params() == model.get_params()
    assert np.isfinite(cross_val_score(model, X, y, cv=2)).all()
    found = GridSearchCV(model, {"epsilon": [0.5, 2.0]}, cv=2).fit(X, y)
    assert found.best_estimator_.certificate_.epsilon <= found.best_params_["epsilon"]


def test_every_fold_has_a_certificate_of_its_own(rows, quick):
    X, y = rows
    done = cross_validate(PrivateLogisticRegression(**quick), X, y, cv=3, return_estimator=True)
    costs = [fold.certificate_.epsilon for fold in done["estimator"]]
    assert len(costs) == 3 and all(0.9 < cost <= 1.0 for cost in costs)


def test_the_site_is_routed_through_a_pipeline(rows, quick):
    X, y = rows
    site = np.arange(len(y)) % 3
    with sklearn.config_context(enable_metadata_routing=True):
        last = PrivateLogisticRegression(**quick).set_fit_request(site=True)
        model = Pipeline([("same", FunctionTransformer()), ("fit", last)]).fit(X, y, site=site)
        assert len(model[-1].certificate_.sites) == 3
        done = cross_validate(last, X, y, params={"site": site}, cv=2, return_estimator=True)
    assert all(len(fold.certificate_.sites) == 3 for fold in done["estimator"])


def test_set_output_before_a_fit(rows, quick):
    pandas = pytest.importorskip("pandas", reason="the extra `tables` is not installed")
    X, y = rows
    scaled = StandardScaler().set_output(transform="pandas")
    model = make_pipeline(scaled, PrivateLogisticRegression(data_norm=2.0, **quick))
    model.fit(pandas.DataFrame(X, columns=list("abcd")), y)
    assert list(model[-1].feature_names_in_) == list("abcd")


def test_sparse_and_dense_rows_give_the_same_model(rows, quick):
    X, y = rows
    X = np.where(np.abs(X) < 0.2, 0.0, X)
    dense = PrivateLogisticRegression(random_state=0, **quick).fit(X, y)
    thin = PrivateLogisticRegression(random_state=0, **quick).fit(sparse.csr_matrix(X), y)
    assert thin.coef_ == pytest.approx(dense.coef_, abs=1e-5)
    assert np.array_equal(thin.predict(sparse.csr_array(X)), thin.predict(X))


@pytest.mark.filterwarnings("ignore:A worker stopped")  # one that grew too much: loky starts another
def test_workers_draw_noise_of_their_own(rows, quick):
    """Four fits on the same rows at the same sites, over two processes of loky: four models."""
    X, y = rows
    model = PrivateLogisticRegression(classes=["no", "yes"], **quick)
    every = np.arange(len(y))
    with parallel_config(backend="loky", n_jobs=2):
        done = cross_validate(
            model, X, y, cv=[(every, every)] * 4, params={"site": every % 2}, return_estimator=True
        )
    assert len({tuple(fold.coef_.ravel()) for fold in done["estimator"]}) == 4
    assert len({tuple(fold.trace_.released.ravel()) for fold in done["estimator"]}) == 4


@pytest.mark.parametrize("kind", ALL)
def test_weights_are_refused(kind, rows, quick):
    X, y = rows
    with pytest.raises(TypeError, match="sample_weight"):
        kind(**quick).fit(X, y == "yes", sample_weight=np.ones(len(y)))


def test_a_missing_value_points_to_the_encoder(rows):
    X = rows[0].copy()
    X[3, 1] = np.nan
    with pytest.raises(DataError, match=r"contains NaN or infinity\. Remove these rows, or encode"):
        PrivateLogisticRegression().fit(X, rows[1])


def test_calibration_from_a_table_with_nullable_columns(quick):
    pandas = pytest.importorskip("pandas", reason="the extra `tables` is not installed")
    rng = np.random.default_rng(0)
    table = pandas.DataFrame(
        {"age": rng.integers(0, 90, 600), "sex": rng.choice(["f", "m"], 600)}
    ).convert_dtypes()
    y = pandas.Series(table["age"] > 45, dtype="boolean")
    table.loc[3, "age"] = pandas.NA
    schema = Schema((Number("age", 0, 100), Category("sex", ("f", "m"))))
    model = make_pipeline(BoundedEncoder(schema), PrivateLogisticRegression(epsilon=9.0, **quick))
    chances = CalibratedClassifierCV(model, cv=2).fit(table, y).predict_proba(table)
    assert chances.shape == (600, 2) and chances.sum(axis=1) == pytest.approx(1)

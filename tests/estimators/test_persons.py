"""`fit(..., person=ids)`: rows of a person stay together, count as one, and the certificate covers them."""

import numpy as np
import pytest

from taciturn import PrivateHuberRegressor, PrivateLogisticRegression
from taciturn.core.errors import DataError, ParameterError
from taciturn.data.tables.dealing import assign_sites

RNG = np.random.default_rng(0)
PERSONS = 120
IDS = RNG.permutation(np.repeat(np.arange(PERSONS), 3))
X = RNG.normal(size=(len(IDS), 3)) / 6
Y = np.where(X[:, 0] > 0, 1, 0)
BARE = {"epsilon": 4.0, "sites": 3, "random_state": 0, "max_rounds": 5}
SETTINGS = BARE | {"effort": "quick"}


def test_rows_of_a_person_are_dealt_to_one_site():
    places = assign_sites(len(IDS), None, 3, "complete", 1, IDS)
    assert all(len(set(places.site[IDS == one])) == 1 for one in range(PERSONS))
    assert sum(places.samples) == PERSONS and max(places.samples) - min(places.samples) <= 1


def test_the_certificate_covers_the_person():
    fitted = PrivateLogisticRegression(**SETTINGS).fit(X, Y, person=IDS)
    run = fitted.certificate_.run
    assert (run.unit, run.persons, run.noise) == ("person", PERSONS, "gaussian")
    assert fitted.certificate_.epsilon <= 4.0
    assert sum(facts.samples for facts in fitted.certificate_.sites) == PERSONS
    assert "all records of the target person" in fitted.certificate_.statement()
    by_row = PrivateLogisticRegression(**SETTINGS).fit(X, Y)
    assert by_row.certificate_.run.unit == "record"


@pytest.mark.parametrize("labels", [Y, np.digitize(X[:, 0], [-0.1, 0.1])])
def test_masked_fits_cover_the_person(labels):
    """The noise is set for the number of persons: three rows of a person count as one."""
    fitted = PrivateLogisticRegression(**BARE, colluding=1).fit(X, labels, person=IDS)
    run = fitted.certificate_.run
    assert (run.unit, run.persons, run.method) == ("person", PERSONS, "masked")
    assert fitted.certificate_.epsilon <= 4.0
    by_row = PrivateLogisticRegression(**BARE, colluding=1).fit(X, labels).certificate_.run
    assert run.sums[1].sensitivity == pytest.approx(3 * by_row.sums[1].sensitivity)
    assert by_row.unit == "record"


def test_a_regression_covers_persons_too():
    fitted = PrivateHuberRegressor(**SETTINGS).fit(X, X[:, 1], person=IDS.astype(str))
    assert fitted.certificate_.run.unit == "person"


@pytest.mark.parametrize(
    ("person", "word"),
    [
        (IDS[:-1], "person's id for each"),
        (np.where(IDS == 3, np.nan, IDS), "missing"),
        ([None, *IDS[1:]], "one type"),
    ],
)
def test_incomplete_persons_ids_are_refused(person, word):
    with pytest.raises(DataError, match=word):
        PrivateLogisticRegression(**SETTINGS).fit(X, Y, person=person)


def test_a_person_at_two_sites_and_norm_noise_are_refused():
    site = np.arange(len(IDS)) % 3
    with pytest.raises(DataError, match="at one site"):
        PrivateLogisticRegression(**SETTINGS).fit(X, Y, site=site, person=IDS)
    with pytest.raises(ParameterError, match="Gaussian"):
        PrivateLogisticRegression(**SETTINGS, noise="norm").fit(X, Y, person=IDS)
    with pytest.raises(ParameterError, match="delta"):
        PrivateLogisticRegression(**SETTINGS, delta=0).fit(X, Y, person=IDS)

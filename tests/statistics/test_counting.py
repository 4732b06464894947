"""One sum of counts: its cost, its result, and that the charged noise is added."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import norm

import taciturn as tt
from taciturn.core.errors import BudgetExceeded, ParameterError
from taciturn.privacy.facts import RunFacts
from taciturn.privacy.ledger.disk import SqliteLedger
from taciturn.privacy.loss_facts import LossFacts
from taciturn.privacy.sums import COUNTS, SumFacts
from taciturn.questions.answer import PrivateAnswer
from taciturn.questions.question import CountsQuestion, NoisyCounts, PublicTable
from taciturn.statistics.counting import CountWishes, ask_here

ROWS = 1000


@dataclass(frozen=True, eq=False)
class Counted(PrivateAnswer):
    """The counts themselves."""

    found: NoisyCounts
    title = ""

    def table(self):
        return [[""]]

    def facts(self):
        return {}

    @property
    def tables(self):
        return self.found.tables

    @property
    def sigma(self):
        return self.found.sigma

    @property
    def units(self):
        return self.found.units


class InTables(CountsQuestion):
    """Cells that are known already."""

    sizes: tuple[int, ...]

    def reads(self, public):
        return ()

    def lengths(self, public):
        return self.sizes

    def cells(self, public, table):
        return table.array

    def estimate(self, public, found):
        return Counted(found)


def release_counts(cells, lengths, wishes, what):
    """One sum of counts of rows in these cells."""
    (found,) = ask_here([InTables(sizes=lengths)], PublicTable(), cells, len(cells), wishes, what)
    return found


def release(epsilon=0.5, tables=1, **wishes):
    """Rows in 4 cells of each table, the k-th of them in cell k mod 4."""
    cells = np.tile((np.arange(ROWS) % 4)[:, None], (1, tables))
    return release_counts(cells, (4,) * tables, CountWishes(epsilon, **wishes), "counts")


def delta_at(mu, epsilon):
    return norm.cdf(-epsilon / mu + mu / 2) - np.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2)


@pytest.mark.parametrize("colluding", [None, 0, 1])
@pytest.mark.parametrize("tables", [1, 5])
def test_the_noise_is_what_one_record_needs(tables, colluding):
    """From the measured move of the tables by one record, and the noise of the honest sites."""
    found = release(tables=tables, colluding=colluding)
    one, other = np.zeros((tables, 4)), np.zeros((tables, 4))
    one[:, 0], other[:, 1] = 1, 1
    honest = {None: 1, 0: 5, 1: 4}[colluding]
    mu = np.linalg.norm(one - other) / (found.sigma * np.sqrt(honest / 5))
    assert 0.999e-5 < delta_at(mu, 0.5) < 1e-5
    assert found.certificate.epsilon <= 0.5 and found.certificate.epsilon > 0.4999
    assert len(found.certificate.sites) == 5 and found.certificate.run.where == "process"


def test_the_noise_that_is_charged_is_drawn():
    """Real noise in 400 cells: half the noise, or none at one site, fails this test."""
    found = release(tables=100)
    noise = np.concatenate(found.tables) - ROWS / 4
    assert 0.8 < np.std(noise) / found.sigma < 1.2
    assert np.abs(np.mean(noise)) < 5 * found.sigma / 20
    assert not np.array_equal(release().tables[0], release().tables[0])


def test_a_simulation_can_be_replayed_and_is_marked():
    one, two = release(random_state=3), release(random_state=3)
    np.testing.assert_array_equal(one.tables[0], two.tables[0])
    assert one.certificate.run.simulated and "SIMULATED" in one.certificate.statement()


def test_a_certificate_of_counts_is_verified_and_believes_no_smaller_sensitivity():
    found = release(tables=3)
    again = tt.Certificate.from_json(found.certificate.to_json())
    again.verify()
    assert "made 3 tables of counts from them" in again.statement()
    run = found.certificate.run
    entry = run.sums[0]
    facts = {
        "method": "masked",
        "noise": "discrete",
        "sites": 5,
        "rounds": 1,
        "C": 1.0,
        "regularization": 0.0,
    }
    facts |= {"records": ROWS, "largest": 200, "loss": LossFacts(COUNTS, 1.0, 0.0)}
    smaller = SumFacts(1, COUNTS, entry.length, entry.sensitivity / 2, 0.0, entry.grid, entry.std)
    with pytest.raises(ParameterError, match=r"`sensitivity` of sum 1 must be at least 2\.44949"):
        RunFacts(dimension=3, sums=(smaller,), **facts)
    with pytest.raises(ParameterError, match="`part` must fit the loss"):
        RunFacts(dimension=3, sums=(entry,), **(facts | {"loss": LossFacts("logistic", 1.0, 0.25)}))


def test_all_rows_of_a_person_weigh_one():
    person = np.repeat(np.arange(250), 4)
    cells = np.where(person == 0, 0, 1)[:, None]
    many = release_counts(cells, (2,), CountWishes(50, person=person, colluding=1), "counts")
    np.testing.assert_allclose(many.tables[0], [1, 249], atol=2)
    run = many.certificate.run
    assert (run.unit, run.persons, run.records, many.units) == ("person", 250, None, 250)
    assert "one person" in many.certificate.statement()


@pytest.mark.parametrize("rows", [3, 7])
def test_the_rows_of_a_person_never_weigh_more_than_one(rows):
    """The same seed draws the same noise, so that the difference of two releases is that of their counts."""

    def counts(each):
        person = np.repeat(np.arange(250), each)
        cells = np.where(person == 0, 0, 1)[:, None]
        wishes = CountWishes(1, person=person, colluding=1, random_state=4, large_delta=True)
        return release_counts(cells, (2,), wishes, "counts")

    one, many = counts(1), counts(rows)
    grid = one.certificate.run.sums[0].grid
    assert grid == many.certificate.run.sums[0].grid and one.sigma == many.sigma
    moved = many.tables[0] - one.tables[0]
    assert -rows * grid < moved[0] <= 0 and -250 * rows * grid < moved[1] <= 0


def test_it_is_charged_to_the_budget_before_anything_is_drawn(tmp_path, monkeypatch):
    from taciturn.methods.sums import sums

    with tt.Budget(tmp_path / "b.sqlite", epsilon=1) as budget:
        found = release(epsilon=0.6, colluding=1)
        assert budget.spent == pytest.approx(found.certificate.epsilon, rel=1e-9)
        assert budget.runs[0].what == "counts" and budget.runs[0].finished
        monkeypatch.setattr(sums, "draw", lambda *_, **__: pytest.fail("drawn"))
        with pytest.raises(BudgetExceeded):
            release(epsilon=0.9)
        with pytest.raises(ParameterError, match="`random_state` must be None inside a Budget"):
            release(random_state=0)
    assert len(budget.runs) == 1


def test_its_record_is_on_disk(tmp_path):
    found = release(ledger=tmp_path / "a.sqlite")
    with SqliteLedger(tmp_path / "a.sqlite", readonly=True) as ledger:
        again = tt.Certificate.from_ledger(ledger, 1e-5, found.certificate.released)
    assert again.to_json() == found.certificate.to_json()


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        ({"epsilon": 0}, "`epsilon`"),
        ({"epsilon": 1e15}, "`epsilon` is too large, because no proof covers so little noise"),
        ({"epsilon": 1, "delta": 0}, "`delta`"),
        ({"epsilon": 1, "delta": 0.01}, "`delta` must be at most 1/1,000"),
        ({"epsilon": 1, "colluding": 5}, "`colluding`"),
        ({"epsilon": 1, "random_state": 0, "ledger": "a"}, "`ledger` must be None"),
    ],
)
def test_senseless_requests_are_refused(wishes, words):
    with pytest.raises(ParameterError, match=words):
        release(**wishes)


def test_documents_of_counts_do_not_mention_a_model():
    from taciturn.report.card import model_card
    from taciturn.report.registry import registry_entry

    certificate = release(tables=2).certificate
    entry = registry_entry(certificate)
    assert "Summary statistics" in entry and "records counted in 2 tables" in entry
    assert "linear model" not in entry and "norm at most" not in certificate.to_json()
    with pytest.raises(ParameterError, match="this is the certificate of counts"):
        model_card(certificate)

"""The file of a budget: created once, append-only, verified whenever it is read."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import replace
from types import SimpleNamespace

import pytest

import taciturn as tt
from support.example_run import certificate
from taciturn.core.errors import BudgetExceeded, LedgerError, ParameterError
from taciturn.privacy.ledger import budget_file
from taciturn.privacy.ledger.active import active_budget
from taciturn.privacy.ledger.budget import _against
from taciturn.privacy.ledger.budget_file import open_rows
from taciturn.privacy.ledger.disk import SqliteLedger
from taciturn.privacy.ledger.pricing import LEAK

REAL = {"simulated": False, "where": "process", "output_noise": "gaussian", "noise": "gaussian", "tol": 1e-9}


def planned(scale: float = 30.0, **changes):
    """A plan of three rounds; the more noise, the less it costs."""
    return certificate(sites=3, scale=scale, **(REAL | changes))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.sqlite"


def test_it_is_begun_once_and_comes_back_as_it_was(path):
    budget = tt.Budget(path, epsilon=3, delta=1e-6)
    assert (budget.epsilon, budget.delta, budget.unit, budget.spent, budget.left) == (3, 1e-6, "record", 0, 3)
    assert budget.accountant is None
    number = budget.reserve(planned(), "a fit")
    again = tt.Budget(path)
    assert (again.epsilon, again.delta, again.accountant) == (3, 1e-6, "gaussian")
    assert [(run.what, run.finished) for run in again.runs] == [("a fit", False)]
    again.finish(number)
    assert tt.Budget(path, epsilon=3, delta=1e-6).runs[0].finished
    assert (
        budget.spent == again.spent == pytest.approx(planned(delta=1e-6).epsilon if False else budget.spent)
    )


def test_what_one_run_cost_is_what_its_certificate_says(path):
    budget = tt.Budget(path, epsilon=3)
    budget.reserve(planned(), "one")
    assert budget.spent == planned().epsilon  # both at delta = 1e-5
    budget.reserve(planned(), "two")
    assert planned().epsilon < budget.spent < 1.6 * planned().epsilon  # nearer sqrt(2) than 2 of it


def test_two_processes_on_one_budget_file_see_each_others_charges(path):
    one, two = tt.Budget(path, epsilon=1), tt.Budget(path)
    while True:
        try:
            one.reserve(planned(scale=8.0), "one")
            two.reserve(planned(scale=8.0), "two")
        except BudgetExceeded:
            break
    assert 0.9 < one.spent == two.spent <= 1
    assert {run.what for run in one.runs} == {"one", "two"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"epsilon": 4}, r"created with epsilon = 3.*; got 4\."),
        ({"delta": 1e-6}, "created with delta"),
        ({"unit": "person"}, "created with unit"),
    ],
)
def test_its_terms_never_change(path, given, words):
    tt.Budget(path, epsilon=3)
    with pytest.raises(LedgerError, match=words):
        tt.Budget(path, **given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"epsilon": -1}, "`epsilon`"),
        ({"epsilon": 1, "delta": 1.5}, "`delta`"),
        ({"epsilon": 1, "unit": "row"}, "`unit`"),
        ({"epsilon": 1, "accountant": "best"}, "`accountant`"),
        ({"epsilon": 1, "delta": 0, "accountant": "renyi"}, "`delta`"),
    ],
)
def test_invalid_terms_create_no_file(path, given, words):
    with pytest.raises(ParameterError, match=words):
        tt.Budget(path, **given)
    assert not path.exists()


def test_a_file_that_is_not_there_or_is_something_else(path, tmp_path):
    with pytest.raises(LedgerError, match="there is no budget at"):
        tt.Budget(path)
    facts = planned()
    with SqliteLedger(path, facts.run, facts.sites):
        pass
    with pytest.raises(LedgerError, match="is the ledger of one run"):
        tt.Budget(path)
    (tmp_path / "text").write_text("no database at all, but long enough to look like one")
    with pytest.raises(LedgerError, match="text is not a budget file"):
        tt.Budget(tmp_path / "text", epsilon=1)


@pytest.mark.parametrize("given", [{}, {"epsilon": 1}])
def test_empty_file_is_not_a_new_budget(path, given):
    path.touch()
    with pytest.raises(LedgerError, match="is empty: its charges are lost"):
        tt.Budget(path, **given)
    assert path.stat().st_size == 0


def test_budget_file_is_created_atomically(path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(budget_file, "begin", lambda *_: interrupt())
        with pytest.raises(KeyboardInterrupt):
            tt.Budget(path, epsilon=1)
    assert list(path.parent.iterdir()) == []


def interrupt():
    raise KeyboardInterrupt


@pytest.mark.parametrize("links", [True, False])
def test_first_of_several_concurrent_creators_wins(path, monkeypatch, links):
    if not links:  # as on some disks
        monkeypatch.setattr(os, "link", lambda *_: os.stat(path.parent / "nothing"))
    tt.Budget(path, epsilon=1).reserve(planned(), "a fit")
    budget_file.make(path, budget_file.BudgetTerms(2.0, 1e-5, "record", None))
    assert len(tt.Budget(path, epsilon=1).runs) == 1 and list(path.parent.iterdir()) == [path]


def test_a_row_that_was_changed_or_cut_is_found(path):
    budget = tt.Budget(path, epsilon=3)
    budget.reserve(planned(), "a fit")
    head = budget.head
    before = path.read_bytes()
    budget.reserve(planned(), "another")
    later = budget.head
    path.write_bytes(before)  # restored from a backup: the file alone cannot show it
    assert len(tt.Budget(path, at_least=head).runs) == 1
    with pytest.raises(LedgerError, match="truncated or"):
        tt.Budget(path, at_least=later)
    with sqlite3.connect(path) as db:
        db.execute("DROP TRIGGER ledger_keeps")
        db.execute("UPDATE ledger SET body = replace(body, '\"mu\"', '\"nu\"') WHERE seq = 1")
    with pytest.raises(LedgerError, match="altered"):
        tt.Budget(path)


@pytest.mark.parametrize("how", ["put back", "begun again"])
def test_a_file_that_is_restored_while_its_budget_is_in_use_is_refused(path, how):
    """The file alone cannot show the rollback, but the object has seen the later charges."""
    budget = tt.Budget(path, epsilon=3)
    before = path.read_bytes()
    with budget:
        budget.reserve(planned(), "a fit")
        path.unlink()
        if how == "put back":
            path.write_bytes(before)
        else:
            tt.Budget(path, epsilon=3)
        for use in (lambda: budget.reserve(planned(), "another"), lambda: budget.spent, lambda: budget.left):
            with pytest.raises(LedgerError, match="restored from a backup"):
                use()


def test_runs_that_no_budget_admits_are_refused(path):
    with tt.Budget(path, epsilon=1) as budget:
        with pytest.raises(ParameterError, match="`random_state` must be None inside a Budget"):
            budget.reserve(certificate(scale=30.0), "a rehearsal")
        with pytest.raises(ParameterError, match="`idealised` must be False inside a Budget"):
            budget.reserve(planned(output_noise=None), "an exact minimiser")
        with pytest.raises(ParameterError, match="`data_norm` must be a public number"):
            budget.reserve(planned(marks=(LEAK,)), "a bound from the rows")
        none = planned(noise="none", method="none", output_noise=None, scale=0.0)
        with pytest.raises(BudgetExceeded, match="too large or unknown"):
            budget.reserve(none, "no noise")
        limit = tt.SiteBudget(9.0, 1e-5, order=8.0)
        with pytest.raises(ParameterError, match="`order`"):
            budget.reserve(replace(planned(), budgets=(limit,) * 3), "it reacts")
        assert budget.runs == () and budget.left == 1


def test_budget_for_persons_admits_only_runs_that_cover_persons(path):
    person = {"unit": "person", "persons": 27132}
    persons = tt.Budget(path, epsilon=3, unit="person")
    with pytest.raises(BudgetExceeded, match="give `person`"):
        persons.reserve(planned(), "a fit")
    persons.reserve(planned(**person), "a fit")
    records = tt.Budget(path.with_name("b.sqlite"), epsilon=3)
    records.reserve(planned(**person), "who protects a person protects a record")


def test_norm_noise_is_added_up_at_one_order_beside_gaussian_noise(path):
    norm = {"noise": "norm", "output_noise": "norm"}
    budget = tt.Budget(path, epsilon=3, accountant="renyi")
    budget.reserve(planned(scale=3.0, **norm), "norm")
    budget.reserve(planned(), "gaussian")
    both = budget.spent
    assert both < planned(scale=3.0, **norm).epsilon + planned().epsilon
    first = tt.Budget(path.with_name("b.sqlite"), epsilon=3)
    first.reserve(planned(scale=3.0, **norm), "norm")
    assert first.accountant == "renyi"
    gaussian = tt.Budget(path.with_name("c.sqlite"), epsilon=3, accountant="gaussian")
    gaussian.reserve(planned(), "gaussian")
    with pytest.raises(BudgetExceeded, match="accountant='renyi'"):
        gaussian.reserve(planned(scale=3.0, rounds=40, **norm), "norm")


def test_a_pure_budget_adds_up_pure_epsilons(path):
    norm = {"noise": "norm", "output_noise": "norm"}
    pure = planned(scale=3.0, **norm).pure_epsilon
    budget = tt.Budget(path, epsilon=2.5 * pure, delta=0)
    for _ in range(2):
        budget.reserve(planned(scale=3.0, **norm), "norm")
    assert budget.spent == pytest.approx(2 * pure) and budget.left == pytest.approx(0.5 * pure)
    for what in (planned(scale=3.0, **norm), planned()):
        with pytest.raises(BudgetExceeded):
            budget.reserve(what, "too much")


def test_a_delta_above_one_over_the_records_is_refused_unless_insisted_on(path):
    with pytest.raises(ParameterError, match="`delta` must be at most 1/27,132"):
        tt.Budget(path, epsilon=3, delta=1e-3).reserve(planned(), "a fit")
    tt.Budget(path.with_name("b.sqlite"), epsilon=3, delta=1e-3, large_delta=True).reserve(planned(), "a fit")


def test_one_budget_at_a_time_and_none_after_the_block(path):
    other = tt.Budget(path.with_name("b.sqlite"), epsilon=1)
    with tt.Budget(path, epsilon=1) as budget:
        assert active_budget() is budget
        with pytest.raises(LedgerError, match="is in use in this process"), other:
            raise AssertionError("nested")
    assert active_budget() is None


def test_it_shows_itself_rounded_to_the_safe_side(path):
    budget = tt.Budget(path, epsilon=1)
    budget.reserve(planned(), "a <fit>")
    text, page = repr(budget), budget._repr_html_()
    spent, left = (float(text.split(f"{name}=")[1].split(",")[0]) for name in ("spent", "left"))
    assert budget.spent <= spent < budget.spent + 1e-4 and budget.left - 1e-4 < left <= budget.left
    assert "a &lt;fit&gt;" in page and "not finished, but charged" in page


def test_a_commit_survives_a_power_cut(path):
    tt.Budget(path, epsilon=1)
    with open_rows(path) as db:
        assert db.execute("PRAGMA synchronous").fetchone() == (3,)


@pytest.mark.parametrize(
    ("colluding", "words"), [(None, "if at most 4 of 4 other"), (1, "if at most 1 of 4 other")]
)
def test_a_masked_run_is_listed_with_whom_its_cost_holds_against(colluding, words):
    run = SimpleNamespace(masked=True, colluding=colluding, sites=5)
    assert words in _against(SimpleNamespace(run=run))

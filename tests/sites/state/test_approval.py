"""A site runs only what its owner approved, and logs every answer in a tamper-evident log."""

import sqlite3
from contextlib import closing

import pytest

from sites.state.test_account import admitted, edit, real_site
from support.sitework import PATH_OF_3, network, shards
from taciturn.cli.app import run
from taciturn.core.errors import ExitCode, WrongFiles
from taciturn.privacy.ledger import chain
from taciturn.sites.files.site import ApprovalRules, load_site
from taciturn.sites.rounds.prepare import make_ready
from taciturn.sites.state.account import open_account
from taciturn.sites.state.approval import JobQuestion, _misses, audit_log, decide, question
from taciturn.sites.trial.rehearsal import make_network


@pytest.fixture
def ready(tmp_path):
    """A site of a real job without rules."""
    return real_site(tmp_path / "net", approve=None, patience=0.5)


def answers(ready):
    return [(entry["answer"], entry["by"]) for entry in audit_log(open_account(ready.site)).entries()]


def test_unapproved_job_is_not_run(ready, capsys):
    path = ready.site.folder / "site.toml"
    assert run(["site", "run", str(path)]) == ExitCode.WRONG_FILES
    assert "is not approved by the owner of the table" in capsys.readouterr().err
    assert not ready.site.state.exists() and answers(ready) == [("refused", "rules")]
    assert run(["site", "run", str(path)]) == ExitCode.WRONG_FILES
    assert answers(ready) == [("refused", "rules")]  # the same answer once


def test_an_owner_approves_by_hand_what_was_shown(ready, capsys):
    path = str(ready.site.folder / "site.toml")
    assert run(["site", "approve", path, "--yes"]) == 0
    out = capsys.readouterr().out
    assert "asks: train, in 5 rounds" in out and "of the columns X, y" in out
    assert (
        "at a cost of epsilon" in out
        and "for any one record" in out
        and "one more job may cost at most" in out
    )
    admitted(ready)
    assert answers(ready) == [("approved", "hand")]
    assert run(["site", "approve", path, "--refuse"]) == 1
    with pytest.raises(WrongFiles, match="refused by hand"):
        admitted(ready)
    capsys.readouterr()
    assert run(["site", "approve", path, "--log"]) == 0
    assert [line.split()[1:4] for line in capsys.readouterr().out.splitlines()] == [
        ["approved", "by", "hand:"],
        ["refused", "by", "hand:"],
    ]


def test_a_process_that_is_killed_while_it_creates_the_log_leaves_a_usable_site(ready, monkeypatch):
    """An empty log would be refused, because answers may have been removed from it."""
    log, written = audit_log(open_account(ready.site)), chain.append

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(chain, "append", killed)
    with pytest.raises(KeyboardInterrupt):
        log.append({"answer": "approved"})
    monkeypatch.setattr(chain, "append", written)
    assert log.entries() == []
    with pytest.raises(WrongFiles, match="not approved"):
        admitted(ready)
    assert answers(ready) == [("refused", "rules")]


def test_an_approval_is_for_one_question_at_one_cost(ready):
    """Another job, other schedules or other rows are another question."""
    path = ready.site.folder / "site.toml"
    assert run(["site", "approve", str(path), "--yes"]) == 0
    noisy = make_ready(edit(path, noise={"kind": "gaussian", "std": 0.9}))
    with pytest.raises(WrongFiles, match="not approved"):
        admitted(noisy)
    edit(path, noise={"kind": "gaussian", "std": 1.0})
    job = path.parent.parent / "job.toml"
    job.write_text(job.read_text().replace('name = "trial"', 'name = "second"'))
    with pytest.raises(WrongFiles, match="not approved"):
        admitted(make_ready(load_site(path)))


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        ({"kinds": ["train"]}, None),
        ({"kinds": ["train"], "columns": ["X", "y"], "epsilon": 50.0}, None),
        ({"kinds": ["train"], "columns": ["X"]}, "`approve.columns` does not allow y"),
        ({"kinds": ["train"], "epsilon": 0.1}, "and `approve.epsilon` is 0.1"),
    ],
)
def test_rules_approve_kinds_columns_and_costs(ready, rules, why):
    own = make_ready(edit(ready.site.folder / "site.toml", approve=rules))
    decision = decide(own.site, own.planned(), open_account(own.site))
    assert decision.allowed == (why is None) and (why or "approved by the rules") in decision.why
    assert question(own.site, own.planned()).epsilon == own.planned().epsilon
    assert open_account(own.site).seen().left == pytest.approx(50.0)


def test_a_rule_for_an_unknown_kind_is_refused(ready):
    with pytest.raises(WrongFiles, match=r"`approve`.*must be among train"):
        edit(ready.site.folder / "site.toml", approve={"kinds": ["tarin"]})


def test_a_changed_audit_log_is_noticed(ready):
    path = ready.site.folder / "site.toml"
    for option in ("--yes", "--refuse"):
        run(["site", "approve", str(path), option])
    log = audit_log(open_account(ready.site)).path
    with closing(sqlite3.connect(log)) as db:
        db.execute("DROP TRIGGER ledger_keeps")
        db.execute("UPDATE ledger SET body = replace(body, 'refused', 'approved')")
        db.commit()
    with pytest.raises(WrongFiles, match="was altered"):
        admitted(ready)


def test_rehearsal_needs_no_approval(tmp_path, capsys):
    path = network(tmp_path)[0]
    assert run(["site", "approve", str(path)]) == 0
    assert "a rehearsal needs no approval" in capsys.readouterr().out
    assert admitted(make_ready(load_site(path))) is None
    assert run(["site", "check", str(path), "--wait", "0"]) == 0
    out = capsys.readouterr().out
    assert "note  the job has a seed" in out and "ok    the job has a seed" not in out


def asking_site(folder, rules, **keys):
    """A site of a job that asks questions; its cost as its owner counts it."""
    schema = {"fields": [{"name": "age", "low": 0, "high": 100}, {"name": "sex", "values": ["f", "m"]}]}
    job = {"name": "asked", "epsilon": 1.0, "colluding": 1, "delta": 1e-5, "schema": schema}
    job |= {"dimension": None} | keys
    own = {"budget": {"epsilon": 50.0}, "data": "rows.csv"} | ({} if rules is None else {"approve": rules})
    paths = make_network(folder, shards(3, rows=60), PATH_OF_3, job=job, site=own)
    (paths[0].parent / "rows.csv").write_text("age,sex,name\n" + "50,f,Ann\n" * 60)
    return make_ready(load_site(paths[0]))


SEVERAL = {"kind": "several", "questions": [{"kind": "describe", "columns": ["age"]}]}


@pytest.mark.parametrize(
    ("keys", "rules", "why"),
    [
        ({"kind": "describe"}, {"kinds": ["describe"]}, None),
        (SEVERAL, {"kinds": ["describe"], "columns": ["age"]}, None),
        ({"kind": "describe"}, {"kinds": ["describe"], "columns": ["age"]}, "does not allow sex"),
        (SEVERAL, {"kinds": ["train"]}, "`approve.kinds` does not allow describe"),
    ],
)
def test_every_question_of_a_job_must_be_allowed(tmp_path, keys, rules, why):
    ready = asking_site(tmp_path / "net", rules, **keys)
    decision = decide(ready.site, ready.planned(), open_account(ready.site))
    assert decision.allowed == (why is None) and (why or "approved by the rules") in decision.why
    assert ready.planned().epsilon == ready.forecast().epsilon_against(2) > 1.0


def test_programs_and_figures_of_single_sites_need_a_rule_of_their_own():
    asked = JobQuestion("j", "n", ("program",), ("age",), ("a" * 64,), True, 3, "record", 0.5, 1e-5, "")
    allowed = {"kinds": ("program",), "programs": ("a" * 64,), "by_site": True}
    assert not list(_misses(ApprovalRules(**allowed), asked))
    for key, words in (("programs", "does not allow the program"), ("by_site", "figures for single sites")):
        rules = ApprovalRules(**{name: value for name, value in allowed.items() if name != key})
        assert words in next(_misses(rules, asked))

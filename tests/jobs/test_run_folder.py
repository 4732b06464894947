"""The folder of a run: a ledger is never overwritten."""

from __future__ import annotations

from support.example_run import run_facts, site_facts
from taciturn.jobs.run_folder import LEDGER, set_aside
from taciturn.privacy.facts import Charge
from taciturn.privacy.ledger.disk import SqliteLedger


def charged(path):
    with SqliteLedger(path, run_facts(), site_facts()) as ledger:
        ledger.charge(Charge(0, 1, 0.5, 3.0))


def test_an_archived_ledger_is_never_overwritten(tmp_path):
    """ledger-1 was removed and ledger-2 remains: counting the files would name the next one ledger-2."""
    charged(tmp_path / "ledger-2.sqlite")
    before = (tmp_path / "ledger-2.sqlite").read_bytes()
    for _ in range(2):
        charged(tmp_path / LEDGER)
        set_aside(tmp_path)
    assert (tmp_path / "ledger-2.sqlite").read_bytes() == before
    assert {path.name for path in tmp_path.glob("ledger-*.sqlite")} == {
        f"ledger-{n}.sqlite" for n in (1, 2, 3)
    }

"""`taciturn certify` on masked sums: a table by the number of colluders, verified from the facts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from taciturn.cli.app import run
from taciturn.privacy.certificate.certificate import Certificate
from taciturn.privacy.facts import Charge, RunFacts, SiteFacts
from taciturn.privacy.ledger.disk import SqliteLedger
from taciturn.privacy.ledger.memory import MemoryLedger
from taciturn.privacy.loss_facts import LossFacts
from taciturn.privacy.sums import SumFacts


def masked_run() -> RunFacts:
    sums = tuple(SumFacts(t, "gradient", 3, 0.01, 1e-10, 2.0**-20, 2.0**18) for t in (1, 2))
    return RunFacts(
        "masked",
        "discrete",
        LossFacts("logistic", 1.0, 0.25),
        sites=7,
        rounds=2,
        dimension=3,
        C=1.0,
        regularization=0.0,
        sums=sums,
        records=700,
        largest=100,
        colluding=1,
    )


def charged(ledger: MemoryLedger | SqliteLedger) -> None:
    for t in (1, 2):
        for site in ledger.sites:
            ledger.charge(Charge(site.site, t, scale=2.0**18))


@pytest.fixture
def certificate() -> Certificate:
    ledger = MemoryLedger(masked_run(), [SiteFacts(i, 100, 6) for i in range(7)])
    charged(ledger)
    return Certificate.from_ledger(ledger, 1e-5)


def test_a_certificate_is_verified_and_shown_by_who_colludes(
    certificate: Certificate, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "masked.json"
    file.write_text(certificate.to_json())
    assert run(["verify", str(file)]) == 0
    shown = capsys.readouterr().out
    for words in ("no site colludes", "1 of 6 other sites collude", "all other sites collude: masks do not"):
        assert words in shown
    assert "Verified" in shown and "Theorem 3" not in shown
    assert run(["verify", str(file), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["colluding"] == 1 and len(found["epsilon_against"]) == 7
    for stated, exact in zip(found["epsilon_against"], certificate.against, strict=True):
        assert exact <= stated <= exact * 1.02  # three digits, rounded up


def test_a_certificate_that_claims_less_noise_is_needed_is_refused(
    certificate: Certificate, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = json.loads(certificate.to_json())
    body["epsilon_against"][6] = body["epsilon_against"][0]
    file = tmp_path / "forged.json"
    file.write_text(json.dumps(body))
    assert run(["verify", str(file)]) == 1
    assert "epsilon_against" in capsys.readouterr().err


def test_the_ledger_of_one_site_is_certified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "ledger.sqlite"
    with SqliteLedger(path, masked_run(), [SiteFacts(3, 100, 6)]) as ledger:
        charged(ledger)
    assert run(["verify", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["epsilon"] > 0


MASKED = "certify --method masked --sites 5 --samples 6000 --dimension 10 --epsilon 1 --colluding 1".split()


def test_settings_alone_give_the_cost_if_more_sites_collude(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*MASKED, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert 0.99 < found["epsilon"] <= 1.0 and found["colluding"] == 1
    nobody, one, *_, all_others = found["epsilon_against"]
    assert 0.87 < nobody < 0.9 and one == 1.0 and 2.1 < all_others < 2.2  # theory, section 9
    assert run(MASKED) == 0
    assert "no run took place" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("extra", "word"),
    [
        (["--std", "3"], "--std"),
        (["--penalty", "0.5"], "--penalty"),
        (["--tol", "1e-9"], "--tol"),
        (["--delta", "0"], "delta"),
        (["--samples", "0"], "samples"),
        (["--outputs", "3", "--loss", "log-cosh"], "loss"),
    ],
)
def test_contradictory_settings_are_refused(
    extra: list[str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*MASKED, *extra]) == 2
    assert word in capsys.readouterr().err


def test_what_is_missing_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["certify", "--method", "masked", "--sites", "5"]) == 2
    assert "--epsilon" in capsys.readouterr().err
    assert run(["certify", "--noise", "norm", "--epsilon", "1"]) == 2
    assert "--method masked" in capsys.readouterr().err

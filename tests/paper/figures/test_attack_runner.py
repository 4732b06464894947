"""The attack of appendix E as a figure: run once, restored as it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from taciturn.paper.claims.claim import Verdict
from taciturn.paper.claims.privacy import claims_of_attack
from taciturn.paper.figures import attack_runner
from taciturn.paper.figures.attack_runner import attack
from taciturn.paper.figures.spec import AttackFigure, load_figure
from taciturn.paper.results_store import ResultStore


@pytest.fixture
def figure(tmp_path: Path) -> AttackFigure:
    """The shipped file on little data."""
    text = (Path(attack_runner.__file__).parent / "attack.toml").read_text("utf-8")
    text = text.replace('name = "adult"', 'name = "breast-cancer"\nlimit = 300').replace(
        "C = 1750.0", "C = 50.0"
    )
    text = text.replace("rounds = 50\nrepeats = 4", "rounds = 5\nrepeats = 2")
    path = tmp_path / "attack.toml"
    path.write_text(text.replace("[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]", "[3, 5]"), "utf-8")
    found = load_figure(str(path))
    assert isinstance(found, AttackFigure)
    return found


def test_it_is_run_once_and_restored_as_it_was(
    figure: AttackFigure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ResultStore(tmp_path / "curves")
    first = attack(figure, store)
    monkeypatch.setattr(attack_runner, "run_attack", None)
    again = attack(figure, store)
    for noise, result in first.results.items():
        other = again.results[noise]
        assert np.array_equal(result.cosine, other.cosine) and np.array_equal(result.label, other.label)
        assert result.rounds == other.rounds == (1, 2, 5) and result.prior == other.prior
    assert first.to_csv() == again.to_csv() and first.to_json(quick=False) == again.to_json(quick=False)


def test_noise_hides_the_record_and_a_secret_penalty_does_not(figure: AttackFigure, tmp_path: Path) -> None:
    found = attack(figure, ResultStore(tmp_path / "curves"))
    assert found.cosine("none", "known") > 0.999 and found.cosine("none", "estimated") > 0.9
    assert abs(found.cosine("paper", "known")) < 0.5
    assert found.epsilon["none"] == np.inf and found.epsilon["paper"] < found.epsilon["little"]
    known, secret = claims_of_attack(found)
    assert (known.verdict, secret.verdict) == (Verdict.in_part, Verdict.fails)


def test_the_csv_has_one_row_per_noise_observer_look_repeat_and_record(
    figure: AttackFigure, tmp_path: Path
) -> None:
    rows = attack(figure, ResultStore(tmp_path / "curves")).to_csv().splitlines()
    assert rows[0].startswith("figure,noise,observer") and len(rows) == 1 + (1 + 3 * 2) * 4 * 3 * 2
    assert {row.split(",")[5] for row in rows[1:]} == {"3", "5"}

"""`taciturn sweep`: from a file to a table and a picture."""

from __future__ import annotations

from support.sweeps import GRID
from taciturn.cli.app import run


def test_sweep(tmp_path, capsys):
    path, out = tmp_path / "grid.toml", tmp_path / "out"
    path.write_text(GRID)
    assert run(["sweep", str(path), "--out", str(out), "--engine", "local"]) == 0
    said = capsys.readouterr().out
    assert "The Pareto front" in said and "4 combinations:" in said and "small.csv" in said
    assert sorted(p.name for p in out.iterdir()) == [
        "points",
        "small.csv",
        "small.json",
        "small.png",
        "small.svg",
    ]


def test_wrong_use(tmp_path, capsys):
    assert run(["sweep", str(tmp_path / "missing.toml"), "--out", str(tmp_path)]) == 2
    path = tmp_path / "grid.toml"
    path.write_text(GRID.replace('kind = "complete"', 'kind = "blob"'))
    assert run(["sweep", str(path), "--out", str(tmp_path / "out")]) == 1
    assert "graph.kind" in capsys.readouterr().err and not (tmp_path / "out").exists()

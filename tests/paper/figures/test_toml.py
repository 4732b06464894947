"""Figures as data: every shipped file is complete, and a mistake is named with file and key."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.small import SMALL, write_small
from taciturn.core.errors import ParameterError
from taciturn.paper.figures import spec
from taciturn.paper.figures.spec import SHIPPED, Figure, load_figure

PENALTIES = ((0.55, 1.01), (0.65, 1.03), (0.6, 1.1), (0.55, 1.2), (0.6, 1.02))


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_file_is_valid_and_called_as_itself(name: str, quick: bool) -> None:
    assert load_figure(name, quick=quick).name == name


def test_quick_takes_less_of_everything() -> None:
    for name in SHIPPED:
        small, full = load_figure(name, quick=True), load_figure(name)
        assert small.run.rounds < full.run.rounds and small.data.limit is not None


def test_fig1a_has_the_penalties_of_the_paper() -> None:
    figure = load_figure("fig1a")
    assert isinstance(figure, Figure)
    for curve in figure.curves:
        assert [(one.start, one.ratio) for one in curve.penalty] == list(PENALTIES)
        assert all((one.cap is not None) == (curve.name == "capped") for one in curve.penalty)


def test_fig2_to_fig4_have_the_numbers_that_the_paper_states() -> None:
    for name in ("fig2", "fig3", "fig4"):
        figure = load_figure(name)
        assert isinstance(figure, Figure) and figure.run.repeats == 10
        for curve in figure.curves:
            assert curve.penalty(1) == 0.5 and curve.noise.rate.start in (
                (3.0, 5.0) if name == "fig2" else (3.0,)
            )
    assert load_figure("fig3").data.sites == load_figure("fig4").data.sites == 100


def test_a_file_by_path_and_a_seed_in_place_of_its_own(tmp_path: Path) -> None:
    path = str(write_small(tmp_path))
    assert load_figure(path).run.seed == 0
    assert load_figure(path, seed=7).run.seed == 7
    assert load_figure(path, quick=True).run.rounds == 2


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("rounds = 4", "rounds = 0", "run.rounds"),
        ("rounds = 4", "rounds = 4\nspeed = 1", "run.speed"),
        ('kind = "ring"', 'kind = "circle"', "graph.kind"),
        ('kind = "ring"', 'kind = "ring"\ndegree = 3', "degree"),
        ("ratio = 1.1 }", "ratio = -1.1 }", "curves.1.penalty"),
        (
            'method = "dual"\npenalty = 0.5',
            'method = "dual"\npenalty = { kind = "geometric", start = 0.5 }',
            "penalty",
        ),
        ('method = "dual"\npenalty = 0.5', 'method = "dual"\npenalty = [0.5, 0.5]', "penalty"),
        ("dual_step = 0.5", "dual_step = [0.5, 0.5]", "curves.1.dual_step"),
        ('noise = { kind = "gaussian", std = 0.3 }', "", "noise"),
        ('noise = { kind = "gaussian", std = 0.3 }', 'noise = { kind = "laplace" }', "curves.2.noise"),
        ('name = "PP"', 'name = "DVP"', "name"),
        ('colour = "#0072B2"', 'colour = "blue"', "curves.1.colour"),
        ('name = "PP"', 'name = "PP"\npanel = "left"', "curves.1.panel"),
        ("delta = 1e-5", "delta = 1.5", "run.delta"),
        ("[quick.run]", '[[panels]]\nname = "a"\ntitle = ""\n[quick.run]', "`curves.0.panel` must name one"),
        ('name = "DVP"', 'name = "DVP"\npanel = "a"', "`curves.0.panel` must name one"),
    ],
)
def test_a_mistake_is_named_with_file_and_key(tmp_path: Path, old: str, new: str, key: str) -> None:
    path = write_small(tmp_path, **{old: new})
    with pytest.raises(ParameterError, match=re.escape(key)) as raised:
        load_figure(str(path))
    assert str(raised.value).startswith(f"{path}: ") and "\n" not in str(raised.value)


PANELS = '[[panels]]\nname = "a"\ntitle = "A"\n[[panels]]\nname = "b"\ntitle = "B"\n'


@pytest.mark.parametrize(
    ("panels", "words"),
    [
        (PANELS, "must not contain 'b': no curve has this"),
        (PANELS.replace('"b"', '"a"'), "`panels` must not contain two entries with the same name"),
    ],
)
def test_panel_without_a_curve_and_second_panel_of_a_name_are_refused(
    tmp_path: Path, panels: str, words: str
) -> None:
    path = write_small(tmp_path, **{"[quick.run]": f"{panels}[quick.run]", "label =": 'panel = "a"\nlabel ='})
    with pytest.raises(ParameterError, match=words):
        load_figure(str(path))


def test_two_noise_levels_of_one_name_are_refused(tmp_path: Path) -> None:
    shipped = Path(spec.__file__).with_name("attack.toml").read_text("utf-8")
    (tmp_path / "attack.toml").write_text(shipped.replace('name = "little"', 'name = "tiny"'), "utf-8")
    with pytest.raises(ParameterError, match="`noises` must not contain two entries with the same name"):
        load_figure(str(tmp_path / "attack.toml"))


@pytest.mark.parametrize("content", [b"name = ", b"\xff\xfe", SMALL.encode() + b"\nquick = 3"])
def test_file_that_is_not_toml_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.toml"
    path.write_bytes(content)
    with pytest.raises(ParameterError, match=r"broken\.toml(:| is not TOML)"):
        load_figure(str(path))


def test_each_finding_is_reported_once(tmp_path: Path) -> None:
    path = write_small(tmp_path, **{'method = "dual"': 'method = "DPP"'})
    with pytest.raises(ParameterError, match=r"`curves\.0\.method` must be '") as raised:
        load_figure(str(path))
    assert str(raised.value).count("got 'DPP'") == 1


def test_caption_states_the_number_of_runs() -> None:
    assert "range of 10 runs" in load_figure("fig2").caption
    assert "range of 3 runs" in load_figure("fig2", quick=True).caption


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ParameterError, match="fig1a, fig1b, fig2"):
        load_figure("fig9")

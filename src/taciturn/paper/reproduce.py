"""Reproduce figures into a folder: pictures, numbers, and what they say about the paper's claims."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.errors import ParameterError
from ..core.files import write_whole
from ..core.progress import progress
from ..runtime.simulate import one_cluster
from .claims.claim import Claim
from .claims.claims_page import claims_page, index_page
from .claims.convergence import claims_of_fig1a, claims_of_fig1b
from .claims.privacy import claims_of_attack, claims_of_budget, claims_of_fig2, claims_of_large
from .claims.theorem3 import claims_of_theorem3
from .figures import tables
from .figures.attack_runner import AttackFigureResult, attack
from .figures.figure_file import SHIPPED, load_figure
from .figures.plots import plot, plot_attack
from .figures.runner import FigureResult, draw
from .figures.spec import AnyFigure, Figure
from .figures.style import FOR_PAGES, FORMATS, paper_style, save
from .results_store import ResultStore


@dataclass(frozen=True, eq=False)
class Reproduction:
    """What was drawn, by name, and what it says about the paper."""

    drawn: Mapping[str, FigureResult | AttackFigureResult]
    claims: tuple[Claim, ...]
    quick: bool


def reproduce(
    names: Sequence[str],
    out: Path,
    *,
    quick: bool = False,
    seed: int | None = None,
    engine: str = "local",
    show: bool | None = None,
) -> Reproduction:
    """Run and draw figures by name, by path, or "all" of them; what `out` holds already is not run again.

    Parameters
    ----------
    quick : fewer rows, rounds and repeats, as each file says.
    seed : in place of the files' own.
    show : True shows the progress, False does not, None only on a terminal.
    """
    wanted = [part for name in names for part in (SHIPPED if name == "all" else (name,))]
    figures = {name: load_figure(name, quick=quick, seed=seed) for name in dict.fromkeys(wanted)}
    _check_names(figures)
    store = ResultStore(out / "curves")
    drawn: dict[str, FigureResult | AttackFigureResult] = {}
    with one_cluster(engine), progress(sum(map(_parts, figures.values())), "curves", show=show) as step:
        for name, figure in figures.items():
            if isinstance(figure, Figure):
                drawn[name] = draw(figure, store, engine=engine, done=step)
            else:
                drawn[name] = attack(figure, store, done=step)
            write_figure(drawn[name], out, quick=quick)
    claims = tuple(_claims(drawn, whole="all" in names, quick=quick, seed=seed or 0))
    result = Reproduction(drawn, claims, quick)
    write_claims(result, out)
    return result


def _check_names(figures: Mapping[str, AnyFigure]) -> None:
    """Two figures of one name would write over each other."""
    taken: dict[str, str] = {}
    for source, figure in figures.items():
        if figure.name in taken:
            raise ParameterError(
                f"{source}: `name` must differ from {taken[figure.name]}'s; both say {figure.name!r}."
            )
        taken[figure.name] = source


def _parts(figure: AnyFigure) -> int:
    """How many runs a figure takes."""
    return len(figure.curves) if isinstance(figure, Figure) else len(figure.noises)


def write_figure(drawn: FigureResult | AttackFigureResult, out: Path, *, quick: bool) -> None:
    """name.png, name.svg, name.csv and name.json."""
    stem = out / drawn.figure.name
    write_picture(drawn, stem, FORMATS)
    write_whole(stem.with_suffix(".csv"), tables.to_csv(drawn))
    write_whole(stem.with_suffix(".json"), tables.to_json(drawn, quick=quick))


def write_picture(
    drawn: FigureResult | AttackFigureResult, stem: Path, formats: Mapping[str, Mapping[str, Any]]
) -> None:
    """The picture in each of the formats."""
    with paper_style():
        save(plot(drawn) if isinstance(drawn, FigureResult) else plot_attack(drawn), stem, formats)


def write_claims(result: Reproduction, out: Path) -> None:
    """claims.json, claims.md and index.html."""
    stated = {"quick": result.quick, "claims": [claim.to_dict() for claim in result.claims]}
    write_whole(out / "claims.json", json.dumps(stated, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    drawn = list(result.drawn.values())
    write_whole(out / "claims.md", claims_page(drawn, result.claims, quick=result.quick))
    write_whole(out / "index.html", index_page(drawn, result.claims, quick=result.quick, folder=out))


def write_docs(result: Reproduction, docs: Path) -> None:
    """docs/paper.md and docs/img/*: the page of a full run."""
    drawn = list(result.drawn.values())
    write_whole(docs / "paper.md", claims_page(drawn, result.claims, quick=result.quick, images="img/"))
    for one in drawn:
        write_picture(one, docs / "img" / one.figure.name, FOR_PAGES)


def _claims(
    results: Mapping[str, FigureResult | AttackFigureResult], *, whole: bool, quick: bool, seed: int
) -> Iterator[Claim]:
    """The claims about the shipped figures that were drawn."""
    drawn = {name: one for name, one in results.items() if isinstance(one, FigureResult)}
    if "fig1a" in drawn:
        yield from claims_of_fig1a(drawn["fig1a"])
    if "fig1b" in drawn:
        yield from claims_of_fig1b(drawn["fig1b"])
    if "fig2" in drawn:
        yield from claims_of_fig2(drawn["fig2"])
    yield from claims_of_large(drawn.get("fig3"), drawn.get("fig4"))
    if whole:
        yield from claims_of_theorem3(quick=quick, seed=seed)
    if isinstance(attacked := results.get("attack"), AttackFigureResult):
        yield from claims_of_attack(attacked)
    if "budget" in drawn:
        yield from claims_of_budget(drawn["budget"])

"""Reproduce figures of the paper. Write pictures, numbers, and verdicts on the paper's claims to a folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core import checks
from ..core.errors import ParameterError
from ..core.files import write_whole
from ..core.progress import progress
from ..runtime.simulate import one_cluster
from .claims.claim import Claim
from .claims.claims_page import claims_page, index_page
from .claims.convergence import claims_of_fig1a, claims_of_fig1b
from .claims.privacy import (
    claims_of_attack,
    claims_of_budget,
    claims_of_fig2,
    claims_of_large,
    claims_of_theorem3,
)
from .figures.attack_runner import Drawn, attack
from .figures.plots import plot
from .figures.runner import draw
from .figures.spec import SHIPPED, Figure, load_figure
from .figures.style import FOR_PAGES, FORMATS, paper_style, save
from .results_store import ResultStore


@dataclass(frozen=True, eq=False)
class Reproduction:
    """The drawn figures by name, and the verdicts on the paper's claims."""

    drawn: Mapping[str, Drawn]
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
    """Run and draw figures, given by name, by path, or as "all". Results that are in `out` are reused.

    Parameters
    ----------
    quick : True uses fewer rows, rounds and repeats, as the table [quick] of each file states.
    seed : a seed that replaces `run.seed` in the files.
    engine : as in `simulate`. Attacks always run in this process.
    show : True shows the progress, False does not show it, None shows it only on a terminal.
    """
    checks.choice("engine", engine, ("local", "ray", "auto"))
    wanted = [part for name in names for part in (SHIPPED if name == "all" else (name,))]
    figures = {name: load_figure(name, quick=quick, seed=seed) for name in dict.fromkeys(wanted)}
    taken: dict[str, str] = {}  # two figures with the same name would overwrite each other
    for source, figure in figures.items():
        if (other := taken.setdefault(figure.name, source)) != source:
            raise ParameterError(
                f"{source}: `name` must differ from the name in {other}; both are {figure.name!r}."
            )
    runs = sum(len(one.curves if isinstance(one, Figure) else one.noises) for one in figures.values())
    store = ResultStore(out / "curves")
    drawn: dict[str, Drawn] = {}
    with one_cluster(engine), progress(runs, "curves", show=show) as step:
        for name, figure in figures.items():
            if isinstance(figure, Figure):
                drawn[name] = draw(figure, store, engine=engine, done=step)
            else:
                drawn[name] = attack(figure, store, done=step)
            write_figure(drawn[name], out / figure.name, quick=quick)
    claims = tuple(_claims(drawn, whole="all" in names, quick=quick, seed=seed or 0))
    result = Reproduction(drawn, claims, quick)
    write_claims(result, out)
    return result


def write_figure(drawn: Drawn, stem: Path, *, quick: bool) -> None:
    """Write a figure to the files stem.png, stem.svg, stem.csv and stem.json."""
    write_picture(drawn, stem, FORMATS)
    write_whole(stem.with_suffix(".csv"), drawn.to_csv())
    write_whole(stem.with_suffix(".json"), drawn.to_json(quick=quick))


def write_picture(drawn: Drawn, stem: Path, formats: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the picture of a figure in each of the formats."""
    with paper_style():
        save(plot(drawn), stem, formats)


def write_claims(result: Reproduction, out: Path) -> None:
    """Write the verdicts on the claims to claims.json, claims.md and index.html."""
    stated = {"quick": result.quick, "claims": [claim.to_dict() for claim in result.claims]}
    write_whole(out / "claims.json", json.dumps(stated, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    drawn = list(result.drawn.values())
    write_whole(out / "claims.md", claims_page(drawn, result.claims, quick=result.quick))
    write_whole(out / "index.html", index_page(drawn, result.claims, quick=result.quick, folder=out))


def write_docs(result: Reproduction, docs: Path) -> None:
    """Write the documentation page, docs/paper.md, and its pictures, docs/img/*."""
    drawn = list(result.drawn.values())
    write_whole(docs / "paper.md", claims_page(drawn, result.claims, quick=result.quick, images="img/"))
    for one in drawn:
        write_picture(one, docs / "img" / one.figure.name, FOR_PAGES)


def _claims(drawn: Mapping[str, Any], *, whole: bool, quick: bool, seed: int) -> Iterator[Claim]:
    """The claims about the figures that were drawn. `whole` adds the claims about Theorem 3."""
    yield from _each(drawn, fig1a=claims_of_fig1a, fig1b=claims_of_fig1b, fig2=claims_of_fig2)
    yield from claims_of_large(drawn.get("fig3"), drawn.get("fig4"))
    if whole:
        yield from claims_of_theorem3(quick=quick, seed=seed)
    yield from _each(drawn, attack=claims_of_attack, budget=claims_of_budget)


def _each(drawn: Mapping[str, Any], **claims_of: Callable[[Any], list[Claim]]) -> Iterator[Claim]:
    for name, claims in claims_of.items():
        if name in drawn:
            yield from claims(drawn[name])

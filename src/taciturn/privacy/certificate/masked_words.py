"""Masked sums in words: whom a figure holds against, on what it rests, and what is left if more collude."""

from __future__ import annotations

from collections.abc import Sequence

from ..accounting.shown import rounded_up
from ..collusion import colluders
from ..facts import RunFacts
from .claims import Claims

CIPHERS = "X25519 key agreement and the ChaCha20 stream cipher"


def observer(run: RunFacts) -> str:
    """Who is assumed to look on."""
    c = colluders(run, run.colluding)
    if c == run.sites - 1:
        return "controls all the other sites"
    if c == 0:
        return "controls no other site"
    return f"controls any {_those(c)} of the {run.sites - 1} other sites"


def holds_while(colluding: int | None, everybody: float) -> str:
    """After a figure: whom it holds against, and what is left if all the other sites work together."""
    if colluding is None:
        return ""
    worst = rounded_up(everybody)
    return f" while at most {colluding} of the other sites work together, {worst} if all of them do"


def rests_on_masks(run: RunFacts) -> bool:
    """Whether the figure counts more noise than that of the site itself."""
    return run.honest(run.colluding) > 1


def trust(claims: Claims) -> str:
    """On what the figure rests, and what is left of it otherwise."""
    run = claims.run
    alone = f"If all the others do, epsilon = {rounded_up(claims.epsilon_against(None))}"
    if not rests_on_masks(run):
        return "This figure does not rest on the masks: each site's own noise is enough for it."
    most = _those(colluders(run, run.colluding))
    return f"""This figure counts the noise of {run.honest(run.colluding)} sites together. It rests on the
        masks behind which each site hides what it sends, and so on {CIPHERS}: a computational promise, which
        holds against whoever cannot break these, not an unconditional one. It also rests on no more than
        {most} of the other sites working together with the observer. {_others(claims)} {alone}; that
        last figure rests on no mask and on nobody else."""


def _others(claims: Claims) -> str:
    """A few further lines of the table."""
    run = claims.run
    chosen = [n for n in lines(claims)[:-1] if n != colluders(run, run.colluding)]
    figures = [f"{rounded_up(claims.epsilon_against(n))} if {_who(n)}" for n in chosen]
    return f"With other numbers epsilon is {_list(figures)}." if figures else ""


def lines(claims: Claims) -> list[int]:
    """A few numbers of colluders that are worth a line, the last one being all the others."""
    run = claims.run
    c = colluders(run, run.colluding)
    chosen = {0, c, c + 1, run.sites // 3, run.sites // 2, run.sites - 1}
    return sorted(n for n in chosen if n < run.sites)


def theorems(run: RunFacts) -> list[str]:
    """What the numbers of masked sums rest on."""
    return [
        "paper: Theorem 3 of [ZKL18] is not about such a run",
        "no pure epsilon: discrete Gaussian noise has none",
        "masked sums: what honest sites send is uniform but for the sum over those whom masks connect "
        f"(one-time pads along a connected graph); computational, as strong as {CIPHERS}",
        "the noises of those sites add up: discrete Gaussians, rounding, and the straying of floats included",
        "(epsilon, delta): exact curve of Gaussian differential privacy, mu^2 summed over rounds; the slack "
        "of discrete noise is added",
    ]


def conditions(run: RunFacts) -> list[str]:
    """What must be true of the masks and of whoever sends them."""
    linked = (
        "every two sites share masks"
        if run.connectivity is None
        else f"masks connect the sites that are left while fewer than {run.connectivity} are taken out"
    )
    return [
        f"at most {_those(colluders(run, run.colluding))} of the other sites worked together with the "
        "observer; `epsilon_against` lists what holds for every other number",
        f"{linked}; keys of pairs were made for this run, are known to the two sites alone, and no mask was "
        "used twice",
        "each site sent at most one message per round, and the same bytes whenever it was sent again",
        "a site that is broken into later counts as colluding for every round whose key it still holds",
        "a site that lies or sends different things to different sites can spoil the model, not the promise",
        "the sums, their sensitivities, grids and noise were fixed before the run, without looking at data",
    ]


def _those(number: int) -> str:
    return "none" if number == 0 else "one" if number == 1 else str(number)


def _who(number: int) -> str:
    return "nobody does" if number == 0 else "one does" if number == 1 else f"{number} do"


def _list(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else ", ".join(texts[:-1]) + " and " + texts[-1]

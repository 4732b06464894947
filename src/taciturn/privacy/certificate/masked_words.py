"""Masked sums in words: against whom a figure holds, what it relies on, and what holds if more collude."""

from __future__ import annotations

from ...core.formatting import format_cost
from ..collusion import colluders
from ..facts import RunFacts
from .claims import Claims

CIPHERS = "X25519 key agreement and the ChaCha20 stream cipher"


def observer(run: RunFacts) -> str:
    """The observer that the figures assume; only masked sums depend on how many sites it controls."""
    c = colluders(run, run.colluding)
    if c == run.sites - 1 or not run.masked:
        return "controls all the other sites"
    if c == 0:
        return "controls no other site"
    return f"controls any {_those(c)} of the {run.sites - 1} other sites"


def holds_while(colluding: int | None, everybody: float) -> str:
    """The words after a figure: against whom it holds, and the figure if all other sites collude."""
    if colluding is None:
        return ""
    worst = format_cost(everybody)
    return f" while at most {colluding} of the other sites collude, {worst} if all of them do"


def rests_on_masks(run: RunFacts) -> bool:
    """Whether the figure counts more noise than that of the site itself."""
    return run.honest(run.colluding) > 1


def one_process(run: RunFacts) -> bool:
    """Whether one process drew the noise and the masks of all sites: no site kept a key from another."""
    return run.where in ("process", "simulated")


def trust(claims: Claims) -> str:
    """What the figure relies on, and the figures for other numbers of colluding sites."""
    run = claims.run
    alone = f"If all other sites do, epsilon = {format_cost(claims.epsilon_against(None))}"
    if not rests_on_masks(run):
        return "This figure does not rely on the masks: the noise of each site alone is enough for it."
    most, together = _those(colluders(run, run.colluding)), run.honest(run.colluding)
    if one_process(run):
        rests = """One process drew the noise and the masks of all sites from one random source and released
            only the sums: the figure relies on that process."""
    else:
        rests = f"""It relies on the masks behind which each site hides what it sends, and so on {CIPHERS}: a
            computational promise, which holds against attackers who cannot break these."""
    return f"""This figure counts the noise of {together} sites together. {rests} It also assumes
        that at most {most} of the other sites colludes with the observer. {_others(claims)} {alone};
        that figure relies neither on masks nor on the noise of other sites."""


def _others(claims: Claims) -> str:
    """A few further lines of the table."""
    run = claims.run
    chosen = [n for n in lines(claims)[:-1] if n != colluders(run, run.colluding)]
    figures = [f"if {_who(n)}, epsilon is {format_cost(claims.epsilon_against(n))}" for n in chosen]
    said = "; ".join(figures)
    return f"{said[:1].upper()}{said[1:]}." if figures else ""


def lines(claims: Claims) -> list[int]:
    """A few numbers of colluding sites to mention; the last one is all other sites."""
    run = claims.run
    c = colluders(run, run.colluding)
    chosen = {0, c, c + 1, run.sites // 3, run.sites // 2, run.sites - 1}
    return sorted(n for n in chosen if n < run.sites)


def theorems(run: RunFacts) -> list[str]:
    """What the numbers of masked sums rest on."""
    hidden = (
        "masked sums: one process released the sum over all sites, and no share of it"
        if one_process(run)
        else "masked sums: messages of honest sites are uniform except for the sum over those that masks "
        f"connect (one-time pads along a connected graph); computational, as strong as {CIPHERS}"
    )
    return [
        "paper: Theorem 3 of [ZKL18] does not cover such a run",
        "no pure epsilon: discrete Gaussian noise has none",
        hidden,
        "the noises of those sites add up: discrete Gaussians; rounding and float errors are included",
        "(epsilon, delta): exact curve of Gaussian differential privacy, mu^2 summed over rounds; the slack "
        "of discrete noise is added",
    ]


def conditions(run: RunFacts) -> list[str]:
    """What must be true of the masks and of the sites that send them."""
    linked = (
        "every two sites share masks"
        if run.connectivity is None
        else f"masks connect the sites that are left while fewer than {run.connectivity} are taken out"
    )
    return [
        f"at most {_those(colluders(run, run.colluding))} of the other sites colluded with the observer; "
        "`epsilon_against` lists the figure for every other number",
        *(_kept_inside(linked) if one_process(run) else _kept_apart(linked)),
        "the sums, their sensitivities, grids and noise were fixed before the run, without looking at data",
    ]


def _kept_inside(linked: str) -> list[str]:
    return [
        f"{linked}; one process drew all keys from one random source and knew every mask and every share",
        "that process made one message per site and round, and released nothing but their sum",
    ]


def _kept_apart(linked: str) -> list[str]:
    return [
        f"{linked}; keys of pairs were made for this run, are known to the two sites alone, and no mask was "
        "used twice",
        "each site sent at most one message per round, and the same bytes whenever it was sent again",
        "a site that is broken into later counts as colluding for every round whose key it still holds",
        "a site that lies or sends different things to different sites can spoil the model, not the promise",
    ]


def _those(number: int) -> str:
    return "none" if number == 0 else "one" if number == 1 else str(number)


def _who(number: int) -> str:
    return "none does" if number == 0 else "one does" if number == 1 else f"{number} do"

"""Texts for masked sums: the assumed number of colluding sites, and epsilon if more sites collude."""

from __future__ import annotations

from ...core.formatting import format_cost
from ..collusion import colluders
from ..facts import RunFacts
from .claims import Claims

CIPHERS = "X25519 key agreement and the ChaCha20 stream cipher"


def observer(run: RunFacts) -> str:
    """The observer that epsilon assumes, in words. Only masked sums depend on how many sites it controls."""
    c = colluders(run, run.colluding)
    if c == run.sites - 1 or not run.masked:
        return "controls all the other sites"
    if c == 0:
        return "controls no other site"
    return f"controls any {those(c)} of the {run.sites - 1} other sites"


def holds_while(colluding: int | None, everybody: float) -> str:
    """The words after an epsilon: how many sites may collude, and the epsilon if all other sites collude."""
    if colluding is None:
        return ""
    worst = format_cost(everybody)
    return f" while at most {colluding} of the other sites collude, {worst} if all of them do"


def rests_on_masks(run: RunFacts) -> bool:
    """Whether epsilon relies on the noise of other sites, which the masks hide."""
    return run.honest(run.colluding) > 1


def one_process(run: RunFacts) -> bool:
    """Whether one process drew the noise and the masks of all sites and therefore knew every key."""
    return run.where in ("process", "simulated")


def trust(claims: Claims) -> str:
    """What epsilon relies on, and the epsilon for other numbers of colluding sites, in words."""
    run = claims.run
    alone = f"If all other sites do, epsilon = {format_cost(claims.epsilon_against(None))}"
    if not rests_on_masks(run):
        return "This figure does not rely on the masks: the noise of each site alone is enough for it."
    c, together = colluders(run, run.colluding), run.honest(run.colluding)
    limit = f"{at_most(c)} of the other sites {'colludes' if c == 1 else 'collude'}"
    if one_process(run):
        rests = """One process drew the noise and the masks of all sites from one random source and released
            only the sums: the figure relies on that process."""
    else:
        rests = f"""It relies on the masks behind which each site hides what it sends, and so on {CIPHERS}: a
            computational promise, which holds against attackers who cannot break these."""
    return f"""This figure counts the noise of {together} sites: the site that holds the record, and
        {together - 1} other{"s"[: together != 2]} that do not collude. {rests} It also
        assumes that {limit} with the observer. {_others(claims)} {alone};
        that figure relies neither on masks nor on the noise of other sites."""


def _others(claims: Claims) -> str:
    """The epsilon for a few other numbers of colluding sites, in words."""
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


def those(number: int) -> str:
    """The number of sites as text."""
    return "one" if number == 1 else str(number)


def at_most(number: int) -> str:
    """'none', 'at most one', 'at most 2', ..."""
    return "none" if number == 0 else f"at most {those(number)}"


def _who(number: int) -> str:
    return "none does" if number == 0 else "one does" if number == 1 else f"{number} do"

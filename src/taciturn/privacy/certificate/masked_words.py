"""Texts of a certificate about the attacker: what it sees, which sites it controls, what epsilon relies on.

The attacker controls a site if the site colludes: the site tells the attacker what it knows, or sends what
the attacker chooses. In a masked sum, masks hide the share of each site until all shares are added up. An
attempt is a part of a run with the same sites; when a site leaves or joins, a new attempt begins.
"""

from __future__ import annotations

from ...core.formatting import format_cost
from ..collusion import colluders, fewest_honest
from ..facts import RunFacts
from .claims import Claims

CIPHERS = "X25519 key agreement and the ChaCha20 stream cipher"
KNOWN = {
    "record": "every record except one, the target record",
    "person": "every record except those of one person, the target person",
}
"""What the attacker knows. `observer` and `home` use the term "target" that these words introduce."""
NO_SITE = "controls no site"


def seen(run: RunFacts) -> str:
    """What the attacker sees, in words."""
    return "everything that left the process" if run.where == "process" else "everything that was sent"


def observer(run: RunFacts) -> str:
    """The sites that the attacker controls, in words. Only for masked sums does epsilon depend on them."""
    c = colluders(run, run.colluding)
    if c == run.sites - 1 or not run.masked:
        return f"controls every site except {home(run)}"
    if c == 0:
        return NO_SITE
    return f"controls {those(c)} {'site' if c == 1 else 'sites'} of its choice, but not {home(run)}"


def home(run: RunFacts) -> str:
    """The site that holds the target record, or the sites that hold the target person's records, in words."""
    if run.unit == "record":
        return "the site that holds the target record"
    one = run.sites_per_person == 1
    return f"the {'site that holds' if one else 'sites that hold'} the records of the target person"


def holds_while(colluding: int | None, everybody: float) -> str:
    """Words that follow a site's epsilon: how many other sites may collude, and the epsilon if all do."""
    if colluding is None:
        return ""
    limit, worst = f"{'at most ' if colluding else ''}{_who(colluding)}", format_cost(everybody)
    return f" if {limit}, {worst} if all other sites collude"


def rests_on_masks(run: RunFacts) -> bool:
    """Whether the epsilon of a site's records relies on the noise of other sites, which masks hide."""
    return run.honest(run.colluding) > 1


def one_process(run: RunFacts) -> bool:
    """Whether one process drew the noise and the masks of all sites and therefore knew every key."""
    return run.where in ("process", "simulated")


def trust(claims: Claims) -> str:
    """What epsilon relies on, and the epsilon for some other numbers of colluding sites, in words."""
    run = claims.run
    worst = format_cost(claims.epsilon_against(None))
    alone = f"If the attacker controls every site except {home(run)}, epsilon is {worst}"
    epsilon = f"The epsilon of {format_cost(claims.epsilon)}"
    if not rests_on_masks(run):
        return f"""{epsilon} would hold even if each site's share, with its noise, had been released instead
            of the sums alone, because the noise of each site alone is sufficient."""
    c, together = colluders(run, run.colluding), run.honest(run.colluding)
    limit = f"the attacker controls {at_most(c)}{f', and not {home(run)}' if c else ''}"
    if one_process(run):
        rests = """The same process drew the noise of all sites. It also drew masks, which are random numbers
            that hide each site's share and cancel in the sum. This epsilon assumes that the process kept
            noise and masks secret, and released only the sums."""
    else:
        rests = f"""It also relies on the masks that hide the message of each site. The masks are made with
            {CIPHERS}. So the guarantee is computational: it holds against attackers who can break
            neither of the two."""
    counted = f"{epsilon} relies on the noise of the {together} sites that the attacker does not control."
    if run.attempts:
        fewest = fewest_honest(run, together)
        counted = f"""Each message belongs to one attempt. For each message, {epsilon[0].lower()}{epsilon[1:]}
            relies on the noise of the sites in its attempt, without the sites under the attacker's control:
            at least {those(fewest)} {"site" if fewest == 1 else "sites"}."""
    return f"""{counted} {rests} This epsilon also assumes that {limit}. {_others(claims)} {alone}. This last
        epsilon relies neither on masks nor on the noise of other sites."""


def attempts(run: RunFacts) -> str:
    """The attempts of a run and the number of sites in each, in words; empty if there was one attempt."""
    if not run.attempts:
        return ""
    each = [
        f"attempt {k} began with message {entry.first} and had {len(entry.members)} sites"
        for k, entry in enumerate(run.attempts, start=1)
    ]
    return f""" Sites left or joined during the run, or started again without their keys. Each time the sites
        began a new attempt, so the run had {len(each)} attempts: {"; ".join(each)}. The figures count every
        message of every attempt. If a later attempt repeated a round, the figures count the round again."""


def _others(claims: Claims) -> str:
    """The epsilon for a few other numbers of colluding sites, in words."""
    run = claims.run
    chosen = [n for n in lines(claims)[:-1] if n != colluders(run, run.colluding)]
    figures = [
        f"if the attacker controls {_number(n)}, epsilon is {format_cost(claims.epsilon_against(n))}"
        for n in chosen
    ]
    said = "; ".join(figures)
    return f"{said[:1].upper()}{said[1:]}." if figures else ""


def lines(claims: Claims) -> list[int]:
    """A few numbers of colluding sites for which texts state epsilon. The last one is `run.sites` - 1."""
    run = claims.run
    c = colluders(run, run.colluding)
    chosen = {0, c, c + 1, run.sites // 3, run.sites // 2, run.sites - 1}
    return sorted(n for n in chosen if n < run.sites)


def those(number: int) -> str:
    """A number of sites as text: 'one', '2', '3', ..."""
    return "one" if number == 1 else str(number)


def at_most(number: int) -> str:
    """'no site', 'at most one site', 'at most 2 sites', ..."""
    return f"{'at most ' if number else ''}{_number(number)}"


def _number(number: int) -> str:
    """'no site', 'one site', '2 sites', ..."""
    return f"{those(number) if number else 'no'} {'site' if number < 2 else 'sites'}"


def _who(number: int) -> str:
    if number < 2:
        return f"{'one' if number else 'no'} other site colludes"
    return f"{number} other sites collude"

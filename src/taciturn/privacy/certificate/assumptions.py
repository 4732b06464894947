"""Texts of a certificate: the status of the run, the theorems behind its numbers, and the conditions.

`Claims` are the facts of a run and the numbers that follow from them. Norm noise has the density
exp(-alpha ||e||), up to a constant. In a masked run the sites release only sums over all sites: masks hide
the share of each site, which is what the site adds to a sum.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...core.formatting import format_delta
from ..collusion import colluders
from ..costs import float_delta, paper_speaks
from ..facts import RunFacts
from .claims import Claims
from .masked_words import CIPHERS, KNOWN, at_most, home, observer, one_process, seen
from .site_costs import WHERE
from .summary import count

IDEALISED = "idealised: exact minimiser assumed"
_KIND = {"norm": "norm noise", "gaussian": "Gaussian noise"}
_DISCRETE = {"norm": "discrete Laplace noise", "gaussian": "discrete Gaussian noise"}
_HELD = {
    "process": """One process held the rows of all sites. The figures cover what this process released, but
        not what it saw.""",
    "folders": """The rows of all sites were on one machine, in a folder for each site. A separate process
        read each folder. The administrator of the machine could read all rows.""",
    "network": "The rows of each site stayed at that site, according to the addresses in the job.",
}
_NEIGHBOURS = {
    "record": """Two data sets are neighbours if one record at one site is replaced by another. Each record is
        held by one site only.""",
    "person": """Two data sets are neighbours if all records of one person are replaced by others; the
        number of these records may change too. At most {} may hold records of the same person.""",
}


def _said(texts: Mapping[str, object]) -> list[str]:
    """The texts that apply, each without line breaks. The value of a text is true if the text applies."""
    return [" ".join(text.split()) for text, applies in texts.items() if applies]


def status(claims: Claims) -> str:
    """A short label: planned, simulated or real; the errors that the noise covers; warnings, if any."""
    run = claims.run
    words = ["planned" if run.planned else "simulated" if run.simulated else f"real, in {WHERE[run.where]}"]
    if run.noise == "none":
        words.append("not private: no noise")
    elif run.masked:
        error = "straying floats" if claims.form == 1 else "floating-point error"  # the words of format 1
        words.append(f"rounding and {error} covered by the noise")
    elif run.idealised:
        words.append(IDEALISED)
    elif run.stated is not None:
        words.append("the author of the method states the cost")
    else:
        covers = f"primal {_last(run)}" if run.method == "primal" else f"{_last(run)} on the output"
        both = "floats" if claims.form == 1 else "solver and floating-point error"  # the words of format 1
        words.append(f"{both if run.integers else 'solver error'} covered by {covers}")
    return "; ".join([*words, *["LARGE DELTA"] * claims.large_delta, *run.marks])


def _last(run: RunFacts) -> str:
    """The kind of noise that the run adds last."""
    kind = run.noise if run.method == "primal" else run.output_noise
    return (_DISCRETE if run.integers else _KIND).get(str(kind), "no noise")


def theorems(claims: Claims) -> list[str]:
    """The theorems that the numbers depend on, one text for each."""
    run = claims.run
    if run.noise == "none":
        return ["No noise was added, and no theorem gives a finite epsilon."]
    if run.stated is not None:
        cost = "The author of the method states the cost of one round; the figures add it up over the rounds."
        return [f"No theorem of taciturn applies. {cost}"]
    inside, person = run.method in ("penalty", "dual"), run.unit == "person"
    rounded = " plus sqrt(d) steps of the grid" * run.integers
    hidden = f"""if masks connect some sites, and the attacker controls none of them, then it learns only the
        sum of their messages. Apart from this sum, the messages are uniformly distributed (one-time pads
        along a connected graph). This guarantee is computational, as strong as {CIPHERS}."""
    if one_process(run):
        hidden = "one process released only the sum over all sites, and not the share of any site."
    reacting = any(limit is not None and limit.order is not None for limit in claims.budgets)
    texts: dict[str, object] = {
        f"Theorem 3 of the paper [ZKL18] {_paper(claims)}": True,
        "Pure epsilon (delta = 0): infinite, because the noise is discrete Gaussian.": run.masked,
        f"Masked sums: {hidden}": run.masked,
        """Noise: if masks connect some sites, and the attacker controls none of them, then the discrete
            Gaussian noise of these sites adds up. The figures include rounding and floating-point
            errors.""": run.masked,
        f"""Sensitivity: replacing one {run.unit} moves the solver's result by at most (2 s1 C / B + 2 g) /
            m{rounded}, where g bounds the gradient that the solver leaves and m is the strong convexity of a
            site's objective. This bound is attained.""": run.method == "primal",
        """Pure epsilon (delta = 0): a change of variables and the determinant lemma give alpha D + ln(1 + x)
            for each round. For some losses, the figures use a smaller bound that is also proven.""": inside
        and run.noise == "norm",
        "Pure epsilon (delta = 0): infinite, because the noise is Gaussian.": run.noise == "gaussian",
        f"""Moments of the rows: they were released {run.moments} times, with discrete Gaussian noise. The
            noise of each site alone makes each release mu-GDP (Gaussian differential privacy). Each release
            adds q mu^2 / 2 to the cost of the rounds at Renyi order q.""": run.moments,
        """Whitened rows: these are the rows in coordinates that were computed from the released moments.
            Given these moments, a whitened row depends on its own record alone and has norm at most 1. So
            the bounds on the rounds hold unchanged.""": run.moments,
        f"(epsilon, delta): {_accountant(claims)}": True,
        f"""Inexact minimiser: between neighbouring data sets, solver errors shift the output by at most 2 g /
            m{rounded}, where g bounds the gradient that the solver leaves and m is the strong convexity of a
            site's objective. The {_last(run)} on the output covers this shift.""": run.output_noise,
        f"""One-vs-rest: the {run.outputs} problems, one for each class, cost {run.outputs} times as much as
            one problem.""": run.outputs > 1,
        """Charges may depend on earlier messages of the run. A Renyi filter limits their sum, at an order
            that was fixed before the run.""": reacting,
        """Persons: the rows of a person are weighted so that together they count at most as one row. So
            together they move a result no further than one row can.""": person,
        """Persons: replacing the rows of a person changes the Jacobian of the noise map. The change has
            several eigenvalues. Their sum is at most the sum for one replaced row.""": person and inside,
        "The symbols are explained in docs/notation.md, the theorems are proven in docs/privacy.md.": True,
    }
    return _said(texts)


def _accountant(claims: Claims) -> str:
    """How the epsilon of the worst site was computed."""
    jacobian = "" if claims.run.method == "primal" else ", with the Jacobian of the noise map included"
    if claims.run.masked:
        return """each round is mu-GDP (Gaussian differential privacy). The squares of mu are summed over the
            rounds, and the sum is converted exactly. The small additional cost of discrete noise is
            included."""
    if claims.accountant == "pure":
        return "the pure epsilon, because it is the smallest bound for this run."
    if claims.accountant == "gaussian":
        return f"""each round with Gaussian noise is mu-GDP (Gaussian differential privacy){jacobian}. The
            squares of mu are summed over the rounds, and the sum is converted exactly."""
    return f"""the Renyi divergence of {_KIND[claims.run.noise]} is summed over the rounds and then
        converted{jacobian}."""


def _paper(claims: Claims) -> str:
    """Whether the paper's theorem covers the run."""
    if not paper_speaks(claims.run):
        return "does not cover this kind of run."
    rows = zip(claims.sites, claims.costs, strict=True)
    failing = [facts.name for facts, cost in rows if not cost.paper_condition]
    needs = "2 c1 < (B/C)(rho/N + 2 theta V)"
    if not failing:
        return f"applies. Its conditions, {needs} and theta <= eta, hold at every site."
    return (
        f"does NOT apply. It needs {needs} and theta <= eta, and one of these conditions fails at "
        f"{len(failing)} of {len(claims.sites)} sites. The first of these sites is {failing[0]}. The "
        "other bounds in this certificate do not need these conditions."
    )


def conditions(claims: Claims) -> list[str]:
    """The conditions under which the numbers hold, one text for each."""
    run = claims.run
    solved, places = not run.masked and run.stated is None, count(run.sites_per_person, "site")
    who = f"knows {KNOWN[run.unit]}. The attacker sees {seen(run)}, and {observer(run)}"
    fixed = ["every schedule"] * (not run.masked) + ["the plan of every sum"] * bool(run.sums)
    fixed += [f"the first model f(0) ({run.start})"] * (not run.loss.counting and not run.loss.programmed)
    first: dict[str, object] = {
        _NEIGHBOURS[run.unit].format(places): True,
        _HELD.get(run.where, ""): run.where in _HELD,
        f"The attacker {who}.": True,
        f"""These facts are public: the number of {run.unit}s and the number of neighbours of every site, the
            number of sites, rounds and dimensions, {", ".join(fixed)}, the bounds on the data, and how the
            data were processed.""": True,
    }
    last: dict[str, object] = {
        "One round costs what the author of the method states, whatever the sites sent before.": run.stated,
        """The figures are for this run alone. Any other run on the same records, such as a repeated fit or a
            fold of a cross-validation, adds its cost.""": True,
        """Results that are computed from the released numbers alone cost nothing more. This includes a
            decision to stop early.""": True,
        """The figures do not cover timing, iteration counts, a published training loss, or a site that stops
            because of its own rows.""": True,
    }
    masks, solves = _masks(run) if run.masked else [], _solves(run) if solved else []
    return [*_said(first), *_rows(run), _noise_condition(run), *masks, *solves, *_said(last)]


def _rows(run: RunFacts) -> list[str]:
    counting, person, tables = run.loss.counting, run.unit == "person", count(run.dimension, "table")
    invalid = "An invalid row was counted in a separate cell" if counting else "An invalid row became zeros"
    if run.loss.programmed:
        invalid = "A record added zeros to a sum if its contribution could not be computed"
    rows = run.rows_per_person
    most = "any number of rows" if rows is None else f"at most {count(rows, 'row')}"
    texts: dict[str, object] = {
        f"""The number of records of each site was fixed before the run. {invalid}; it was not dropped. No
            record was resampled or duplicated.""": not person,
        f"""The number of persons, {run.persons} in all, was fixed before the run. A person could have {most}.
            The rows of a person were weighted so that together they count at most as one row.""": person,
        """Each row was assigned to its person, and the assignment did not depend on the rows of other
            persons.""": person,
        f"Every row counted in one cell of each table ({tables}). The list of cells is public.": counting,
        f"""The contribution of each {run.unit} to a sum was clipped to a norm that was fixed before the
            run.""": run.loss.programmed,
        f"Every row had norm at most {run.data_norm:g}. Public bounds ensure this.": not counting
        and not run.loss.programmed,
    }
    return _said(texts)


def _noise_condition(run: RunFacts) -> str:
    if run.noise == "none":
        return "No noise was added."
    source = "It came from a secret source without a seed."
    if run.simulated and not run.planned:
        source = "It came from a seeded stream that can be replayed, so this run protects nobody."
    return f"The noise was a fresh and independent vector for every site, round and class. {source}"


def _masks(run: RunFacts) -> list[str]:
    """The conditions on the masks and on the sites that send them."""
    linked = "Every two sites share masks."
    if run.connectivity is not None:
        linked = f"If fewer than {run.connectivity} sites are removed, masks still connect the rest."
    inside, most = one_process(run), at_most(colluders(run, run.colluding))
    texts: dict[str, object] = {
        f"""Apart from {home(run)}, {most} colluded. A site colludes if it tells the attacker what it knows,
            or sends what the attacker chooses. The entry `epsilon_against` lists epsilon for every number of
            colluding sites.""": True,
        f"{linked} One process drew all keys from one random source and knew all masks and shares.": inside,
        """The process computed one message for each site and round. It released only the sum of these
            messages.""": inside,
        f"""{linked} The key of each pair of sites was made for this run and is known to the two sites alone.
            No mask was used twice.""": not inside,
        """Each site sent at most one message per round. A site that repeated a message sent the same bytes
            again.""": not inside,
        """If the attacker takes over a site later, the site counts as colluding in every round for which the
            site still has a key.""": not inside,
        """A site that sends false messages, or different messages to different sites, can spoil the model. It
            cannot weaken the privacy guarantee.""": not inside,
        """The sums, their sensitivities, grids and noise were fixed before the run, without looking at the
            data.""": True,
    }
    return _said(texts)


def _solves(run: RunFacts) -> list[str]:
    """The conditions on the paper's rounds."""
    clip = """Incoming values were not clipped. So the bounds hold for real numbers. They do not hold for
        floating-point numbers so large that rounding removes the noise."""
    if run.clip is not None:
        clip = f"Incoming values were clipped to [-{run.clip:g}, {run.clip:g}] before use."
    covered = "The noise covers this error."
    if run.idealised:
        covered = "No noise covers this error: the figures assume the exact minimiser."
    texts: dict[str, object] = {
        "The slope and curvature of the loss are bounded as its author states.": not run.loss.shipped,
        "Every schedule was fixed before the run, without looking at the data.": True,
        clip: True,
        _grid(run): True,
        f"""Each vector that the solver returned is within {run.tol:g} of the exact minimiser, with rounding
            included. {covered}""": True,
        f"""The coordinates of the rows were computed from the moments that were released in the first
            {run.moments} rounds, and from nothing else about the data. A row with a norm above 1 was
            shortened to norm 1.""": run.moments,
        """After each round every site continued from the released values. This includes the site's own
            value.""": True,
    }
    return _said(texts)


def _grid(run: RunFacts) -> str:
    if run.grid is None:
        return """Released values were not rounded to a grid. The bounds treat floating-point numbers as real
            numbers."""
    if run.integers:
        return f"""Released values are whole multiples of {run.grid:g}. The noise that was added last is
            {_last(run)}, drawn exactly in these steps. Noise inside the computation was drawn in floating
            point. The probability of an error in this noise is at most {format_delta(float_delta(run))} in
            all, and delta includes it."""
    return f"Released values were rounded to multiples of {run.grid:g} after the noise was added."

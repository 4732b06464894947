"""What the numbers of a certificate depend on: status, theorems, conditions."""

from __future__ import annotations

from ...core.formatting import format_cost
from ..costs import float_delta, paper_speaks
from ..facts import RunFacts
from . import masked_words
from .claims import Claims
from .consistency import WHERE

IDEALISED = "idealised: exact minimiser assumed"
_PUBLIC = {
    "record": "samples and degree of every site",
    "person": "number of persons and degree of every site",
}
_KIND = {"norm": "norm noise", "gaussian": "Gaussian noise"}
_DISCRETE = {"norm": "discrete Laplace noise", "gaussian": "discrete Gaussian noise"}


def status(claims: Claims) -> str:
    """In a few words: planned, simulated or real; idealised or covered; private or not."""
    run = claims.run
    words = ["planned" if run.planned else "simulated" if run.simulated else f"real, in {WHERE[run.where]}"]
    if run.noise == "none":
        words.append("not private: no noise")
    elif run.masked:
        words.append("rounding and straying floats covered by the noise")
    elif run.idealised:
        words.append(IDEALISED)
    elif run.stated is not None:
        words.append("the cost is the author's")
    else:
        covers = f"primal {_last(run)}" if run.method == "primal" else f"{_last(run)} on the output"
        words.append(f"{'floats' if run.integers else 'solver error'} covered by {covers}")
    if claims.large_delta:
        words.append("LARGE DELTA")
    return "; ".join([*words, *run.marks])


def _last(run: RunFacts) -> str:
    """The noise that is added last."""
    kind = run.noise if run.method == "primal" else str(run.output_noise)
    return _DISCRETE[kind] if run.integers else _KIND[kind]


def theorems(claims: Claims) -> list[str]:
    """The result that each number depends on."""
    run = claims.run
    if run.noise == "none":
        return ["no noise was added: no theorem gives a finite epsilon"]
    if run.masked:
        return [*masked_words.theorems(run), *_unit(run)]
    if run.stated is not None:
        return [
            "no theorem of taciturn: the cost of one round, as the author of the method states it, summed"
        ]
    said = [_paper(claims)]
    if run.method == "primal":
        rounded = " and sqrt(d) steps of the grid" * run.integers
        said.append(f"sensitivity of the minimiser, (2 s1 C / B + 2 g) / m{rounded}, attained")
    elif run.noise == "norm":
        said.append(
            "pure epsilon: change of variables and the determinant lemma, alpha D + ln(1 + x) or tighter"
        )
    if run.noise == "gaussian":
        said.append("no pure epsilon: Gaussian noise has none")
    if run.moments:
        said.append(
            f"moments of the rows: {run.moments} releases with discrete Gaussian noise, mu-GDP each by the "
            "site's own noise, order mu^2 / 2 at every order, added to what the rounds cost"
        )
        said.append(
            "whitened rows: given the released moments a row depends on that record alone, and has norm at "
            "most 1, so the bounds on the rounds hold as they stand"
        )
    bend = "" if run.method == "primal" else ", the noise map's bend included"
    said.append(f"(epsilon, delta): {_accountant(claims, bend)}")
    if run.output_noise is not None:
        rounded = " and sqrt(d) steps of the grid" * run.integers
        said.append(f"inexact minimiser: {_last(run)} on the output, shift 2 g / m{rounded}")
    if run.outputs > 1:
        said.append(f"one-vs-rest: {run.outputs} problems cost {run.outputs} times one")
    if any(limit is not None and limit.order is not None for limit in claims.budgets):
        said.append("charges that react to the run: Renyi filter at an order fixed before it")
    return [*said, *_unit(run)]


def _unit(run: RunFacts) -> list[str]:
    """Why the bounds hold for a person with several rows."""
    if run.unit == "record":
        return []
    said = [
        "person: rows weighted to count at most as one, so that all of them together move no more than one"
    ]
    if run.method in ("penalty", "dual"):
        said.append("person: the bend has several eigenvalues, and their sum is at most that of one record")
    return said


def _accountant(claims: Claims, bend: str) -> str:
    """The accounting that gave the largest epsilon of a site."""
    if claims.accountant == "pure":
        return "the pure bound, which is the smallest here"
    if claims.accountant == "gaussian":
        return f"Gaussian noise{bend}: mu-GDP in every round, squares of mu summed, converted exactly"
    return f"Renyi divergence of {_KIND[claims.run.noise]}{bend}, summed over rounds, converted"


def _paper(claims: Claims) -> str:
    if not paper_speaks(claims.run):
        return "paper: Theorem 3 of [ZKL18] does not cover such a run"
    failing = [
        facts.name for facts, cost in zip(claims.sites, claims.costs, strict=True) if not cost.paper_condition
    ]
    if not failing:
        return (
            "paper: Theorem 3 of [ZKL18]; 2 c1 < (B/C)(rho/N + 2 theta V) and theta <= eta hold at every site"
        )
    return (
        "paper: Theorem 3 of [ZKL18] does NOT apply: 2 c1 < (B/C)(rho/N + 2 theta V) or theta <= eta fails "
        f"at {len(failing)} of {len(claims.sites)} sites, {failing[0]} first; no other bound needs it"
    )


def conditions(claims: Claims) -> list[str]:
    """What must be true of the run for the numbers to hold."""
    run = claims.run
    said = [f"relation: {run.relation}", *_where(run), *_observer(run), *_rows(run), _noise_condition(run)]
    if run.masked:
        said += masked_words.conditions(run)
    elif run.stated is not None:
        said.append("one round costs what the author of the method states, whatever was sent before")
    else:
        said += [
            *(
                ["the slope and curvature of the loss are bounded as its author states"]
                * (not run.loss.shipped)
            ),
            "every schedule was fixed before the run, without looking at the data",
            _clip(run),
            _grid(run),
            _solver(run),
            *_whitened(run),
            "after each round every site, including the sender, continued from the released value",
        ]
    return [
        *said,
        "this run alone: any other run on the same records, such as a repeated fit or a fold, adds its cost",
        "functions of broadcasts alone cost nothing, including the decision to stop; not covered are timing, "
        "iteration counts, a published training loss, and a site that stops because of its own rows",
    ]


def _whitened(run: RunFacts) -> list[str]:
    """What must be true of the coordinates."""
    if not run.moments:
        return []
    return [
        f"the coordinates of the rows are those that the moments released in the first {run.moments} rounds "
        "give, and nothing else about the data; a longer row was shortened to norm 1"
    ]


def _where(run: RunFacts) -> list[str]:
    """Where the rows were, and what that leaves to trust."""
    held = {
        "process": "one process held the rows of all sites: what it released is covered, what it saw is not",
        "folders": "the rows of each site were in a folder of its own, read by a process of its own, on one "
        "machine: the administrator of the machine could read all of them",
        "network": "the rows of each site stayed with that site, according to the addresses in the job",
    }
    return [f"where the rows were: {held[run.where]}"] if run.where in held else []


def _observer(run: RunFacts) -> list[str]:
    who = masked_words.observer(run) if run.masked else "may control every other site"
    fixed = "every sum" if run.masked else "every schedule" + ", every sum" * bool(run.moments)
    return [
        f"the observer sees every broadcast of every site and {who}",
        f"public: {_PUBLIC[run.unit]}, number of sites, rounds, dimension, {fixed}, the "
        f"start f(0) ({run.start}), the bounds and the processing of the data",
    ]


def _rows(run: RunFacts) -> list[str]:
    short = f"every row had norm at most {run.data_norm:g}, by bounds that are public"
    if run.loss.counting:
        short = f"every row was in one cell of each of {run.dimension} tables; the cells are public"
    if run.unit == "record":
        invalid = "had a cell of its own" if run.loss.counting else "became x = 0"
        return [
            f"the number of records of a site was fixed beforehand; an invalid row {invalid} and was not "
            "dropped; no record was resampled or duplicated",
            short,
        ]
    most = "any number of" if run.rows_per_person is None else f"at most {run.rows_per_person}"
    return [
        f"the number of persons, {run.persons} in all, was fixed beforehand; each had {most} rows, weighted "
        "to count at most as one",
        "the person of every row was known, and did not depend on the rows of other persons",
        short,
    ]


def _noise_condition(run: RunFacts) -> str:
    if run.noise == "none":
        return "noise: none"
    source = "from a secret source without a seed"
    if run.simulated and not run.planned:
        source = "from a seeded stream that can be replayed: this protects nobody"
    return f"one noise vector per site, round and class, independent and fresh, {source}"


def _clip(run: RunFacts) -> str:
    if run.clip is None:
        return (
            "incoming values were not clipped: the bound holds for real numbers, not for floats of every size"
        )
    return f"incoming values were clipped to [-{run.clip:g}, {run.clip:g}] before use"


def _grid(run: RunFacts) -> str:
    if run.grid is None:
        return "released values were not rounded to a grid: floats are treated as real numbers"
    if run.integers:
        return (
            f"released values are whole multiples of {run.grid:g}: the last noise is {_last(run)}, drawn "
            f"exactly in these steps. Noise inside is drawn in floats; its error, a probability of at most "
            f"{format_cost(float_delta(run))} in all, is part of delta"
        )
    return f"released values were rounded to multiples of {run.grid:g} after the noise"


def _solver(run: RunFacts) -> str:
    reached = f"each solved vector is within {run.tol:g} of the exact minimiser, rounding included"
    return (
        f"{IDEALISED}; {reached}, and no noise covers this error"
        if run.idealised
        else f"{reached}; the noise covers this error"
    )

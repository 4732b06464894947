"""Texts about the basis of a certificate's numbers: the status of the run, the theorems, the conditions."""

from __future__ import annotations

from ...core.formatting import format_cost
from ..collusion import colluders
from ..costs import float_delta, paper_speaks
from ..facts import RunFacts
from .claims import Claims
from .masked_words import CIPHERS, at_most, observer, one_process
from .site_costs import WHERE

IDEALISED = "idealised: exact minimiser assumed"
_KIND = {"norm": "norm noise", "gaussian": "Gaussian noise"}
_DISCRETE = {"norm": "discrete Laplace noise", "gaussian": "discrete Gaussian noise"}
_HELD = {
    "process": "one process held the rows of all sites: what it released is covered, what it saw is not",
    "folders": "the rows of each site were in a folder of its own, read by a process of its own, on one "
    "machine: the administrator of the machine could read all of them",
    "network": "the rows of each site stayed with that site, according to the addresses in the job",
}


def _said(*sentences: tuple[object, str]) -> list[str]:
    """The sentences whose condition is true."""
    return [sentence for applies, sentence in sentences if applies]


def status(claims: Claims) -> str:
    """In a few words: planned, simulated or real; idealised or covered; private or not."""
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
        words.append("the cost is the author's")
    else:
        covers = f"primal {_last(run)}" if run.method == "primal" else f"{_last(run)} on the output"
        words.append(f"{'floats' if run.integers else 'solver error'} covered by {covers}")
    return "; ".join([*words, *["LARGE DELTA"] * claims.large_delta, *run.marks])


def _last(run: RunFacts) -> str:
    """The kind of noise that the run adds last."""
    kind = run.noise if run.method == "primal" else run.output_noise
    return (_DISCRETE if run.integers else _KIND).get(str(kind), "no noise")


def theorems(claims: Claims) -> list[str]:
    """The theorems that the numbers depend on, one text for each."""
    run = claims.run
    if run.noise == "none":
        return ["no noise was added: no theorem gives a finite epsilon"]
    if run.stated is not None:
        return [
            "no theorem of taciturn: the cost of one round, as the author of the method states it, summed"
        ]
    inside, person = run.method in ("penalty", "dual"), run.unit == "person"
    rounded = " and sqrt(d) steps of the grid" * run.integers
    hidden = (
        "one process released the sum over all sites, and no share of it"
        if one_process(run)
        else "messages of honest sites are uniform except for the sum over those that masks connect "
        f"(one-time pads along a connected graph); computational, as strong as {CIPHERS}"
    )
    reacting = any(limit is not None and limit.order is not None for limit in claims.budgets)
    pure = "change of variables and the determinant lemma, alpha D + ln(1 + x) or tighter"
    moments = f"{run.moments} releases with discrete Gaussian noise, mu-GDP each by the site's own noise"
    added = "discrete Gaussians; rounding and float errors are included"
    return _said(
        (True, f"paper: Theorem 3 of [ZKL18]{_paper(claims)}"),
        (run.masked, "no pure epsilon: discrete Gaussian noise has none"),
        (run.masked, f"masked sums: {hidden}"),
        (run.masked, f"the noises of those sites add up: {added}"),
        (run.method == "primal", f"sensitivity of the minimiser, (2 s1 C / B + 2 g) / m{rounded}, attained"),
        (inside and run.noise == "norm", f"pure epsilon: {pure}"),
        (run.noise == "gaussian", "no pure epsilon: Gaussian noise has none"),
        (
            run.moments,
            f"moments of the rows: {moments}; each adds q mu^2 / 2 at Renyi order q to the rounds' cost",
        ),
        (
            run.moments,
            "whitened rows: given the released moments a row depends on that record alone, and has norm at "
            "most 1, so the bounds on the rounds hold as they stand",
        ),
        (True, f"(epsilon, delta): {_accountant(claims)}"),
        (run.output_noise, f"inexact minimiser: {_last(run)} on the output, shift 2 g / m{rounded}"),
        (run.outputs > 1, f"one-vs-rest: {run.outputs} problems cost {run.outputs} times one"),
        (reacting, "charges that react to the run: Renyi filter at an order fixed before it"),
        (
            person,
            "person: rows weighted to count at most as one, so that all of them together move no more than "
            "one",
        ),
        (
            person and inside,
            "person: the bend has several eigenvalues, and their sum is at most that of one record",
        ),
    )


def _accountant(claims: Claims) -> str:
    """The accountant that gave the epsilon of the worst site."""
    bend = "" if claims.run.method == "primal" else ", the noise map's bend included"
    if claims.run.masked:
        return (
            "exact curve of Gaussian differential privacy, mu^2 summed over rounds; the slack of discrete "
            "noise is added"
        )
    if claims.accountant == "pure":
        return "the pure bound, which is the smallest here"
    if claims.accountant == "gaussian":
        return f"Gaussian noise{bend}: mu-GDP in every round, squares of mu summed, converted exactly"
    return f"Renyi divergence of {_KIND[claims.run.noise]}{bend}, summed over rounds, converted"


def _paper(claims: Claims) -> str:
    """Whether the paper's theorem covers the run."""
    if not paper_speaks(claims.run):
        return " does not cover such a run"
    rows = zip(claims.sites, claims.costs, strict=True)
    failing = [facts.name for facts, cost in rows if not cost.paper_condition]
    needs = "2 c1 < (B/C)(rho/N + 2 theta V)"
    if not failing:
        return f"; {needs} and theta <= eta hold at every site"
    return (
        f" does NOT apply: {needs} or theta <= eta fails at {len(failing)} of {len(claims.sites)} sites, "
        f"{failing[0]} first; no other bound needs it"
    )


def conditions(claims: Claims) -> list[str]:
    """The conditions on the run."""
    run = claims.run
    own, solved = run.stated is not None, not run.masked and run.stated is None
    who = observer(run) if run.masked else "may control every other site"
    public = "number of persons" if run.unit == "person" else "samples"
    fixed = "every sum" if run.masked else "every schedule" + ", every sum" * bool(run.moments)
    return [
        f"relation: {run.relation}",
        *_said((run.where in _HELD, f"where the rows were: {_HELD.get(run.where)}")),
        f"the observer sees every broadcast of every site and {who}",
        f"public: {public} and degree of every site, number of sites, rounds, dimension, {fixed}, the "
        f"start f(0) ({run.start}), the bounds and the processing of the data",
        *_rows(run),
        _noise_condition(run),
        *(_masks(run) if run.masked else []),
        *_said((own, "one round costs what the author of the method states, whatever was sent before")),
        *(_solves(run) if solved else []),
        "this run alone: any other run on the same records, such as a repeated fit or a fold, adds its cost",
        "functions of broadcasts alone cost nothing, including the decision to stop; not covered are timing, "
        "iteration counts, a published training loss, and a site that stops because of its own rows",
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


def _masks(run: RunFacts) -> list[str]:
    """The conditions on the masks and on the sites that send them."""
    linked = "every two sites share masks"
    if run.connectivity is not None:
        linked = f"masks still connect the other sites if fewer than {run.connectivity} sites are removed"
    inside = one_process(run)
    return _said(
        (
            True,
            f"{at_most(colluders(run, run.colluding))} of the other sites colluded with the observer; "
            "`epsilon_against` lists the figure for every other number",
        ),
        (
            inside,
            f"{linked}; one process drew all keys from one random source and knew every mask and every share",
        ),
        (inside, "that process made one message per site and round, and released nothing but their sum"),
        (
            not inside,
            f"{linked}; keys of pairs were made for this run, are known to the two sites alone, and no mask "
            "was used twice",
        ),
        (
            not inside,
            "each site sent at most one message per round, and the same bytes whenever it was sent again",
        ),
        (
            not inside,
            "a site that is broken into later counts as colluding for every round whose key it still holds",
        ),
        (
            not inside,
            "a site that lies or sends different things to different sites can spoil the model, not the "
            "promise",
        ),
        (
            True,
            "the sums, their sensitivities, grids and noise were fixed before the run, without looking at "
            "data",
        ),
    )


def _solves(run: RunFacts) -> list[str]:
    """The conditions on the paper's rounds."""
    clip = "incoming values were not clipped: the bound holds for real numbers, not for floats of every size"
    if run.clip is not None:
        clip = f"incoming values were clipped to [-{run.clip:g}, {run.clip:g}] before use"
    reached = f"each solved vector is within {run.tol:g} of the exact minimiser, rounding included"
    return _said(
        (not run.loss.shipped, "the slope and curvature of the loss are bounded as its author states"),
        (True, "every schedule was fixed before the run, without looking at the data"),
        (True, clip),
        (True, _grid(run)),
        (run.idealised, f"{IDEALISED}; {reached}, and no noise covers this error"),
        (not run.idealised, f"{reached}; the noise covers this error"),
        (
            run.moments,
            f"the coordinates of the rows are those that the moments released in the first {run.moments} "
            "rounds give, and nothing else about the data; a longer row was shortened to norm 1",
        ),
        (True, "after each round every site, including the sender, continued from the released value"),
    )


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

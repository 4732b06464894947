"""A report from certificates: the privacy cost of runs by round and by site, and the claims that follow.

A certificate contains the public facts of a run and the privacy cost that follows from them. The worst site
is the site with the largest cost.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import networkx as nx
import numpy as np

from ..core.errors import ParameterError
from ..core.formatting import format_odds
from ..core.types import Array
from ..graph import Graph
from ..privacy.certificate import assumptions
from ..privacy.certificate.certificate import Certificate
from ..privacy.certificate.claims import epsilon_curve, pure_curve, site_releases
from ..privacy.costs import paper_costs
from .brief import brief, headline, marks
from .data import (
    Accounting,
    Chart,
    Curve,
    Illustration,
    KeyNumber,
    NetworkMap,
    ReportData,
    SiteCosts,
    Statement,
)
from .html.numbers import power

_FEW = 12  # with more sites, the page shows the total cost of each site, but no curves
_LEFT_OUT = ("tables", "sites", "statement", "theorems", "conditions")


def from_certificates(
    certificates: Mapping[str, Certificate],
    *,
    title: str,
    subtitle: str = "",
    graph: Graph | None = None,
    charts: Sequence[Chart] = (),
    about: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    provenance: Mapping[str, Any] | None = None,
    quality: Mapping[str, Sequence[KeyNumber]] | None = None,
    illustration: Illustration | None = None,
) -> ReportData:
    """A report of one or more certified runs, keyed by name; all certificates must have the same delta.

    charts : quantities by round other than the cost. Their curves have the names of the runs. Set
        `private=False` in a chart whose numbers were computed from the records without a guarantee.
    about : facts that are not in a certificate: `date`, `learnt` (the quantity that was learnt),
        `features` (names of columns), and `verify` (the command that checks the certificate).
    quality : numbers of each run other than its cost, such as a test score.
    illustration : a picture above the charts.
    """
    if len(deltas := {certificate.delta for certificate in certificates.values()}) != 1:
        raise ParameterError(
            f"`certificates` must have at least one entry, all with the same `delta`; got the deltas "
            f"{sorted(deltas)}."
        )
    first = next(iter(certificates.values()))
    alone = len(certificates) == 1
    counted = _accountings(certificates, first.delta)
    return ReportData(
        title=title,
        subtitle=subtitle,
        headline=headline(certificates),
        scale=first.epsilon if alone and math.isfinite(first.epsilon) else None,
        illustration=illustration,
        marks=marks(certificates),
        brief=brief(first, about) if alone else {},
        key_numbers={
            name: [*(quality or {}).get(name, ()), *_key_numbers(name, certificate, charts)]
            for name, certificate in certificates.items()
        },
        charts=charts,
        accountings=[entry for entry in counted if entry.key == "renyi" or entry.chart.curves],
        network=None if graph is None else _network(graph, list(certificates.values())),
        statements=[_statement(name, certificate) for name, certificate in certificates.items()],
        settings=dict(settings or {}),
        provenance=dict(provenance or {}),
    )


def _accountings(certificates: Mapping[str, Certificate], delta: float) -> list[Accounting]:
    """The costs computed in three ways; the first way gives the certified cost."""
    costs = {name: cost_curves(certificate) for name, certificate in certificates.items()}
    words = {
        "renyi": (
            f"ε at δ = {power(delta)}",
            "The cost of all rounds together. It is exact if all noise is Gaussian. Otherwise, it is the "
            "smaller of pure ε and a bound from Rényi divergences."
            f" Except for a chance of {format_odds(delta)}, the probability of anything visible "
            "changes by at most the factor exp(ε).",
        ),
        "pure": (
            "Pure ε",
            "ε without any exception (δ = 0): the sum of the tight bounds of all rounds.",
        ),
        "paper": (
            "Paper's P(t)",
            "The sum over the rounds of the bounds in Theorem 3 of Zhang, Khalili and Liu (ICML 2018). The "
            "theorem has stronger conditions than the other two bounds.",
        ),
    }
    failing = [  # the paper's bound is finite for these runs, although its theorem does not apply to them
        name
        for name, certificate in certificates.items()
        if math.isfinite(certificate.paper_epsilon)
        and not all(cost.paper_condition for cost in certificate.costs)
    ]
    found = []
    for key, (short, meaning) in words.items():
        bounded = {name: cost[key] for name, cost in costs.items() if np.isfinite(cost[key]).all()}
        curves = [_curve(name, cost) for name, cost in bounded.items()]
        notes = []
        if any(curve.low[-1] < 0.99 * curve.high[-1] for curve in curves if len(curve.low)):
            notes.append("Line: the site that spent most. Shaded area: all other sites.")
        if key == "paper" and failing:
            notes.append(
                f"The condition of Theorem 3 fails for {', '.join(failing)}: P(t) is no guarantee for them."
            )
        chart = Chart(key, "By round, the worst site", short, curves, "bound", note=" ".join(notes))
        sites = [_site_costs(name, certificates[name], cost) for name, cost in bounded.items()]
        unbounded = [name for name in costs if name not in bounded]
        found.append(Accounting(key, short, meaning, chart, sites, unbounded))
    return found


def _curve(name: str, cost: Array) -> Curve:
    """The cost of the worst site after each round, and the range over the sites if their costs differ."""
    low, high = cost.min(axis=0).tolist(), cost.max(axis=0).tolist()
    rounds = range(1, len(high) + 1)
    return Curve(name, rounds, high) if low == high else Curve(name, rounds, high, low, high)


def _site_costs(name: str, certificate: Certificate, cost: Array) -> SiteCosts:
    """The cost of each site, by the number of the site; NaN for sites that the certificate does not cover."""
    every = np.full((certificate.run.sites, cost.shape[1]), np.nan)
    every[[facts.site for facts in certificate.sites]] = cost
    return SiteCosts(name, every[:, -1].tolist(), every.tolist() if len(every) <= _FEW else ())


def _key_numbers(name: str, certificate: Certificate, charts: Sequence[Chart]) -> list[KeyNumber]:
    found = []
    for chart in charts:
        for curve in chart.curves:
            if curve.name == name and chart.key in ("loss", "accuracy"):
                low, high = (curve.low[-1], curve.high[-1]) if len(curve.low) else (None, None)
                found.append(KeyNumber(chart.title, curve.mean[-1], chart.format, low, high))
    others = {"Pure ε": certificate.pure_epsilon, "Paper's P(t)": certificate.paper_epsilon}
    costs = {f"ε at δ = {power(certificate.delta)}": certificate.epsilon}
    costs |= {label: epsilon for label, epsilon in others.items() if math.isfinite(epsilon)}
    return [*found, *(KeyNumber(label, epsilon, "bound") for label, epsilon in costs.items())]


def _statement(name: str, certificate: Certificate) -> Statement:
    body = json.loads(certificate.to_json())
    numbers = {key: value for key, value in body.items() if key not in _LEFT_OUT}
    for key in ("epsilon", "pure_epsilon", "paper_epsilon"):
        numbers[key] = getattr(certificate, key)
    rests = assumptions.conditions(certificate), assumptions.theorems(certificate)
    return Statement(name, certificate.statement(), *rests, numbers)


def _network(graph: Graph, certificates: Sequence[Certificate]) -> NetworkMap:
    """The network with the names of its sites, and with their numbers of records if all runs agree."""
    first = {facts.site: facts for facts in certificates[0].sites}
    samples = {tuple(facts.samples for facts in certificate.sites) for certificate in certificates}
    known = len(samples) == 1 and len(first) == graph.n
    return NetworkMap(
        names=[first[i].name if i in first else f"site {i}" for i in range(graph.n)],
        edges=graph.edges,
        places=places(graph),
        kind=graph.name,
        samples=[first[i].samples for i in range(graph.n)] if known else (),
    )


CostCurves = Mapping[str, Array]
"""For each of "renyi", "pure" and "paper": an array of shape (sites, rounds) with the cost of each site up to
each round. A row never decreases. For a complete run, the last column is the certified total."""

_TOTALS = {"renyi": "epsilon", "pure": "pure_epsilon", "paper": "paper_epsilon"}


def cost_curves(certificate: Certificate) -> CostCurves:
    """The cost of every site up to each round. Equal sites share one computation."""
    rounds = np.arange(1, max(1, certificate.rounds) + 1)
    known: dict[tuple[object, ...], dict[str, Array]] = {}
    found: dict[str, list[Array]] = {kind: [] for kind in _TOTALS}
    for row, cost in enumerate(certificate.costs):
        releases = certificate.releases[row]
        key = certificate.sites[row].samples, certificate.budgets[row], *(c.tobytes() for c in releases)
        curves = known.get(key) or known.setdefault(key, _site(certificate, row))
        limit = certificate.budgets[row]
        whole = releases.t.size == certificate.run.rounds or (limit is not None and limit.order is not None)
        for kind, total in _TOTALS.items():
            level = curves[kind][np.minimum(rounds, len(curves[kind])) - 1]  # constant after the last release
            spent = np.minimum(level, getattr(cost, total))
            # The curve of a run that ended early may end below the certified cost, which includes all planned
            # rounds. But with a budget at one fixed Renyi order, every curve ends at the certified cost.
            if whole:
                spent[-1] = getattr(cost, total)
            found[kind].append(spent)
    return {kind: np.array(curves) for kind, curves in found.items()}


def _site(certificate: Certificate, row: int) -> dict[str, Array]:
    """The cost of one site up to each round, in three ways. The curves end at the site's last release."""
    run = certificate.run
    # A sum over all sites has only one bound, which assumes that `run.colluding` sites collude.
    if run.mechanism.summed:
        none = np.full(1, np.inf)
        curve = epsilon_curve(certificate, row) if certificate.releases[row].t.size else np.zeros(1)
        return {"renyi": curve, "pure": none, "paper": none}
    paper = np.cumsum(paper_costs(run, site_releases(certificate, row)))
    return {"renyi": epsilon_curve(certificate, row), "pure": pure_curve(certificate, row), "paper": paper}


_MANY = 60  # with more sites, the Kamada-Kawai layout would be slow (cubic time)
_DENSE = 5.0  # graphs with at least this mean degree are drawn as a circle


def places(graph: Graph) -> list[tuple[float, float]]:
    """One point per site in the unit square.

    The sites of rings, dense graphs and small graphs form a circle. In other graphs, two sites are close to
    each other if a short path connects them.
    """
    network: Any = graph.to_networkx()
    ring = bool((graph.degrees == 2).all())
    if ring or graph.degrees.mean() >= _DENSE or graph.n <= 3:
        around: Any = nx.dfs_preorder_nodes(network, 0) if ring else range(graph.n)
        found = {i: xy[::-1] * (1, -1) for i, xy in nx.circular_layout(around).items()}  # start at the top
    elif graph.n <= _MANY:
        # The spectral layout may put several leaves on one point, so a small circular layout is added to it.
        around, start = nx.circular_layout(network), nx.spectral_layout(network)
        found = nx.kamada_kawai_layout(network, pos={i: xy + around[i] / 5 for i, xy in start.items()})
    else:
        found = nx.spring_layout(network, seed=0, iterations=100)
    points = np.array([found[i] for i in range(graph.n)])
    low, span = points.min(axis=0), np.ptp(points, axis=0)
    points = (points - low - span / 2) / (float(span.max()) or 1.0) + 0.5
    return [(round(float(x), 4), round(float(y), 4)) for x, y in points]

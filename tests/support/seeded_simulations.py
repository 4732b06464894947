"""Seeded runs of `tt.simulate`: of every method, for records and persons, with all kinds of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import taciturn as tt
from support.gossip import gossip
from support.seeded_rows import (
    Outcome,
    Rows,
    as_sparse,
    digest,
    hash_run,
    hash_vectors,
    rows,
    with_classes,
    with_constant,
    with_targets,
)
from taciturn.methods.admm.updates import network_average

GAUSSIAN = tt.GaussianNoise(std=tt.Geometric(0.4, 0.98))
NORM = tt.NormNoise(rate=tt.Geometric(3.0, 1.03))
GROWING = tt.Geometric(0.5, 1.04)
ON_RAY = ("penalty norm", "penalty gaussian", "masked", "masked, sparse rows", "softmax", "persons, masked")
COVERED = {"output_noise": tt.GaussianNoise(1e-4), "grid": 2.0**-20, "clip": 64.0}


@dataclass(frozen=True)
class Case:
    """One run of `tt.simulate`, but for the engine."""

    problem: Any
    graph: Any
    method: Any
    options: Mapping[str, Any] = field(default_factory=dict)

    def run(self, **how: Any) -> tt.Run:
        options = {"rounds": 12, "repeats": 2, "seed": 7, "progress": False} | dict(self.options)
        return tt.simulate(self.problem, self.graph, self.method, **options, **how)


def simulations() -> dict[str, Case]:
    """The name of each run of `tt.simulate`."""
    return noisy_descents() | masked_descents() | runs_for_persons()


def noisy_descents() -> dict[str, Case]:
    """Noise of each site's own, inside the penalty, on the dual variable or on what is sent; and none."""
    sites = [rows(site, 40 + 7 * site, 6) for site in range(5)]
    wide = [rows(site, 120, 90) for site in range(3)]
    covered = tt.PenaltyPerturbation(GROWING, 0.5, GAUSSIAN, **COVERED)
    ring, hinge = tt.Graph.ring(5), tt.SmoothHinge(0.5)
    each = [tt.Geometric(0.5 + 0.1 * site, 1.02) for site in range(5)]

    def case(method: Any, graph: Any = ring, sites: list[Rows] = sites, **options: Any) -> Case:
        terms = {"loss": tt.Logistic(), "C": 40.0, "regularization": 0.1}
        terms |= {key: options.pop(key) for key in ("loss", "weights") if key in options}
        return Case(tt.Problem(sites, **terms), graph, method, options)

    return {
        "admm": case(tt.ADMM(penalty=0.5)),
        "modified": case(tt.MADMM(tt.Geometric(0.5, 1.05), 0.5), tt.Graph.star(5), loss=hinge),
        "penalty norm": case(tt.PenaltyPerturbation(GROWING, 0.5, NORM)),
        "penalty gaussian": case(covered, tt.Graph.complete(5)),
        "dual": case(tt.DualPerturbation(0.5, NORM), tt.Graph.path(5)),
        "primal": case(tt.PrimalPerturbation(0.5, GAUSSIAN), loss=hinge),
        "penalty of each site": case(tt.PenaltyPerturbation(each, 0.4, GAUSSIAN), start="random"),
        "penalty, weights": case(covered, weights=[np.linspace(0.2, 1.0, len(y)) for _, y in sites]),
        "penalty, sparse rows": case(covered, sites=as_sparse(sites)),
        "penalty, wide rows": case(covered, "path", wide),
        "penalty, wide sparse rows": case(covered, "path", as_sparse(wide)),
        "penalty, regression": case(covered, sites=with_targets(sites), loss=tt.LogCosh(0.5)),
        "dual, output noise": case(tt.DualPerturbation(0.5, GAUSSIAN, **COVERED), "star"),
        "primal norm": case(tt.PrimalPerturbation(0.5, tt.NormNoise(rate=20.0), dual_step=0.3)),
    }


def masked_descents() -> dict[str, Case]:
    """Sums that all sites add up and nobody sees a part of, of one model or of several classes."""
    sites = [rows(site, 80 + 7 * site, 6) for site in range(5)]
    closed, usual = with_constant(sites), tt.MaskedDescent(epsilon=4.0)

    def case(method: tt.MaskedDescent, sites: list[Rows] = sites, graph: Any = "ring", **terms: Any) -> Case:
        problem = tt.SoftmaxProblem if "classes" in terms else tt.Problem
        return Case(problem(sites, **({"C": 40.0, "regularization": 0.1} | terms)), graph, method)

    def intercept(**facts: Any) -> Case:
        return case(tt.MaskedDescent(epsilon=4.0, constant=0.5, **facts), closed)

    three, four = with_classes(sites, 3), with_classes(sites, 4)
    whitened = tt.MaskedDescent(epsilon=4.0, whiten=True)
    return {
        "masked": case(usual),
        "masked, all moments": case(tt.MaskedDescent(epsilon=4.0, full=True)),
        "masked, squares": case(tt.MaskedDescent(epsilon=4.0, full=False)),
        "masked, intercept": intercept(full=True),
        "masked, intercept, squares": intercept(full=False),
        "masked, intercept, against all": intercept(colluding=None),
        "masked, intercept, squares, against all": intercept(colluding=None, full=False),
        "masked against nobody": case(tt.MaskedDescent(epsilon=4.0, colluding=0), graph="star"),
        "masked against all": case(tt.MaskedDescent(epsilon=4.0, colluding=None)),
        "masked, not bounded": case(tt.MaskedDescent(epsilon=4.0, bounded=False)),
        "masked, few masks": case(tt.MaskedDescent(epsilon=4.0, connectivity=2, share=0.3)),
        "masked, hinge": case(usual, loss=tt.SmoothHinge(0.5)),
        "masked, regression": case(usual, with_targets(sites), loss=tt.LogCosh(0.5)),
        "masked, sparse rows": case(usual, as_sparse(sites)),
        "masked, sparse rows, squares": case(tt.MaskedDescent(epsilon=4.0, full=False), as_sparse(sites)),
        "masked, weights": case(usual, weights=[np.linspace(0.2, 1.0, len(y)) for _, y in sites]),
        "whitened": case(whitened),
        "whitened, intercept, against all": intercept(colluding=None, whiten=True),
        "whitened, sparse rows": case(whitened, as_sparse(sites)),
        "whitened, weights": case(whitened, weights=[np.linspace(0.2, 1.0, len(y)) for _, y in sites]),
        "softmax": case(usual, three, classes=3),
        "softmax, intercept": case(
            tt.MaskedDescent(epsilon=4.0, constant=0.5), with_constant(three), classes=3
        ),
        "softmax, squares, against all": case(
            tt.MaskedDescent(epsilon=4.0, colluding=None, full=False), four, classes=4
        ),
        "softmax, not bounded": case(tt.MaskedDescent(epsilon=4.0, bounded=False), four, classes=4),
        "softmax, sparse rows": case(usual, as_sparse(three), classes=3),
    }


def runs_for_persons() -> dict[str, Case]:
    """A promise to persons, who have one to three rows each."""
    sites = [rows(site, 90, 6) for site in range(4)]
    own = [1000 * site + np.arange(90) // (1 + np.arange(90) % 3) for site in range(4)]
    travelling = [np.arange(90) // 2 + 20 * site for site in range(4)]
    terms: dict[str, Any] = {"C": 20.0, "regularization": 0.1}
    here = tt.Problem(sites, persons=own, rows_per_person=20, **terms)
    anywhere = tt.Problem(sites, persons=travelling, rows_per_person=8, sites_per_person=4, **terms)
    classes = tt.SoftmaxProblem(with_classes(sites, 3), classes=3, persons=own, **terms)
    usual = tt.MaskedDescent(epsilon=4.0)
    return {
        "persons, penalty": Case(here, "ring", tt.PenaltyPerturbation(GROWING, 0.5, GAUSSIAN, **COVERED)),
        "persons, primal": Case(here, "ring", tt.PrimalPerturbation(0.5, GAUSSIAN)),
        "persons, dual": Case(here, "star", tt.DualPerturbation(0.5, GAUSSIAN)),
        "persons, masked": Case(here, "ring", usual),
        "persons at several sites, masked": Case(anywhere, "ring", usual),
        "persons at several sites, whitened": Case(anywhere, "ring", replace(usual, whiten=True)),
        "persons, softmax": Case(classes, "ring", tt.MaskedDescent(epsilon=4.0, colluding=None)),
    }


def simulate_here() -> Iterator[tuple[str, Outcome]]:
    """Every run of `tt.simulate`, which one thread and two must drive to the same bits."""
    for name, case in simulations().items():
        run = case.run(threads=1)
        if hash_run(case.run(threads=2)) != hash_run(run):
            raise AssertionError(f"{name}: a second thread changes the numbers")
        if name in ON_RAY:
            yield f"{name}, vectors", Outcome(hash_vectors(run))
        noisy = name not in ("admm", "modified")
        yield name, Outcome(hash_run(run), run.certificate(delta=1e-5) if noisy else None)
    case = simulations()["penalty gaussian"]
    mixed = gossip(case.run().coef, case.graph, steps=3, weights=[1, 2, 3, 4, 5])
    yield "gossip", Outcome(digest(mixed, network_average(mixed)))

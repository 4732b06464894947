"""The accountant gets from the tables exactly what the nodes then charge."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from taciturn import (
    MADMM,
    DualPerturbation,
    GaussianNoise,
    Geometric,
    LogCosh,
    Logistic,
    NormNoise,
    PenaltyPerturbation,
    PrimalPerturbation,
    SmoothHinge,
)
from taciturn.methods.admm.prepared import PreparedADMM
from taciturn.methods.admm.tables import loss_facts, price_run
from taciturn.methods.base import Network
from taciturn.privacy.facts import PLANNED

NOISE = NormNoise([Geometric(3.0, 1.03), 2.0, 1.0])
FULL = PenaltyPerturbation(
    penalty=[0.5, Geometric(0.6, 1.1), 0.7],
    dual_step=0.4,
    noise=NOISE,
    output_noise=GaussianNoise(1e-3),
    grid=2.0**-20,
    clip=8.0,
)


def prepared(method=FULL, sites=3, start="zeros"):
    network = Network.without_rows(
        [10, 20, 30],
        [1, 2, 1],
        total=sites,
        dimension=7,
        loss=SmoothHinge(0.5),
        C=2.0,
        regularization=0.1,
    )
    return PreparedADMM(network, method.tables(3, 4), 1e-8, "", start)


def facts(method=FULL, sites=3, start="zeros", **given):
    given = {"where": "" if PLANNED in given.get("marks", ()) else "process", "simulated": False} | given
    return prepared(method, sites, start).run_facts(**given)


def test_every_fact_of_the_method_reaches_the_run():
    run = facts(outputs=3, start="random", marks=(PLANNED,))
    assert (run.method, run.noise, run.output_noise, run.grid, run.clip) == (
        "penalty",
        "norm",
        "gaussian",
        2.0**-20,
        8.0,
    )
    assert (run.sites, run.rounds, run.dimension, run.C, run.regularization) == (3, 4, 7, 2.0, 0.1)
    assert (run.tol, run.simulated, run.outputs, run.start, run.marks) == (
        1e-8,
        False,
        3,
        "random",
        (PLANNED,),
    )
    assert run.loss == loss_facts(SmoothHinge(0.5))


def test_the_network_may_have_more_sites_than_the_tables():
    assert facts(sites=50).sites == 50


@pytest.mark.parametrize(
    ("given", "method"),
    [
        (MADMM(0.5, 0.5), "none"),
        (DualPerturbation(0.5, NOISE), "dual"),
        (PrimalPerturbation(0.5, NOISE), "primal"),
    ],
)
def test_the_facts_name_the_method(given, method):
    run = facts(given)
    assert (run.method, run.output_noise) == (method, None)
    assert (run.noise == "none") == (method == "none")


def each(method, t, sites):
    """The charges of round t, one by one, of sites that the tables have rows for."""
    return list(method.tables(3, 4).part(range(len(sites))).charges(t, np.array(sites)).each())


def test_a_charge_is_the_tables_entry_for_that_site_and_round():
    tables = FULL.tables(3, 4)
    assert each(FULL, 3, [0, 1, 2])[1] == (1, 3, tables.eta[1, 2], 2.0, 1e-3, None, False)
    assert each(FULL, 1, [5, 6, 7])[2] == (7, 1, 0.7, 1.0, 1e-3, None, False)
    assert each(MADMM(0.5, 0.5), 1, [0])[0] == (0, 1, 0.5, 0.0, None, None, False)


@pytest.mark.parametrize("method", [FULL, MADMM(0.5, 0.4), DualPerturbation(0.5, NOISE)], ids=repr)
def test_all_charges_of_a_round_are_those_of_its_sites(method):
    tables = method.tables(3, 4)
    for t in range(1, 5):
        alone = [list(tables.part(range(i, i + 1)).charges(t, np.array([i])).each()) for i in range(3)]
        assert [[charge] for charge in each(method, t, [0, 1, 2])] == alone


def test_a_priced_run_holds_every_round_of_every_site():
    tables = FULL.tables(3, 4)
    sites = prepared().site_facts()
    assert [(site.site, site.samples, site.degree, site.dual_step) for site in sites] == [
        (0, 10, 1, (0.4,)),
        (1, 20, 2, (0.4,)),
        (2, 30, 1, (0.4,)),
    ]
    whole = price_run(tables, facts(), sites)
    alone = price_run(tables.part(range(1, 2)), facts(), sites[1:2])
    for i in range(3):
        columns = whole.columns(i)
        assert columns.t.tolist() == [1, 2, 3, 4]
        assert np.array_equal(columns.eta, tables.eta[i]) and np.array_equal(columns.scale, tables.scale[i])
        assert np.array_equal(columns.output_scale, tables.output_scale[i])
    assert np.array_equal(alone.columns(1).eta, tables.eta[1])


@pytest.mark.parametrize("loss", [Logistic(), SmoothHinge(0.3), LogCosh(2.0)], ids=repr)
def test_a_shipped_loss_keeps_its_name_and_its_parameters(loss):
    found = loss_facts(loss)
    assert found.name == loss.name and found.parameters == dataclasses.asdict(loss)
    assert (found.slope_bound, found.curvature_bound) == (loss.slope_bound, loss.curvature_bound)


def test_user_loss_cannot_claim_the_bound_of_a_shipped_loss():
    class Mine(Logistic):
        """By the same name."""

    assert loss_facts(Mine()).name == "custom logistic"

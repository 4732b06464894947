"""Every method keeps what `Method` promises: all numbers of a run, checked, before anything is spent."""

from __future__ import annotations

import inspect
import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import taciturn as tt
from support.problems import make_sites
from taciturn.core.errors import ParameterError
from taciturn.methods.admm import perturbations as methods
from taciturn.methods.admm.perturbations import ADMMMethod, Release
from taciturn.methods.admm.prepared import PreparedADMM
from taciturn.methods.base import Network
from taciturn.methods.loop import drive, loop
from taciturn.privacy.mechanisms import MECHANISMS

SITES, ROUNDS = 3, 4
NOISE = tt.GaussianNoise(tt.Geometric(0.3, 0.9))
PER_SITE = [0.5, tt.Geometric(0.6, 1.1), tt.Table([0.7, 0.8])]
EXAMPLES: list[Any] = [
    tt.ADMM(0.5),
    tt.MADMM(PER_SITE, [0.4, 0.3, 0.5]),
    tt.PenaltyPerturbation(PER_SITE, 0.4, NOISE),
    tt.PenaltyPerturbation(
        0.5, 0.4, tt.NormNoise([3.0, 4.0, 5.0]), output_noise=NOISE, grid=2.0**-10, clip=8.0
    ),
    tt.DualPerturbation(0.5, NOISE),
    tt.PrimalPerturbation(PER_SITE, NOISE),
    tt.PrimalPerturbation(0.5, NOISE, dual_step=0.4, grid=2.0**-10, clip=8.0),
]
every_method = pytest.mark.parametrize("method", EXAMPLES, ids=repr)


def test_no_method_goes_untested() -> None:
    shipped = {
        found
        for _, found in inspect.getmembers(methods, inspect.isclass)
        if issubclass(found, ADMMMethod) and found not in (ADMMMethod, Release)
    }
    assert {type(method) for method in EXAMPLES} == shipped


@every_method
def test_every_number_of_every_site_and_round_is_there_and_positive(method: Any) -> None:
    tables = method.tables(SITES, ROUNDS)
    assert (tables.sites, tables.rounds, len(tables.penalties)) == (SITES, ROUNDS, SITES)
    given = [tables.eta, tables.theta, tables.scale, tables.output_scale]
    for table in filter(lambda table: table is not None, given):
        assert table.shape == (SITES, ROUNDS) and np.isfinite(table).all() and (table > 0).all()
    assert tables.method in MECHANISMS and tables.private == (tables.method != "none")
    assert (tables.noise is None) == (tables.scale is None) == (not tables.private)
    assert (tables.output_noise is None) == (tables.output_scale is None)


@every_method
def test_method_and_its_tables_are_immutable(method: Any) -> None:
    first, again = method.tables(SITES, ROUNDS), replace(method).tables(SITES, ROUNDS)
    assert replace(method) == method
    for name in ("eta", "theta", "scale", "output_scale"):
        assert np.array_equal(getattr(first, name), getattr(again, name)), name
    with pytest.raises(AttributeError):
        method.penalty = 9.0
    longer = method.tables(SITES, ROUNDS + 3)
    assert np.array_equal(longer.eta[:, :ROUNDS], first.eta), "what is to come changes no round before it"


@every_method
@pytest.mark.parametrize("bad", [0, -1, 1.5, None, True])
def test_a_bad_number_of_sites_or_rounds_is_refused_by_name(method: Any, bad: Any) -> None:
    with pytest.raises(ParameterError, match="`sites` must be"):
        method.tables(bad, ROUNDS)
    with pytest.raises(ParameterError, match="`rounds` must be"):
        method.tables(SITES, bad)


@every_method
@pytest.mark.parametrize("bad", [0.0, -0.5, np.inf, np.nan, "0.5"])
def test_a_bad_penalty_is_refused_by_name(method: Any, bad: Any) -> None:
    with pytest.raises(ParameterError, match="`penalty` must"):
        replace(method, penalty=bad).tables(SITES, ROUNDS)


@every_method
def test_tables_can_be_cut_to_some_sites(method: Any) -> None:
    tables = method.tables(SITES, ROUNDS)
    part = tables.part(range(1, 3))
    assert part.sites == 2 and part.penalties == tables.penalties[1:]
    for name in ("eta", "theta", "scale", "output_scale"):
        whole = getattr(tables, name)
        if whole is None:
            assert getattr(part, name) is None and getattr(tables.site(0), name) is None
            continue
        assert np.array_equal(getattr(part, name), whole[1:]) and getattr(part, name).base is None
        for i in range(SITES):
            assert np.array_equal(getattr(tables.site(i), name), whole[i])
    one = tables.site(1)
    same = ("method", "noise", "output_noise", "grid", "clip", "rounds", "private")
    assert all(getattr(one, name) == getattr(part, name) == getattr(tables, name) for name in same)


@every_method
def test_its_cost_is_known_beforehand_and_finite_only_with_noise(method: Any) -> None:
    tables = method.tables(SITES, ROUNDS)
    public = {"loss": tt.Logistic(), "C": 2.0, "regularization": 0.1}
    network = Network.without_rows([40] * 3, [2] * 3, total=SITES, dimension=6, **public)
    prepared = PreparedADMM(network, tables, 1e-9, repr(method))
    run = prepared.run_facts(simulated=True)
    certificate = prepared.forecast(run, 1e-5)
    assert (certificate.epsilon < np.inf) == tables.private
    assert run.method == tables.method and run.rounds == ROUNDS


def releases_of(method: Any, seed: int) -> list[Any]:
    problem = tt.Problem(make_sites(n=SITES), loss=tt.Logistic(), C=2.0, regularization=0.1)
    prepared = method.prepare(Network.of(problem, tt.Graph.ring(SITES)), ROUNDS).part(range(1, 2))
    (node,) = prepared.nodes([problem.site(1)], [range(1)], seed=seed, repeats=1)
    stored: list[Any] = []

    def exchange(sent: Any) -> Any:
        return np.full((1, 1, 6), 0.01 * sent.t)

    drive(loop(node, node.start(None, None)), store=stored.append, exchange=exchange)
    return stored


@every_method
def test_a_node_releases_every_round_charged_as_tabled_with_noise_if_there_is_some(method: Any) -> None:
    tables, one, other = method.tables(SITES, ROUNDS), releases_of(method, 1), releases_of(method, 2)
    assert [release.t for release in one] == [1, 2, 3, 4]
    for release, again in zip(one, other, strict=True):
        at = 1, release.t - 1
        (charge,) = release.charges.each()
        assert charge.site == 1 and charge.eta == tables.eta[at]
        assert charge.scale == (0.0 if tables.scale is None else tables.scale[at])
        output = None if tables.output_scale is None else tables.output_scale[at]
        assert charge.output_scale == output
        assert np.array_equal(release.message, again.message) == (not tables.private)
    for before, after in itertools.pairwise(one):
        assert np.array_equal(after.state.f, before.message), "it goes on from what it released"


@every_method
def test_what_leaves_the_site_is_clipped_and_on_the_grid(method: Any) -> None:
    if not isinstance(method, Release):
        return
    narrow = replace(method, grid=2.0**-4, clip=0.25)
    for release in releases_of(narrow, 3):
        assert np.abs(release.message).max() <= 0.25
        assert np.array_equal(release.message * 16, np.rint(release.message * 16))
    with pytest.raises(ParameterError, match="`clip` must be a whole multiple of `grid`"):
        replace(method, grid=2.0**-4, clip=0.3)

"""The paper's method in whitened coordinates: its cost, its rows, and the forgeries that are rejected."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import taciturn as tt
from support.sharded import make_shards, run_shards, setup_of
from taciturn.core.canonical import digest
from taciturn.core.errors import BudgetExceeded, CertificateError, DataError, ParameterError
from taciturn.methods.base import Network
from taciturn.methods.whitened_penalty import ROUNDS, moments_of_rows, whitened_objective
from taciturn.privacy.accounting import bounds
from taciturn.privacy.accounting.gaussian import gaussian_epsilon
from taciturn.privacy.collusion import masked_mu
from taciturn.privacy.costs import Releases, gaussian_totals, renyi_totals
from taciturn.privacy.facts import SiteBudget

MU, SITES, T = 0.3, 4, 5
GRAPH = tt.Graph.ring(SITES)


def table(seed=0, rows=300, d=5):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(SITES * rows, d)) * np.array([1.0, 0.4, 0.2, 0.1, 0.05])[:d]
    X /= np.linalg.norm(X, axis=1).max()
    return X, np.where(generator.random(len(X)) < 1 / (1 + np.exp(-8 * X.sum(axis=1))), 1.0, -1.0)


def problem(seed=0, X=None, y=None, **more):
    made = table(seed)
    X, y = (made[0] if X is None else X), (made[1] if y is None else y)
    each = [(X[i::SITES], y[i::SITES]) for i in range(SITES)]
    return tt.Problem(each, loss=tt.Logistic(), C=20.0, regularization=1.0, **more)


def method(whiten=MU, noise=None, **more):
    return tt.PenaltyPerturbation(
        tt.Geometric(2.0, 1.05), 2.0, noise or tt.GaussianNoise(0.4), whiten=whiten, **more
    )


def simulated(whiten=MU, noise=None, rounds=T + ROUNDS, **more):
    return tt.simulate(problem(), GRAPH, method(whiten, noise), rounds=rounds, seed=1, **more)


@pytest.mark.parametrize("noise", [tt.GaussianNoise(0.4), tt.NormNoise(4.0)])
def test_the_moments_cost_order_times_half_mu_squared_beside_the_rounds(noise):
    certificate = simulated(noise=noise).certificate(1e-5)
    run, sites = certificate.run, certificate.sites
    raw = simulated(None, noise, rounds=T).certificate(1e-5)
    mu = masked_mu(run, range(1, ROUNDS + 1), 1)
    assert mu == pytest.approx(MU, rel=1e-8) and mu <= MU
    both = renyi_totals(run, Releases.of(run, sites, certificate.releases), bounds.ORDERS)
    rounds = renyi_totals(raw.run, Releases.of(raw.run, raw.sites, raw.releases), bounds.ORDERS)
    np.testing.assert_allclose(both, rounds + bounds.ORDERS * mu**2 / 2, rtol=1e-9)
    assert np.all(both >= rounds + bounds.ORDERS * mu**2 / 2)
    assert certificate.epsilon > raw.epsilon
    assert np.isinf(certificate.pure_epsilon) and np.isinf(certificate.paper_epsilon)


def test_with_gaussian_noise_the_squares_of_mu_add_up():
    certificate = simulated().certificate(1e-5)
    raw = simulated(None, rounds=T).certificate(1e-5)
    squares = [
        float(gaussian_totals(c.run, Releases.of(c.run, c.sites, c.releases)).max()) ** 2
        for c in (certificate, raw)
    ]
    assert squares[0] == pytest.approx(squares[1] + MU**2, rel=1e-7)
    exact = gaussian_epsilon(np.sqrt(squares[0]), 1e-5)
    assert exact <= certificate.epsilon <= exact * (1 + 1e-6) and certificate.accountant == "gaussian"


def test_every_round_is_charged_the_moments_first():
    run = simulated()
    columns = run.ledger.columns(0)
    assert columns.t.tolist() == list(range(1, T + ROUNDS + 1))
    assert columns.scale[:ROUNDS].tolist() == [entry.std for entry in run.ledger.run.sums]
    assert not columns.eta[:ROUNDS].any() and (columns.eta[ROUNDS:] > 0).all()


def driven(rows, seed=3):
    """Nodes of a run, the totals of its moments, and the state after them."""
    network = Network.of(rows, GRAPH)
    prepared = method().prepare(network, ROUNDS + T)
    cuts = [range(i, i + 1) for i in range(SITES)]
    nodes = prepared.nodes([rows.site(i) for i in range(SITES)], cuts, seed=seed, repeats=1)
    states, totals = [node.start(None, None) for node in nodes], []
    for t in range(1, ROUNDS + 1):
        assert prepared.hears(t) == "everybody"
        sent = [node.message(state) for node, state in zip(nodes, states, strict=True)]
        totals.append(np.sum(np.concatenate(sent), axis=0, dtype=np.uint64))
        states = [
            node.after(state, one, totals[-1]) for node, state, one in zip(nodes, states, sent, strict=True)
        ]
    assert prepared.hears(ROUNDS + 1) == "neighbours"
    return prepared, nodes, states, totals


def test_the_coordinates_follow_from_the_released_totals_alone():
    prepared, nodes, states, totals = driven(problem())
    public = prepared.moments.tables.program.start(1)
    for total in totals:
        public = prepared.moments.tables.after(public, total)
    at = public.coordinates[0]
    for i, (node, state) in enumerate(zip(nodes, states, strict=True)):
        np.testing.assert_array_equal(node.coordinates(state)[0], at.W / at.q)
        (seen,) = node.inner[0][0].solvers.objectives
        expected = whitened_objective(problem().site(i), at)
        np.testing.assert_array_equal(seen.parts[0].rows.Z, expected.parts[0].rows.Z)
    _, elsewhere, begun, _ = driven(problem(seed=9))
    for node, state in zip(
        elsewhere, begun, strict=True
    ):  # other rows, the same totals: the same coordinates
        moved = node.start(None, None)
        for total in totals:
            moved = node.after(moved, None, total)
        np.testing.assert_array_equal(node.coordinates(moved)[0], at.W / at.q)
        assert not np.array_equal(node.coordinates(state)[0], at.W / at.q)


def test_a_row_becomes_one_of_norm_1_at_most_from_that_row_alone():
    rows = problem()
    _, nodes, states, _ = driven(rows)
    at = states[0].public.coordinates[0]
    made = whitened_objective(rows.site(0), at).parts[0].rows.Z
    Z = rows.site(0).parts[0].rows.Z
    image = Z @ at.W / at.q
    lengths = np.linalg.norm(image, axis=1)
    assert (lengths > 1).any() and (lengths < 1).any()
    np.testing.assert_allclose(made, image / np.maximum(lengths, 1.0)[:, None], rtol=1e-9, atol=1e-12)
    assert np.linalg.norm(made, axis=1).max() <= 1 + 1e-12
    for node in nodes:
        assert all(one.largest_norm <= 1 + 1e-12 for one in node.inner[0][0].solvers.objectives)
    X, y = table()
    X[4] = -X[8]  # the second row of site 0
    again = whitened_objective(problem(X=X, y=y).site(0), at).parts[0].rows.Z
    assert np.flatnonzero((again != made).any(axis=1)).tolist() == [1]


def test_sparse_rows_become_the_same():
    from scipy import sparse

    X, _ = table()
    dense, thin = problem(), problem(X=sparse.csr_array(X))
    at = driven(dense)[2][0].public.coordinates[0]
    same = [whitened_objective(one.site(0), at).parts[0].rows.Z for one in (dense, thin)]
    np.testing.assert_allclose(*same, rtol=1e-12, atol=1e-15)


def test_a_replaced_record_moves_no_sum_by_more_than_is_charged():
    X, y = table()
    _, _, states, _ = driven(problem())
    tables = moments_of_rows(Network.of(problem(), GRAPH), MU)
    program = tables.program
    before, after = program.start(1), replace(program.start(1), t=1, coordinates=states[0].public.coordinates)
    far = []
    for row in (np.eye(5)[0], -np.eye(5)[4], X[3] / np.linalg.norm(X[3]), np.zeros(5)):
        X2 = X.copy()
        X2[4] = row
        for state, facts in ((before, tables.sums[0]), (after, tables.sums[1])):
            shares = [
                program.private_half(problem(X=one, y=y).site(0), tables.units).integers(
                    program.query(state), facts
                )
                for one in (X, X2)
            ]
            moved = float(np.linalg.norm(shares[0] - shares[1]))
            reach = facts.reach + 2 * facts.stray / facts.grid + np.sqrt(facts.length)
            far.append(moved / reach)
    assert 0.5 < max(far) <= 1.0


def test_all_rows_of_a_person_move_no_sum_by_more_than_is_charged():
    X, y = table()
    ids = np.arange(len(X)) // (2 * SITES) * SITES + np.arange(len(X)) % SITES  # two rows at one site
    persons = [ids[i::SITES] for i in range(SITES)]
    tables = moments_of_rows(Network.of(problem(persons=persons), GRAPH), MU)
    program, facts = tables.program, tables.sums[0]
    X2 = X.copy()
    X2[0], X2[4] = np.eye(5)[0], np.eye(5)[0]
    X[0], X[4] = np.eye(5)[1], np.eye(5)[1]
    shares = [
        program.private_half(problem(X=one, y=y, persons=persons).site(0), tables.units).integers(
            program.query(program.start(1)), facts
        )
        for one in (X, X2)
    ]
    moved = float(np.linalg.norm(shares[0] - shares[1]))
    assert 0.99 < moved / (facts.reach + 2 * facts.stray / facts.grid + np.sqrt(facts.length)) <= 1.0


def test_a_person_with_several_rows_counts_as_one_record():
    X, _ = table()
    ids = np.arange(len(X)) // (2 * SITES) * SITES + np.arange(len(X)) % SITES  # two rows at one site
    persons = [ids[i::SITES] for i in range(SITES)]
    rows = problem(persons=persons)
    run = tt.simulate(rows, GRAPH, method(), rounds=T + ROUNDS, seed=1)
    certificate = run.certificate(1e-5)
    assert certificate.run.unit == "person" and certificate.run.persons == len(X) // 2
    assert certificate.run.sums[0].sensitivity == pytest.approx(np.sqrt(2) / (len(X) // 2))
    certificate.verify()


def forged(change):
    text = json.loads(simulated().certificate(1e-5).to_json())
    change(text)
    text.pop("sha256")
    return tt.Certificate.from_json(json.dumps(text | {"sha256": digest(text)}))


def _drop_sums(text):
    text["run"] |= {"sums": [], "records": None, "largest": None}


def _drop_one(text):
    text["run"]["sums"].pop()


@pytest.mark.parametrize(
    "change",
    [
        _drop_sums,
        _drop_one,
        lambda text: text["run"]["sums"][0].update(std=2 * text["run"]["sums"][0]["std"]),
        lambda text: text["run"]["sums"][0].update(sensitivity=0.5 * text["run"]["sums"][0]["sensitivity"]),
        lambda text: text["run"]["sums"][1].update(stray=0.0),
        lambda text: text["run"]["sums"][1].update(part="clipped gradient", length=5),
        lambda text: text["run"].update(records=10**6),
        lambda text: text["run"].update(outputs=2),
        lambda text: text.update(epsilon=0.5 * text["epsilon"]),
    ],
)
def test_a_forged_certificate_is_refused(change):
    with pytest.raises(CertificateError):
        forged(change).verify()
    simulated().certificate(1e-5).verify()


def test_early_ended_run_is_certified_at_its_planned_cost():
    whole = simulated()
    ledger = whole.ledger
    from taciturn.privacy.certificate.certificate import Certificate
    from taciturn.privacy.ledger.memory import MemoryLedger

    for upto in (1, ROUNDS, ROUNDS + 2):
        short = MemoryLedger(ledger.run, ledger.sites)
        prepared = method().prepare(Network.of(problem(), GRAPH), T + ROUNDS)
        for t in range(1, upto + 1):
            short.charge_round(prepared.charges(t))
        stopped = Certificate.from_ledger(short, 1e-5)
        assert stopped.epsilon == whole.certificate(1e-5).epsilon > stopped.charged_epsilon > 0
        stopped.verify()


def test_site_budget_covers_the_moments():
    prepared = method().prepare(Network.of(problem(), GRAPH), T + ROUNDS)
    from taciturn.privacy.ledger.memory import MemoryLedger

    small = float(gaussian_epsilon(0.5 * MU, 1e-5))
    ledger = MemoryLedger(prepared.run_facts(simulated=True), prepared.site_facts(), SiteBudget(small, 1e-5))
    with pytest.raises(BudgetExceeded):
        for t in range(1, ROUNDS + 1):
            ledger.charge_round(prepared.charges(t))
    wrong = prepared.charges(1)._replace(scale=2 * prepared.charges(1).scale)
    with pytest.raises(ParameterError, match=r"`scale` must be .*, as the run.s facts state"):
        MemoryLedger(prepared.run_facts(simulated=True), prepared.site_facts()).charge_round(wrong)


def test_a_real_run_is_charged_to_a_budget(tmp_path):
    with tt.Budget(tmp_path / "budget.sqlite", epsilon=10.0, delta=1e-5) as budget:
        run = tt.train(problem(), GRAPH, method(), rounds=T + ROUNDS)
        spent = budget.spent
    certificate = run.certificate(1e-5)
    assert not certificate.run.simulated and certificate.run.integers
    certificate.verify()
    assert spent == pytest.approx(certificate.epsilon, rel=1e-3)
    assert "second moments" in certificate.statement()


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"whiten": 0.0}, "`whiten`"),
        ({"whiten": -1.0}, "`whiten`"),
    ],
)
def test_wrong_values_are_refused(change, match):
    with pytest.raises(ParameterError, match=match):
        method(**change)


def test_too_few_rounds_and_checkpoints_are_refused(tmp_path):
    with pytest.raises(ParameterError, match="`rounds` must be at least 3"):
        simulated(rounds=ROUNDS)
    with pytest.raises(ParameterError, match="`checkpoint`"):
        simulated(checkpoint=tmp_path / "c")


def test_shards_have_the_bits_of_one_process():
    whole = tt.simulate(problem(), GRAPH, method(), rounds=T + ROUNDS, seed=5, repeats=2)
    setup = setup_of(problem(), GRAPH, method(), rounds=T + ROUNDS, seed=5, repeats=2)
    shards = make_shards(setup, 2)
    run_shards(shards, T + ROUNDS)
    models = np.concatenate([shard.models for shard in shards])
    np.testing.assert_array_equal(models.transpose(1, 0, 2), whole.coef)
    np.testing.assert_array_equal(shards[1].coordinates, whole.coordinates)


def test_decisions_of_a_run_shorten_raw_rows_as_the_run_did():
    """The mean loss of the run is that of `decide` on the rows of its sites; f.x alone gives another one."""
    X, y = table()
    run = simulated()
    assert run.coordinates is not None
    for k, at in enumerate(run.coordinates):
        moved = X @ at
        factors = 1.0 / np.maximum(np.linalg.norm(moved, axis=1), 1.0)
        assert (factors < 0.9).any()
        plain = X @ run.coef[k].mean(axis=0)
        np.testing.assert_allclose(run.decide(X)[k], plain * factors, rtol=1e-9, atol=1e-12)
    each = [run.decide(X[i::SITES], np.eye(SITES)[i])[0] * y[i::SITES] for i in range(SITES)]
    losses = [np.logaddexp(0.0, -z).mean() for z in each]
    assert np.mean(losses) == pytest.approx(run.loss[0, -1], rel=1e-9)


def test_a_whitened_run_has_no_average_for_raw_rows():
    with pytest.raises(ParameterError, match=r"Use `run\.decide\(X\)`"):
        simulated().average()
    raw = simulated(None, rounds=T)
    X, _ = table()
    np.testing.assert_allclose(raw.decide(X), raw.average() @ X.T, rtol=1e-12)
    with pytest.raises(DataError, match="5 columns"):
        raw.decide(X[:, :3])

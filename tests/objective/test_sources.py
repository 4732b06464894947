"""SourcedProblem: rows loaded where they are used, the same rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import taciturn as tt
from support.problems import make_sites
from taciturn.core.errors import DataError
from taciturn.objective import SourcedProblem, save_site
from taciturn.objective.sources import survey


def sourced(sources, C=20.0, **settings):
    return SourcedProblem(sources, C=C, regularization=0.5, **settings)


def test_files_and_functions_hold_the_same_rows_as_arrays(tmp_path, problem):
    sites = make_sites()
    sources = [lambda: sites[0]]
    for i, (X, y) in enumerate(sites[1:], start=1):
        save_site(tmp_path / f"{i}.npz", X, y)
        sources.append(tmp_path / f"{i}.npz" if i % 2 else str(tmp_path / f"{i}.npz"))
    found = sourced(sources)
    for i in range(5):
        assert np.array_equal(found.site(i).parts[0].rows.Z, problem.site(i).parts[0].rows.Z)
        assert found.site(i).rho == problem.site(i).rho, "rho / N needs the whole number of sites"
    assert np.array_equal(found.load().samples, problem.samples)


def test_sparse_rows_stay_sparse(tmp_path):
    X, y = make_sites(n=1)[0]
    X[X < 0.2] = 0
    save_site(tmp_path / "site.npz", sparse.csr_array(X), y)
    Z = sourced([tmp_path / "site.npz"]).site(0).parts[0].rows.Z
    assert sparse.issparse(Z) and np.array_equal(Z.toarray(), X * y[:, None])


def test_a_survey_gives_sizes_and_detects_changed_rows():
    (first, second), other = make_sites(n=2), make_sites(n=1, seed=1)[0]
    problem = sourced([lambda: first, lambda: second, lambda: other])
    sizes = survey([problem.site(i) for i in range(3)], digest=True)
    found = problem.with_sizes(sizes)
    assert found.samples.tolist() == [40, 40, 40] and found.dimension == 6
    assert len({size.digest for size in sizes}) == 3
    assert sizes == survey([problem.site(i) for i in range(3)], digest=True)
    assert survey([problem.site(0)])[0].digest == ""


@pytest.mark.parametrize("loss", [tt.LogCosh(), tt.Logistic()])
def test_a_digest_sees_labels_and_sparse_entries(loss):
    X, y = make_sites(n=1)[0]
    swapped = y.copy()
    swapped[3] *= -1
    moved = np.roll(X, 1, axis=1)
    hands = [(X, y), (X, swapped), (sparse.csr_array(X), y), (sparse.csr_array(moved), y)]
    problem = sourced([lambda hand=hand: hand for hand in hands], loss=loss)
    assert len({size.digest for size in survey([problem.site(i) for i in range(4)], digest=True)}) == 4


def test_sites_of_different_width_are_refused():
    sites = [*make_sites(n=1), *make_sites(n=1, d=7)]
    problem = sourced([lambda: sites[0], lambda: sites[1]])
    with pytest.raises(DataError, match="site 0 has 6, site 1 has 7"):
        problem.with_sizes(survey([problem.site(0), problem.site(1)]))


def test_problem_has_no_sizes_before_its_sources_are_read():
    problem = sourced([lambda: make_sites(n=1)[0]])
    with pytest.raises(DataError, match="not been read"):
        _ = problem.dimension
    with pytest.raises(DataError, match="not been read"):
        problem.require_unit_rows()
    assert "1 sites" in repr(problem)


def test_a_bad_source_is_named(tmp_path):
    bad = [
        tmp_path / name for name in ("empty.npz", "nothing", "text", "array.npy", "objects.npz", "missing")
    ]
    np.savez(tmp_path / "empty", y=np.ones(2))
    bad[1].touch()
    bad[2].write_text("PK\x03\x04 not an archive")
    np.save(tmp_path / "array", np.ones(3))
    np.savez(tmp_path / "objects", X=np.array([{}], dtype=object), y=np.ones(1))
    for k, source in enumerate(bad):
        with pytest.raises(DataError, match=rf"`sources\[{k}\]` must be an .npz file.*{source.name}"):
            sourced(bad).site(k)
    with pytest.raises(DataError, match=r"`sources\[0\]` must return a pair"):
        sourced([lambda: 3]).site(0)
    with pytest.raises(DataError, match="got none"):
        sourced([])


@pytest.mark.parametrize(("name", "value"), [("C", 0.0), ("regularization", -1.0)])
def test_settings_are_checked_before_anything_is_read(name, value):
    with pytest.raises(ValueError, match=f"`{name}`"):
        SourcedProblem([lambda: 1 / 0], **{"C": 1.0, "regularization": 1.0, name: value})


def test_the_local_engine_loads_the_sources(problem, ring):
    sites = make_sites()
    method = tt.ADMM(0.5)
    here = tt.simulate(problem, ring, method, rounds=3)
    there = tt.simulate(sourced([lambda s=s: s for s in sites]), ring, method, rounds=3)
    assert np.array_equal(here.coef, there.coef) and np.array_equal(here.loss, there.loss)


def test_long_rows_are_refused_wherever_they_come_from(ring):
    sites = [(2 * X, y) for X, y in make_sites()]
    method = tt.PenaltyPerturbation(0.5, 0.5, tt.NormNoise(3.0))
    with pytest.raises(DataError, match="norm at most 1"):
        tt.simulate(sourced([lambda s=s: s for s in sites]), ring, method, rounds=1)

"""A few seeded runs of every kind, each as the SHA-256 of all the numbers that it left behind."""

from __future__ import annotations

import hashlib
import json

import numpy as np

import taciturn as tt


def rows(seed: int, B: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """B made-up rows of norm at most 1, and their labels."""
    made = np.random.default_rng(seed)
    X = made.normal(size=(B, d))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    return X, np.where(X @ made.normal(size=d) + 0.1 * made.normal(size=B) > 0, 1.0, -1.0)


def digest(*arrays: np.ndarray) -> str:
    """SHA-256 over the bytes of some arrays."""
    whole = hashlib.sha256()
    for array in arrays:
        whole.update(np.ascontiguousarray(array, dtype=np.float64).tobytes())
    return whole.hexdigest()


def results() -> dict[str, str]:
    """The name of each run -> what it left behind, as one hash."""
    sites = [rows(site, 40 + 7 * site, 6) for site in range(5)]
    gaussian = tt.GaussianNoise(std=tt.Geometric(0.4, 0.98))
    norm = tt.NormNoise(rate=tt.Geometric(3.0, 1.03))
    cases = {
        "admm": (tt.ADMM(penalty=0.5), tt.Logistic(), tt.Graph.ring(5)),
        "modified": (tt.MADMM(tt.Geometric(0.5, 1.05), 0.5), tt.SmoothHinge(0.5), tt.Graph.star(5)),
        "penalty norm": (
            tt.PenaltyPerturbation(tt.Geometric(0.5, 1.04), 0.5, norm),
            tt.Logistic(),
            tt.Graph.ring(5),
        ),
        "penalty gaussian": (
            tt.PenaltyPerturbation(
                tt.Geometric(0.5, 1.04),
                0.5,
                gaussian,
                output_noise=tt.GaussianNoise(1e-4),
                grid=2.0**-20,
                clip=64.0,
            ),
            tt.Logistic(),
            tt.Graph.complete(5),
        ),
        "dual": (tt.DualPerturbation(0.5, norm), tt.Logistic(), tt.Graph.path(5)),
        "primal": (tt.PrimalPerturbation(0.5, gaussian), tt.SmoothHinge(0.5), tt.Graph.ring(5)),
    }
    found = {}
    for name, (method, loss, graph) in cases.items():
        problem = tt.Problem(sites, loss=loss, C=40.0, regularization=0.1)
        run = tt.simulate(problem, graph, method, rounds=12, repeats=2, seed=7)
        found[name] = digest(run.loss, run.accuracy, run.consensus_gap, run.coef)
        if name.startswith(("penalty", "dual", "primal")):
            certificate = run.certificate(delta=1e-5)
            found[name + ", certified"] = repr(certificate.epsilon)
    X, y = rows(99, 300, 6)
    fitted = tt.PrivateLogisticRegression(epsilon=1.0, sites=4, graph="ring", random_state=3).fit(X, y)
    found["logistic regression"] = digest(fitted.coef_, fitted.intercept_, fitted.site_coef_)
    return found


if __name__ == "__main__":
    print(json.dumps(results(), indent=1))

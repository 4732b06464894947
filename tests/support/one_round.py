"""One site, one round: its noise map, its density, and the exact Renyi divergence of a neighbouring pair."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

import taciturn as tt
from taciturn.privacy.accounting import bounds


@dataclass(frozen=True)
class OneRound:
    """e = centre - k sum_n L'(z_n) dz_n/df - a f: what noise led to f, for a site with rows X, y."""

    loss: object
    k: float
    a: float
    X: np.ndarray
    y: np.ndarray
    centre: np.ndarray | float = 0.0

    @property
    def _signed(self):
        """dz/df of every row: z = y f.x, or z = y - f.x for regression."""
        return self.y[:, None] * self.X if self.loss.kind == "classification" else -self.X

    def margins(self, f):
        z = f @ self._signed.T
        return z if self.loss.kind == "classification" else z + self.y

    def noise(self, f):
        """phi(f), for f of shape (..., d)."""
        return self.centre - self.k * self.loss.slope(self.margins(f)) @ self._signed - self.a * f

    def hessian(self, f):
        """H = -dphi/df, (..., d, d)."""
        curvature = self.loss.curvature(self.margins(f))
        bent = np.einsum("...n,ni,nj->...ij", self.k * curvature, self.X, self.X)
        return bent + self.a * np.eye(self.X.shape[1])

    def solve(self, e):
        """The f with phi(f) = e, by Newton with halving, for many e at once."""
        f = np.zeros_like(e)
        gap = self.noise(f) - e
        for _ in range(60):
            step = np.linalg.solve(self.hessian(f), gap[..., None])[..., 0]
            size, pace = np.linalg.norm(gap, axis=-1), np.ones(e.shape[:-1])
            for _ in range(20):
                new = self.noise(f + pace[..., None] * step) - e
                worse = np.linalg.norm(new, axis=-1) > size * (1 - 1e-4 * pace) + 1e-13 * (1 + size)
                if not worse.any():
                    break
                pace = np.where(worse, pace / 2, pace)
            f, gap = f + pace[..., None] * step, new
            if np.abs(gap).max() < 1e-11 * (1 + np.abs(e).max()):
                return f
        raise RuntimeError("the noise map was not inverted")

    def log_density(self, f, noise, scale):
        """ln p(f) = ln noise(phi(f)) + ln det H(f)"""
        return noise.log_density(self.noise(f), scale) + np.linalg.slogdet(self.hessian(f))[1]

    def with_sample(self, x, y):
        """The neighbour: the first row replaced."""
        X, labels = self.X.copy(), self.y.copy()
        X[0], labels[0] = x, y
        return replace(self, X=X, y=labels)

    @property
    def D(self):  # noqa: N802 - the paper's letter
        return float(bounds.displacement(self.k, self.loss.slope_bound))

    @property
    def x(self):
        return float(bounds.bend(self.k, self.a, self.loss.curvature_bound))

    def pure(self, alpha):
        """The tight pure bound for this loss."""
        if self.loss.name == "logistic":
            return float(bounds.pure_logistic(self.k, self.a, alpha))
        if self.loss.name == "log-cosh":
            return float(bounds.pure_log_cosh(self.k, self.a, alpha, self.loss.curvature_bound))
        return float(bounds.pure_norm(self.k, self.a, alpha, 1.0, self.loss.curvature_bound))


def log_ratio(old, new, f, noise, scale):
    """ln w = ln p_old(f) - ln p_new(f)"""
    return old.log_density(f, noise, scale) - new.log_density(f, noise, scale)


def divergence(log_w, weights, q):
    """Renyi divergence of order q, weights being p_new: E[w^q - q w + q - 1] loses no digits."""
    seen = weights > 1e-200
    w, weights = np.exp(log_w[seen]), weights[seen]
    return np.log1p(weights @ (w**q - q * w + q - 1)) / (q - 1)


def gaussian_grid(sigma, reach, step):
    """Trapezoid nodes and weights of N(0, sigma^2 I) on R^2, out to `reach`; spectral where smooth."""
    n = int(np.ceil(reach / step))
    line = step * np.arange(-n, n + 1)
    e = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)
    return e, np.exp(tt.GaussianNoise(std=1.0).log_density(e, sigma)) * step**2


def norm_grid(alpha, radii=96, angles=96):
    """Polar nodes and weights of exp(-alpha ||e||) on R^2: panels in R, trapezoid in the angle."""
    edges = np.concatenate([[0.0], np.geomspace(0.02, 60.0, radii // 6)]) / alpha
    x, w = np.polynomial.legendre.leggauss(6)
    half = np.diff(edges)[:, None] / 2
    R = (edges[:-1, None] + half * (1 + x)).ravel()
    weight = (half * w).ravel() * alpha**2 * R * np.exp(-alpha * R) / angles
    turn = 2 * np.pi * (np.arange(angles) + 0.5) / angles
    e = R[:, None, None] * np.stack([np.cos(turn), np.sin(turn)], axis=-1)
    return e.reshape(-1, 2), np.repeat(weight, angles)


def random_pair(rng):
    """A random neighbouring pair in two dimensions, often near the worst: unit, opposite, steep, alone."""
    loss = tt.Logistic() if rng.random() < 0.6 else tt.LogCosh(scale=rng.uniform(0.7, 3.0))
    a = 1.0 if rng.random() < 0.5 else rng.uniform(1.0, 3.0)
    k = a * np.exp(rng.uniform(np.log(0.02), np.log(1.5 / loss.curvature_bound)))
    rows = rng.integers(1, 4)
    turn = rng.uniform(0, 2 * np.pi, rows)
    X = np.stack([np.cos(turn), np.sin(turn)], axis=1) / np.where(rng.random(rows) < 0.7, 1.0, 1.5)[:, None]
    y = rng.choice([-1.0, 1.0], rows) if loss.kind == "classification" else rng.normal(0, 2, rows)
    old = OneRound(loss, k, a, X, y, centre=rng.normal(0, 2.0, 2))
    kind = rng.integers(5)
    if kind == 0:
        new = old.with_sample(-X[0], y[0])
    elif kind == 1:
        new = old.with_sample(np.array([-X[0, 1], X[0, 0]]), y[0])
    elif kind == 2:
        new = old.with_sample(np.zeros(2), y[0])
    elif kind == 3:
        new = old.with_sample(X[-1] * rng.uniform(0.5, 1.0), rng.choice(y))
    else:
        lean = np.array([np.cos(0.15), np.sin(0.15)])
        old = replace(old, centre=np.array([0.0, -40.0 * a])).with_sample(lean, 1.0)
        new = old.with_sample(lean * [-1, 1], 1.0)
    return (old, new) if rng.random() < 0.5 else (new, old)


def smooth_width(loss):
    """How far L is analytic into the complex plane: what a trapezoid step must be small against."""
    return np.pi if loss.name == "logistic" else loss.scale * np.pi / 2

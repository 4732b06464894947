"""Compiled functions that compute a record's vector, of bounded norm, in a noisy sum of a regression.

    z           the record's row, including the constant, ||z|| <= 1
    x           W'z, the row in the coordinates of the public matrix W, and r = ||x||
    omega       min(1, b^2 / r^2), the weight of a row, so that omega r is at most the public bound b. It
                depends on x alone, so that weighting does not change the root of the score (the model at
                which the mean score is 0)

There are four kinds of sums. A record adds one of these vectors, depending on the kind:

    moments     omega x x' / b^2
    score       omega psi x / b, and SIDE times three numbers: w / w_max, psi^2, and 1 if no value is missing
    hessian     omega w x x' / (w_max b^2), the negative derivative of the score
    meat        omega^2 v x x' / (v_max b^2), the variance of the score

The family of the regression determines psi (the residual divided by its clipping bound), w (the negative
derivative of psi in the linear predictor) and v (the variance of psi). w_max and v_max are upper bounds on w
and v. The residual of a Poisson count is clipped at CUT standard deviations; x is multiplied by this clipping
bound. The mean of the clipped residual under the model is subtracted, so that clipping does not change the
root of the score. The subtraction may make |psi| slightly larger than 1, so own_program.py also clips the
vector. In the other families |psi| <= 1. A hazard regression has one row x for each period in which a person
was at risk; the weight of the row does not depend on what happened in its period.

If the privacy guarantee is for persons, all rows of a person have the same weight, min(1, b / sum r,
b^2 / sum r^2). So the rows of a person together add no more than one record does. The residuals of a person
may depend on each other, so the meat of a person with score s is s s' / b^2.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..core.types import Array
from .arithmetic import compiled, dot, exp, log

BINOMIAL, GAUSSIAN, POISSON, HAZARD = 0, 1, 2, 3
MOMENTS, SCORE, HESSIAN, MEAT = 0, 1, 2, 3
SIDE = 0.2  # the weight of the three side numbers that are released with a score
SIDES = 3
CUT = 2.5  # Poisson residuals are clipped at about this many standard deviations
POISSON_W = 1.0 / (CUT * CUT)
_LIMIT = 30.0


@compiled
def poisson_reach(eta: float) -> float:
    """The clipping bound for the residual of a count with log mean eta."""
    return 0.5 + CUT * math.sqrt(exp(min(max(eta, -_LIMIT), _LIMIT)) + 0.25)


@compiled
def poisson_moments(mean: float, low: float, high: float) -> tuple[float, float, float]:
    """E c, E c (Y - mean) and Var c for Y ~ Poisson(mean), where c is Y - mean clipped to [low, high]."""
    spread = 8.0 * math.sqrt(mean) + 20.0
    start = max(0.0, math.floor(mean - spread))
    end = math.ceil(mean + spread)
    chance = exp(max(start * log(max(mean, 1e-300)) - mean - math.lgamma(start + 1.0), -700.0))
    whole, first, slope, square = 0.0, 0.0, 0.0, 0.0
    y = start
    while y <= end:
        off = y - mean
        cut = min(max(off, low), high)
        whole += chance
        first += chance * cut
        slope += chance * cut * off
        square += chance * cut * cut
        y += 1.0
        chance *= mean / y
    first, slope, square = first / whole, slope / whole, square / whole
    return first, slope, square - first * first


@compiled
def link_terms(family: int, y: float, eta: float, reach: float, top: float) -> tuple[float, float, float]:
    """(psi, w, v) of one row, where `reach` is the clipping bound of the residual.

    In the families Gaussian and Poisson, w is already scaled for the sum `hessian`: multiplied by `reach`
    (Gaussian) or divided by `reach` (Poisson).
    """
    eta = min(max(eta, -_LIMIT), _LIMIT) if family != GAUSSIAN else eta
    if family == GAUSSIAN:
        e = (y - eta) / reach
        cut = min(max(e, -1.0), 1.0)
        return cut, 1.0 if abs(e) < 1.0 else 0.0, cut * cut
    if family == POISSON:
        mean = exp(eta)
        low, high = -reach, min(reach, max(top - mean, 0.0))
        first, slope, variance = poisson_moments(mean, low, high)
        cut = min(max(y - mean, low), high)
        square = reach * reach
        return (cut - first) / reach, slope / square, variance / square
    p = 1.0 / (1.0 + exp(-eta))
    return y - p, p * (1.0 - p), p * (1.0 - p)


@compiled
def cloglog_terms(eta: float) -> tuple[float, float, float]:
    """(event, none, w) for a hazard of 1 - exp(-exp(eta)). The residual is `event` if the event happened,
    else -`none`; w is the variance of the residual."""
    t = exp(min(max(eta, -_LIMIT), 4.0))
    event = 1.0 - t / 2.0 + t * t / 12.0 if t < 1e-4 else t / (exp(t) - 1.0)
    return event, t, t * event


@compiled
def _place(out: Array, x: Array, weight: float) -> None:
    """Add the upper triangle of weight x x' to `out`; off-diagonal entries are multiplied by sqrt 2."""
    place, root = 0, math.sqrt(2.0)
    for j in range(len(x)):
        out[place] += weight * x[j] * x[j]
        place += 1
        for k in range(j + 1, len(x)):
            out[place] += weight * x[j] * x[k] * root
            place += 1


@compiled
def _turn(W: Array, z: Array, x: Array) -> float:
    """Set x = W'z and return ||x||^2."""
    x[:] = 0.0
    for i in range(len(z)):
        if z[i] != 0.0:
            for j in range(len(x)):
                x[j] += z[i] * W[i, j]
    return dot(x, x)


@compiled
def _readable(row: Array) -> bool:
    """Whether all numbers of a row are finite."""
    for value in row:
        if not abs(value) < math.inf:
            return False
    return True


@compiled
def _weight(Z: Array, W: Array, anchor: Array, square: float, family: int, x: Array) -> float:
    """omega, the weight of every row of a record or person. It depends only on the norms of these rows."""
    d, count, whole, squares = len(anchor), 0, 0.0, 0.0
    for i in range(Z.shape[0]):
        if _readable(Z[i]):
            size = _turn(W, Z[i, :d], x)
            if family == POISSON:
                size *= poisson_reach(dot(Z[i, :d], anchor)) ** 2
            count, whole, squares = count + 1, whole + math.sqrt(size), squares + size
    omega = 1.0 if squares <= square else square / squares
    return omega if count == 1 else min(omega, math.sqrt(square) / max(whole, 1e-300))


@compiled
def regression_rows(
    Z: Array,
    starts: NDArray[np.int64],
    W: Array,
    f: Array,
    anchor: Array,
    numbers: Array,
    family: int,
    kind: int,
) -> Array:
    """The vectors that units (records or persons) add to the sum `kind`, (units, width).

    A row with a missing value adds nothing.

    Z : the n rows; the last column is the outcome.
    starts : the index of the first row of every unit, followed by n.
    W, f : the matrix of x = W'z, and the model at which residuals are computed.
    anchor : the model that determines the clipping bounds of Poisson residuals.
    numbers : five numbers: b^2, the clipping bound of a Gaussian residual, the largest outcome, w_max
        (= v_max), and 1 if units are persons, else 0.
    """
    d, units = len(f), len(starts) - 1
    width = d + SIDES if kind == SCORE else d * (d + 1) // 2
    out = np.zeros((units, width))
    square, reach, top, most, persons = numbers[0], numbers[1], numbers[2], numbers[3], numbers[4] > 0.0
    b, x, score = math.sqrt(square), np.zeros(d), np.zeros(d)
    for u in range(units):
        omega = _weight(Z[starts[u] : starts[u + 1]], W, anchor, square, family, x)
        complete, slopes, squares = 0, 0.0, 0.0
        score[:] = 0.0
        for i in range(starts[u], starts[u + 1]):
            if not _readable(Z[i]):
                continue
            complete += 1
            z = Z[i, :d]
            _turn(W, z, x)
            eta = dot(z, f)
            if family == POISSON:
                reach = poisson_reach(dot(z, anchor))
                for j in range(d):
                    x[j] *= reach
            if kind == MOMENTS:
                _place(out[u], x, omega / square)
                continue
            psi, w, v = link_terms(family, Z[i, d], eta, reach, top)
            if family == GAUSSIAN:
                v = 1.0  # all rows have the same variance, which is released with the scores
            if kind == HESSIAN:
                _place(out[u], x, omega * min(w / most, 1.0) / square)
            elif kind == MEAT and not persons:
                _place(out[u], x, omega * omega * min(v / most, 1.0) / square)
            else:
                for j in range(d):
                    score[j] += omega * psi * x[j]
                slopes, squares = slopes + min(w / most, 1.0), squares + min(psi * psi, 1.0)
        if complete and kind == SCORE:
            for j in range(d):
                out[u, j] = score[j] / b
            out[u, d], out[u, d + 1] = SIDE * slopes / complete, SIDE * squares / complete
            out[u, d + 2] = SIDE
        elif complete and kind == MEAT and persons:
            _place(out[u], score, 1.0 / square)
    return out


@compiled
def hazard_rows(Z: Array, W: Array, f: Array, numbers: Array, kind: int) -> Array:
    """The vectors that persons add to the sum `kind` of a hazard regression, (n, width).

    Z (n, covariates + 2) has one row per person. Its last two columns are the last period at risk, and 1 if
    the event happened in that period, else 0. f has the coefficients of the covariates, then one for each
    period. Each period at risk adds one term to a person's score; moments are means over these periods. The
    weight of a term does not depend on its outcome, so the score is a martingale. The weights keep the norm
    of a person's score within b in any case, and the sum of the person's weighted w within 1.
    numbers : the first is b^2; the last is 1 for the complementary log-log link, and 0 for the logit.
    """
    d, covariates = len(f), Z.shape[1] - 2
    periods, one = d - covariates, 1.0 / math.sqrt(covariates + 1.0)
    out = np.zeros((Z.shape[0], d + SIDES if kind == SCORE else d * (d + 1) // 2))
    square = numbers[0]
    b, x, z, score = math.sqrt(square), np.zeros(d), np.zeros(d), np.zeros(d)
    for i in range(Z.shape[0]):
        if not 1.0 <= Z[i, covariates] <= periods:
            continue
        last = int(Z[i, covariates])
        for j in range(covariates):
            z[j] = Z[i, j]
        score[:] = 0.0
        length, spent, residual = 0.0, 0.0, 0.0
        for t in range(last):
            for j in range(periods):
                z[covariates + j] = one if j == t else 0.0
            size = _turn(W, z, x)
            eta = dot(z, f)
            omega = 1.0 if size <= square else square / size
            if kind == MOMENTS:
                _place(out[i], x, omega / (square * last))
                continue
            y = Z[i, covariates + 1] if t == last - 1 else 0.0
            if numbers[-1] > 0.0:
                event, none, w = cloglog_terms(eta)
                psi = y * event - (1.0 - y) * none
                worst = max(event, none) * math.sqrt(size)
            else:
                psi, w, _ = link_terms(BINOMIAL, y, eta, 1.0, 1.0)
                worst = max(abs(psi), 1.0 - abs(psi)) * math.sqrt(size)
            omega = min(omega, max(b - length, 0.0) / max(worst, 1e-300))
            omega *= min(1.0, max(1.0 - spent, 0.0) / max(w, 1e-300))
            spent += w
            for j in range(d):
                score[j] += omega * psi * x[j]
            length = math.sqrt(dot(score, score))
            residual += psi
            if kind == HESSIAN:
                _place(out[i], x, omega * w / square)
            elif kind == MEAT:
                _place(out[i], x, omega * omega * w / square)
        if kind == SCORE:
            for j in range(d):
                out[i, j] = score[j] / b
            out[i, d], out[i, d + 1] = SIDE * min(spent, 1.0), SIDE * min(residual * residual, 1.0)
            out[i, d + 2] = SIDE
    return out

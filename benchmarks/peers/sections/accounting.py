"""Compute the epsilon of a record over a whole run from the peers' noise, and the noise from epsilon."""

from __future__ import annotations

import math

from taciturn.privacy.accounting import gaussian


def gaussian_epsilon(shift: float, releases: int, delta: float) -> float:
    """The epsilon of Gaussian releases if a record moves each by at most `shift` standard deviations."""
    return float(gaussian.gaussian_epsilon(shift * math.sqrt(releases), delta))


def gaussian_noise(epsilon: float, releases: int, delta: float) -> float:
    """The smallest standard deviation for a budget, in units of the largest move by a record."""
    return math.sqrt(releases) / float(gaussian.gaussian_mu(epsilon, delta))

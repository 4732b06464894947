"""What the peers' noise costs a record over a whole run, by our accountant; the least noise for a budget."""

from __future__ import annotations

import math

from taciturn.privacy.accounting import gaussian


def gaussian_epsilon(shift: float, releases: int, delta: float) -> float:
    """Epsilon of so many Gaussian releases that a record moves by at most `shift` standard deviations."""
    return float(gaussian.gaussian_epsilon(shift * math.sqrt(releases), delta))


def gaussian_noise(epsilon: float, releases: int, delta: float) -> float:
    """The least standard deviation for a budget, in units of what a record can move."""
    return math.sqrt(releases) / float(gaussian.gaussian_mu(epsilon, delta))

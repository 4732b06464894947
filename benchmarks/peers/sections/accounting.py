"""What the peers' noise costs a record over a whole run, by our accountant; the least noise for a budget."""

from __future__ import annotations

import math

from taciturn.privacy.accounting import bounds


def gaussian_epsilon(shift: float, releases: int, delta: float) -> float:
    """Epsilon of so many Gaussian releases that a record moves by at most `shift` standard deviations."""
    q = bounds.ORDERS
    return float(bounds.to_epsilon(q, q * releases * shift**2 / 2, delta)[0])


def gaussian_noise(epsilon: float, releases: int, delta: float) -> float:
    """The least standard deviation for a budget, in units of what a record can move."""
    low, high = 1e-6, 1e9
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (
            (low, middle) if gaussian_epsilon(1 / middle, releases, delta) <= epsilon else (middle, high)
        )
    return high

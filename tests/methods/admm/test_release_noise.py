"""The integer noise of a real run has the standard deviation that is charged for."""

from types import SimpleNamespace

import numpy as np
import pytest

from taciturn.methods.admm.release_noise import RoundNoise
from taciturn.privacy.noise import GaussianNoise, NormNoise
from taciturn.rng import SecureStreams

DRAWS = 4000


@pytest.mark.parametrize("method", ["penalty", "primal"])
@pytest.mark.parametrize(("noise", "scale"), [(GaussianNoise(0.5), 0.5), (NormNoise(40.0), 40.0)])
def test_whole_numbers_have_the_noise_that_is_charged_for(method, noise, scale):
    """A spread estimated from so many draws strays by a part in 90; 1 in 10^8 estimates by six of them.

    Norm noise of a rate is discrete Laplace noise of sqrt(d) / rate in every coordinate: a spread of
    sqrt(2 d) / rate, whose estimate strays by sqrt(5/2) times as much as that of a Gaussian one.
    """
    inner, outer = (noise, None) if method == "primal" else (None, noise)
    tables = SimpleNamespace(
        method=method, covered=True, grid=2.0**-30, clip=2.0**10, noise=inner, output_noise=outer
    )
    scales = np.array([scale, scale])
    drawn = RoundNoise(
        tables, SecureStreams(), 1, np.array([0, 1]), scales, scales, shape=(1, DRAWS)
    ).release(np.zeros((2, 1, DRAWS)))
    laplace = isinstance(noise, NormNoise)
    stated = np.sqrt(2 * DRAWS) / scale if laplace else scale
    strays = 6 * (np.sqrt(2.5) if laplace else 1) / np.sqrt(2 * DRAWS)
    for site in drawn[:, 0]:
        assert np.sqrt(np.mean(site**2)) == pytest.approx(stated, rel=strays)
    assert not np.array_equal(drawn[0], drawn[1])

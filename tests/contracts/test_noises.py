"""Every noise keeps what `Noise` promises: sizes, samples and densities that belong together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import taciturn as tt
from support.example_run import run_facts, site_facts
from taciturn.core.errors import ParameterError
from taciturn.methods.admm.real_runs import check_samplers
from taciturn.privacy.certificate.certificate import Certificate
from taciturn.privacy.facts import Charge
from taciturn.privacy.ledger.memory import MemoryLedger
from taciturn.privacy.noise import NOISES, draw
from taciturn.rng import SecureStreams, SeededStreams

every_noise = pytest.mark.parametrize("kind", NOISES)


def of(kind: str, size: Any = 1.0) -> Any:
    """The noise of this kind and size."""
    return NOISES[kind](NOISES[kind].scale_of(size))


@every_noise
def test_it_names_itself_and_its_parameter(kind: str) -> None:
    noise = of(kind, 0.5)
    assert noise.kind == kind and getattr(noise, noise.parameter) == noise.scale_of(0.5)
    assert type(noise)(**{noise.parameter: noise.scale_of(0.5)}) == noise and hash(noise) == hash(
        of(kind, 0.5)
    )
    with pytest.raises(AttributeError):
        setattr(noise, noise.parameter, 2.0)


@every_noise
@pytest.mark.parametrize("bad", [0.0, -1.0, np.inf, np.nan, "3", None, True])
def test_a_bad_scale_is_refused_by_name(kind: str, bad: Any) -> None:
    name = NOISES[kind].parameter
    with pytest.raises(ParameterError, match=rf"`{name}` must be"):
        NOISES[kind](bad)
    with pytest.raises(ParameterError, match=rf"`{name}\[1\]` must be"):
        NOISES[kind]([1.0, bad])


@every_noise
def test_sizes_and_deviations_go_both_ways_and_grow_together(kind: str) -> None:
    sizes = np.geomspace(1e-3, 1e3, 13)
    scales = NOISES[kind].scale_of(sizes)
    np.testing.assert_allclose(NOISES[kind].size(scales), sizes, rtol=1e-12)
    for d in (1, 2, 105):
        std = NOISES[kind].coordinate_std(scales, d)
        assert (np.diff(std) > 0).all()
        np.testing.assert_allclose(NOISES[kind].scale_for(std, d), scales, rtol=1e-12)
        np.testing.assert_allclose(std / std[0], sizes / sizes[0], rtol=1e-12)


@every_noise
@pytest.mark.parametrize("d", [1, 3, 40])
def test_samples_are_as_large_as_it_says(kind: str, d: int) -> None:
    """The mean square of 4000 seeded samples, within six of its standard errors; half the noise is seen."""
    noise, std, generator = of(kind), 2.5, np.random.default_rng(d)
    scale = noise.scale_for(std, d)
    squares = np.array([np.mean(noise.sample(generator, scale, d) ** 2) for _ in range(4000)])
    error = 6 * squares.std() / np.sqrt(len(squares))
    assert abs(squares.mean() - std**2) < error < std**2 / 2


@every_noise
def test_twice_the_size_is_twice_the_vector(kind: str) -> None:
    noise = of(kind)
    one, two = (noise.sample(np.random.default_rng(3), noise.scale_of(size), 5) for size in (1.0, 2.0))
    assert one.shape == (5,) and one.dtype == np.float64
    np.testing.assert_allclose(two, 2 * one, rtol=1e-12)


@every_noise
def test_the_density_is_normalised_and_the_samples_follow_it(kind: str) -> None:
    noise, line = of(kind), np.linspace(-40, 40, 80_001)
    weights = np.exp(noise.log_density(line[:, None], noise.scale_of(1.3))) * (line[1] - line[0])
    assert weights.sum() == pytest.approx(1, abs=1e-5)
    std = noise.coordinate_std(noise.scale_of(1.3), 1)
    assert np.sqrt(np.sum(weights * line**2)) == pytest.approx(std, rel=1e-4)
    generator = np.random.default_rng(0)
    drawn = np.array([noise.sample(generator, noise.scale_of(1.3), 1)[0] for _ in range(4000)])
    inside = weights[np.abs(line) <= std].sum()
    assert abs(np.mean(np.abs(drawn) <= std) - inside) < 6 * np.sqrt(inside * (1 - inside) / 4000)


@every_noise
def test_density_depends_on_the_norm_only(kind: str) -> None:
    noise, rng = of(kind), np.random.default_rng(0)
    e, turn = rng.standard_normal((4, 1, 6)), np.linalg.qr(rng.standard_normal((6, 6)))[0]
    values = noise.log_density(e, np.array([0.5, 1.0, 2.0]))
    assert values.shape == (4, 3)
    np.testing.assert_allclose(noise.log_density(e @ turn, np.array([0.5, 1.0, 2.0])), values, rtol=1e-12)


@every_noise
def test_a_vector_drawn_with_others_is_the_one_that_is_drawn_alone(kind: str) -> None:
    noise, scales = of(kind), NOISES[kind].scale_of(np.array([1.0, 2.0, 3.0]))
    together = draw(noise, SeededStreams(7), "noise", 2, np.array([4, 0, 9]), scales, (2, 5))
    for row, site in enumerate((4, 0, 9)):
        alone = draw(noise, SeededStreams(7), "noise", 2, np.array([site]), scales[row : row + 1], (2, 5))
        assert np.array_equal(together[row], alone[0])
    secret = [draw(noise, SecureStreams(), "noise", 2, np.array([0]), scales[:1], (1, 5)) for _ in range(2)]
    assert not np.array_equal(*secret)


@every_noise
def test_more_noise_costs_less_privacy(kind: str) -> None:
    costs = []
    for size in (0.5, 1.0, 2.0):
        ledger = MemoryLedger(run_facts(3, 1, noise=kind), site_facts(3))
        ledger.charge(Charge(0, 1, 0.5, NOISES[kind].scale_for(3.0 * size, 105)))
        costs.append(Certificate.from_ledger(ledger, 1e-5).epsilon)
    assert np.inf > costs[0] > costs[1] > costs[2] > 0


@every_noise
def test_real_run_refuses_a_subclass_of_a_shipped_noise(kind: str) -> None:
    class Quiet(NOISES[kind]):  # type: ignore[misc]
        def sample(self, generator: Any, scale: float, d: int) -> Any:
            return np.zeros(d)

    check_samplers(tt.PenaltyPerturbation(0.5, 0.5, of(kind), output_noise=of(kind)).tables(2, 1))
    for wrong in ({"noise": Quiet(1.0)}, {"noise": of(kind), "output_noise": Quiet(1.0)}):
        with pytest.raises(ParameterError, match="and not a subclass, in a real run; got Quiet"):
            check_samplers(tt.PenaltyPerturbation(0.5, 0.5, **wrong).tables(2, 1))

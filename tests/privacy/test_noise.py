"""NormNoise and GaussianNoise: facts, scales, densities that integrate to 1."""

from __future__ import annotations

import numpy as np
import pytest

import taciturn as tt
from taciturn.core.errors import ParameterError

NOISES = [tt.NormNoise(rate=2.0), tt.GaussianNoise(std=0.7)]
IDS = ["norm", "gaussian"]


def test_frozen_facts_compare_and_hash():
    assert tt.NormNoise(rate=2) == tt.NormNoise(rate=2.0)
    assert tt.NormNoise([1.0, 2.0]) == tt.NormNoise((1.0, 2.0))
    assert hash(tt.GaussianNoise([1.0, 2.0])) == hash(tt.GaussianNoise((1.0, 2.0)))
    assert tt.NormNoise(1.0).kind == "norm" and tt.GaussianNoise(1.0).kind == "gaussian"
    with pytest.raises(AttributeError):
        tt.NormNoise(1.0).rate = 2.0


@pytest.mark.parametrize(("cls", "name"), [(tt.NormNoise, "rate"), (tt.GaussianNoise, "std")])
@pytest.mark.parametrize("bad", [0.0, -1.0, np.inf, np.nan, "3", None, True])
def test_bad_scales_are_refused_by_name(cls, name, bad):
    with pytest.raises(ParameterError, match=rf"`{name}` must be"):
        cls(bad)
    with pytest.raises(ParameterError, match=rf"`{name}\[1\]` must be"):
        cls([1.0, bad])


@pytest.mark.parametrize("cls", [tt.NormNoise, tt.GaussianNoise])
def test_scales_for_every_site_and_round(cls):
    assert cls(2.0).scales(3, 2).tolist() == [[2.0, 2.0]] * 3
    assert cls(np.array([1.0, 2.0])).scales(2, 2).tolist() == [[1.0, 1.0], [2.0, 2.0]]
    mixed = cls([tt.Geometric(1.0, 2.0), 5.0, tt.Table([1.0, 3.0])])
    assert mixed.scales(3, 3).tolist() == [[1.0, 2.0, 4.0], [5.0, 5.0, 5.0], [1.0, 3.0, 3.0]]
    with pytest.raises(ParameterError, match="one entry for each of the 2 sites; got 3"):
        mixed.scales(2, 3)
    with pytest.raises(ParameterError, match="must stay finite and above 0; got inf"):
        cls(tt.Geometric(1.0, 10.0)).scales(1, 400)


@pytest.mark.parametrize("noise", NOISES, ids=IDS)
@pytest.mark.parametrize("scale", [0.3, 2.5])
def test_log_density_integrates_to_one(noise, scale):
    width = 12 / scale if noise.kind == "norm" else 12 * scale
    line = np.linspace(-3 * width, 3 * width, 60_001)
    area = np.exp(noise.log_density(line[:, None], scale)).sum() * (line[1] - line[0])
    assert area == pytest.approx(1, abs=1e-5)
    radius = np.linspace(0, 4 * width, 40_001)[1:]
    for d, sphere in ((2, 2 * np.pi), (3, 4 * np.pi), (5, 8 * np.pi**2 / 3)):
        e = np.zeros((len(radius), d))
        e[:, 0] = radius
        shells = sphere * radius ** (d - 1) * np.exp(noise.log_density(e, scale))
        assert shells.sum() * (radius[1] - radius[0]) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("noise", NOISES, ids=IDS)
def test_log_density_broadcasts_and_depends_on_the_norm_only(noise):
    rng = np.random.default_rng(0)
    e = rng.standard_normal((4, 1, 6))
    scales = np.array([0.5, 1.0, 2.0])
    values = noise.log_density(e, scales)
    assert values.shape == (4, 3)
    assert values[2, 1] == pytest.approx(float(noise.log_density(e[2, 0], 1.0)))
    turn, _ = np.linalg.qr(rng.standard_normal((6, 6)))
    assert noise.log_density(e @ turn, scales) == pytest.approx(values)


@pytest.mark.parametrize("noise", NOISES, ids=IDS)
def test_samples_follow_the_generator_and_the_scale(noise):
    first = noise.sample(np.random.default_rng(1), 2.0, 5)
    assert first.shape == (5,) and first.dtype == np.float64
    assert first.tolist() == noise.sample(np.random.default_rng(1), 2.0, 5).tolist()
    half = noise.sample(np.random.default_rng(1), 4.0, 5)
    assert half == pytest.approx(first / 2 if noise.kind == "norm" else 2 * first)


def test_a_zero_direction_is_drawn_again():
    class Stubborn:
        calls = 0

        def standard_normal(self, d):
            self.calls += 1
            return np.zeros(d) if self.calls == 1 else np.ones(d)

        def gamma(self, shape, scale):
            return 3.0

    assert np.linalg.norm(tt.NormNoise(1.0).sample(Stubborn(), 1.0, 4)) == pytest.approx(3.0)


@pytest.mark.parametrize("noise", NOISES, ids=IDS)
@pytest.mark.parametrize("d", [1, 2, 30])
def test_noise_reports_its_standard_deviation(noise, d):
    draws = np.random.default_rng(d)
    std = np.sqrt(np.mean([noise.sample(draws, 1.5, d) ** 2 for _ in range(60_000 // d)]))
    assert noise.coordinate_std(1.5, d) == pytest.approx(std, rel=0.03)
    assert noise.scale_for(noise.coordinate_std(1.5, d), d) == pytest.approx(1.5)
    assert noise.scale_of(noise.size(1.5)) == pytest.approx(1.5)
    assert noise.size(1.5) * noise.coordinate_std(3.0, d) == pytest.approx(
        noise.size(3.0) * noise.coordinate_std(1.5, d)
    ), "the two sizes differ by a factor that depends on d alone"

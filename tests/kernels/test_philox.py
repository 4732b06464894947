"""Vectors from a counter: each depends on its own name alone, whatever is drawn beside it."""

from __future__ import annotations

import numpy as np
import pytest
from randomgen import Philox

import taciturn as tt
from taciturn.core.types import Array
from taciturn.kernels.philox import block
from taciturn.privacy.noise import draw
from taciturn.rng import Purpose, SecureStreams, SeededStreams

NOISES = [tt.NormNoise(rate=1.0), tt.GaussianNoise(std=1.0)]


def vectors(
    noise: tt.NormNoise | tt.GaussianNoise,
    *,
    seed: int = 5,
    purpose: Purpose = "noise",
    t: int = 1,
    sites: tuple[int, ...] = (4,),
    repeats: int = 1,
    d: int = 7,
) -> Array:
    scales = 1.0 + np.array(sites, dtype=np.float64)
    return draw(noise, SeededStreams(seed), purpose, t, np.array(sites), scales, (repeats, d))


def test_a_block_is_philox_with_four_words_of_32_bits() -> None:
    for seed in range(20):
        words = np.random.default_rng(seed).integers(0, 2**32, 6, dtype=np.uint64)
        out = np.empty(4, dtype=np.uint64)
        block(words[:2], words[2:], out)
        key, counter = (sum(int(w) << 32 * k for k, w in enumerate(part)) for part in (words[:2], words[2:]))
        before = Philox(key=key, counter=(counter - 1) % 2**128, number=4, width=32)  # it counts, then draws
        assert out.tolist() == before.random_raw(4).tolist()


@pytest.mark.parametrize("noise", NOISES, ids=["norm", "gaussian"])
@pytest.mark.parametrize("d", [1, 2, 7, 33])
def test_one_of_many_is_the_one_drawn_alone(noise: tt.NormNoise, d: int) -> None:
    sites = (0, 3, 4, 99_999)
    many = vectors(noise, sites=sites, repeats=3, d=d)
    for i, site in enumerate(sites):
        assert np.array_equal(vectors(noise, sites=(site,), repeats=3, d=d)[0], many[i])
        assert np.array_equal(vectors(noise, sites=(site,), repeats=1, d=d)[0, 0], many[i, 0])
    assert len(np.unique(many)) == many.size


@pytest.mark.parametrize("noise", NOISES, ids=["norm", "gaussian"])
def test_stream_depends_on_every_part_of_its_name(noise: tt.NormNoise) -> None:
    base = vectors(noise)
    assert np.array_equal(base, vectors(noise))
    changes = [{"seed": 6}, {"purpose": "output"}, {"t": 2}, {"purpose": "start"}, {"seed": 5 + 2**64}]
    for change in changes:
        assert not np.any(base == vectors(noise, **change)), change
    two = vectors(noise, repeats=2)
    assert not np.any(two[0, 0] == two[0, 1])


def test_a_longer_vector_of_normal_numbers_goes_on_where_the_shorter_ends() -> None:
    gaussian = NOISES[1]
    assert np.array_equal(vectors(gaussian, d=9)[..., :6], vectors(gaussian, d=6))


class Halved(tt.GaussianNoise):
    """One's own sampler."""

    def sample(self, generator: np.random.Generator, scale: float, d: int) -> Array:
        return np.full(d, scale / 2)


def test_user_sampler_is_called() -> None:
    assert vectors(Halved(1.0), sites=(3, 7))[:, 0, 0].tolist() == [2.0, 4.0]


def test_real_runs_use_a_fresh_key_for_every_vector(monkeypatch: pytest.MonkeyPatch) -> None:
    """ChaCha20 under fresh 256 bits for every site and repeat; nothing of the seeded streams is touched."""
    keys = []
    derive = tt.rng._PROCESS_KEY.derive
    monkeypatch.setattr(tt.rng._PROCESS_KEY, "derive", lambda: keys.append(derive()) or keys[-1])
    monkeypatch.setattr(SeededStreams, "vectors", None)
    for noise in NOISES:
        drawn = draw(noise, SecureStreams(), "noise", 1, np.arange(6), np.ones(6), (3, 4))
        again = draw(noise, SecureStreams(), "noise", 1, np.arange(6), np.ones(6), (3, 4))
        assert len(np.unique([drawn, again])) == 2 * drawn.size
    assert len(set(keys)) == len(keys) == 4 * 18
    assert max(key.bit_length() for key in keys) > 240

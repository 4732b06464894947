"""Masks: they cancel, look uniform, are bound to their label, are used once, and are forgotten."""

import hmac

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from support.masking import RUN, all_keys
from taciturn.errors import ParameterError
from taciturn.masked.masks import PairKeys, expand, pair_key


@settings(max_examples=30, deadline=None)
@given(sites=st.integers(2, 9), length=st.integers(1, 40), rounds=st.integers(1, 3), data=st.data())
def test_masks_cancel_to_the_last_bit(sites, length, rounds, data):
    keys = all_keys(sites, data.draw(st.integers(1, sites - 1)))
    for t in range(1, rounds + 1):
        masks = [site.mask(t, "gradient", (2, length)) for site in keys]
        assert all(mask.any() for mask in masks)
        assert not np.add.reduce(np.stack(masks)).any()
        for site in keys:
            site.advance()


def test_a_sum_without_one_site_is_uniform():
    keys = all_keys(4)
    partial = np.add.reduce([site.mask(1, "a", (4000,)) for site in keys[:3]])
    bits = np.unpackbits(partial.view(np.uint8))
    assert stats.binomtest(int(bits.sum()), bits.size).pvalue > 1e-6
    assert stats.kstest(partial / 2.0**64, "uniform").pvalue > 1e-6


@pytest.mark.parametrize("change", ["run", "t", "part", "key"])
def test_a_mask_belongs_to_run_round_part_and_pair(change):
    key = bytes(range(32))
    labels = {"run": RUN, "t": 1}
    base = PairKeys(0, {1: key}, **labels).mask(1, "a", (64,))
    other = {"run": b"run 2", "t": 2}
    if change in labels:
        labels[change] = other[change]
    keys = PairKeys(0, {1: bytes(32) if change == "key" else key}, **labels)
    mask = keys.mask(labels["t"], "b" if change == "part" else "a", (64,))
    assert not np.any(mask == base)


def test_labels_do_not_run_into_each_other():
    key = bytes(32)
    labels = [("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), (b"ab", b"c", 0), ("ab", "c", 0, 0)]
    assert len({expand(key, *label) for label in labels}) == len(labels)


def test_a_mask_is_given_out_once():
    keys = all_keys(3)[0]
    keys.mask(1, "a", (5,))
    keys.mask(1, "b", (5,))
    with pytest.raises(ParameterError, match="used once"):
        keys.mask(1, "a", (5,))
    keys.advance()
    keys.mask(2, "a", (5,))
    for t in (1, 3):
        with pytest.raises(ParameterError, match="the round of these keys"):
            keys.mask(t, "c", (5,))


def test_old_keys_are_gone_and_new_ones_do_not_lead_back():
    keys = all_keys(3)[0]
    first = keys.keys
    keys.mask(1, "a", (5,))
    keys.advance()
    assert set(keys.keys) == set(first) and not set(first.values()) & set(keys.keys.values())
    held = repr(vars(keys))
    assert not any(repr(key)[2:-1] in held for key in first.values())


def test_the_keystream_is_chacha20():
    algorithms = pytest.importorskip("cryptography.hazmat.primitives.ciphers.algorithms")
    ciphers = pytest.importorskip("cryptography.hazmat.primitives.ciphers")
    key = bytes(range(32))
    label = expand(key, "mask", RUN, 1, "a")
    for size in (1, 7, 8, 105, 1000):
        mask = PairKeys(0, {1: key}, run=RUN).mask(1, "a", (size,))
        encryptor = ciphers.Cipher(algorithms.ChaCha20(label, bytes(16)), None).encryptor()
        expected = np.frombuffer(encryptor.update(bytes(8 * size)), "<u8")
        np.testing.assert_array_equal(mask, expected)
        np.testing.assert_array_equal(PairKeys(1, {0: key}, run=RUN).mask(1, "a", (size,)), -expected)


def test_pair_key_is_hkdf_and_both_sites_find_it():
    key = pair_key(b"secret", RUN, "Basel", "Aarau")
    assert key == pair_key(b"secret", RUN, "Aarau", "Basel")
    assert key != pair_key(b"secret", b"run 2", "Aarau", "Basel")
    info = b"taciturn" + b"".join(len(p).to_bytes(4, "big") + p for p in (b"pair", b"Aarau", b"Basel"))
    extracted = hmac.digest(RUN, b"secret", "sha256")
    assert key == hmac.digest(extracted, info + b"\x01", "sha256")
    hkdf = pytest.importorskip("cryptography.hazmat.primitives.kdf.hkdf")
    hashes = pytest.importorskip("cryptography.hazmat.primitives.hashes")
    assert key == hkdf.HKDF(hashes.SHA256(), 32, RUN, info).derive(b"secret")


@pytest.mark.parametrize("keys", [{}, {0: bytes(32)}, {1: bytes(31)}])
def test_keys_are_checked(keys):
    with pytest.raises(ParameterError, match="`keys` must hold 32 bytes"):
        PairKeys(0, keys, run=RUN)

"""Masks cancel, look uniform, depend on their label, are used once, and are deleted."""

import hmac

import numpy as np
import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from support.masking import RUN, all_keys
from taciturn.core.errors import ParameterError
from taciturn.methods.sums.masks import PairKeys, expand, expand_keystream, pair_key


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


def test_mask_labels_are_unambiguous():
    key = bytes(32)
    labels = [("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), (b"ab", b"c", 0), ("ab", "c", 0, 0)]
    assert len({expand(key, *label) for label in labels}) == len(labels)


def test_mask_is_issued_once():
    keys = all_keys(3)[0]
    keys.mask(1, "a", (5,))
    keys.mask(1, "b", (5,))
    with pytest.raises(ParameterError, match="used only once"):
        keys.mask(1, "a", (5,))
    keys.advance()
    keys.mask(2, "a", (5,))
    for t in (1, 3):
        with pytest.raises(ParameterError, match="the round of these keys"):
            keys.mask(t, "c", (5,))


def test_old_keys_are_deleted_and_cannot_be_derived_from_new_ones():
    keys = all_keys(3)[0]
    first = keys.keys
    keys.mask(1, "a", (5,))
    keys.advance()
    assert set(keys.keys) == set(first) and not set(first.values()) & set(keys.keys.values())
    held = repr(vars(keys))
    assert not any(repr(key)[2:-1] in held for key in first.values())


def test_the_keystream_is_chacha20():
    """The first two blocks under key 0 and nonce 0 [RFC 8439, A.1, vectors 1 and 2]."""
    expected = bytes.fromhex(
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
        "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
        "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f"
    )
    for size in (1, 7, 8, 16):
        assert expand_keystream(bytes(32), size).tobytes() == expected[: 8 * size]


def test_a_mask_is_the_keystream_under_the_expanded_key():
    key = bytes(range(32))
    stream = expand_keystream(expand(key, "mask", RUN, 1, "a"), 105)
    np.testing.assert_array_equal(PairKeys(0, {1: key}, run=RUN).mask(1, "a", (105,)), stream)
    np.testing.assert_array_equal(PairKeys(1, {0: key}, run=RUN).mask(1, "a", (105,)), -stream)


def test_pair_key_is_hkdf_and_both_sites_find_it():
    key = pair_key(b"secret", RUN, "Basel", "Aarau")
    assert key == pair_key(b"secret", RUN, "Aarau", "Basel")
    assert key != pair_key(b"secret", b"run 2", "Aarau", "Basel")
    info = b"taciturn" + b"".join(len(p).to_bytes(4, "big") + p for p in (b"pair", b"Aarau", b"Basel"))
    extracted = hmac.digest(RUN, b"secret", "sha256")
    assert key == hmac.digest(extracted, info + b"\x01", "sha256")
    assert key == HKDF(SHA256(), 32, RUN, info).derive(b"secret")


@pytest.mark.parametrize("keys", [{}, {0: bytes(32)}, {1: bytes(31)}])
def test_keys_are_checked(keys):
    with pytest.raises(ParameterError, match="it must contain 32 bytes"):
        PairKeys(0, keys, run=RUN)

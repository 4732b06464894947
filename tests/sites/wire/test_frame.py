"""Only job, round, sender, vector and the proof of the sender leave a site, in one fixed form."""

import os
import random
import struct
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.sitework import frame, sites
from taciturn.sites.wire.frame import (
    HEADER,
    MAGIC,
    Frame,
    FrameRefused,
    check_values,
    decode,
    encode,
    size_cap,
    to_message,
    to_vector,
)

BYTES = 32


def made(**changes):
    entries = {
        "job": bytes(range(32)),
        "attempt": 3,
        "t": 7,
        "sender": 2,
        "before": b"b" * 32,
        "common": b"a" * 32,
        "message": to_message(np.arange(4.0)),
    }
    return encode(**(entries | changes)) + b"c" * 40 + b"s" * 64


def test_what_goes_in_comes_out():
    taken = decode(made(), largest=BYTES)
    assert (taken.job, taken.attempt, taken.t, taken.sender) == (bytes(range(32)), 3, 7, 2)
    assert (taken.before, taken.common) == (b"b" * 32, b"a" * 32)
    assert to_vector(taken.message).tolist() == [0.0, 1.0, 2.0, 3.0]
    assert taken.certificate == b"c" * 40 and taken.signature == b"s" * 64
    assert taken.signed + taken.signature == made()


def test_the_schema_has_no_room_for_anything_else():
    """Every byte of a frame belongs to job, round, sender, past, message, certificate or signature."""
    assert {field.name for field in fields(Frame)} == {
        "job",
        "attempt",
        "t",
        "sender",
        "before",
        "common",
        "message",
        "certificate",
        "signature",
    }
    data = made()
    layout = struct.unpack("<12s32sIiHI32s32s32s40s64s", data)
    assert layout[0] == MAGIC
    assert layout[1:8] == (bytes(range(32)), 3, 7, 2, 32, b"b" * 32, b"a" * 32)
    assert layout[8] == np.arange(4.0).tobytes()
    assert len(data) == HEADER.size + 8 * 4 + 40 + 64


def test_the_digest_is_about_the_content_alone():
    """A renewed certificate changes nothing; a changed byte of anything else does."""
    same = decode(made()[:-104] + b"d" * 50 + b"t" * 64, largest=BYTES)
    assert same.digest == decode(made(), largest=BYTES).digest
    for change in ({"t": 8}, {"attempt": 0}, {"sender": 1}, {"before": bytes(32)}, {"message": bytes(32)}):
        assert decode(made(**change), largest=BYTES).digest != same.digest


def test_another_release_is_told_from_garbage():
    for said, word in (("1", "older"), ("3", "newer")):
        for data in (made(), made()[:60]):
            with pytest.raises(FrameRefused, match=f"speaks version {said} .*{word}") as refused:
                decode(f"taciturn/{said}".encode() + data[10:], largest=BYTES)
            assert refused.value.kind == "version"


def test_the_frame_of_a_site_holds_only_what_is_public(tmp_path):
    site = sites(tmp_path)[0]
    taken = decode(frame(site, 3, [0.5, -0.25, 0.0, 1.0]), largest=BYTES)
    assert (taken.job, taken.t, taken.sender) == (site.job.hash, 3, 0)
    assert len(frame(site, 3)) == HEADER.size + BYTES + len(taken.certificate) + 64


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", "garbage"),
        (b"x" * 115, "garbage"),
        (b"x" * 300, "garbage"),
        (made()[: HEADER.size + 90], "garbage"),
        (made(message=b"") + b"x" * 2040, "garbage"),
        (b"\0" * (size_cap(BYTES) + 1), "size"),
    ],
)
def test_a_wrong_form_is_refused(data, kind):
    with pytest.raises(FrameRefused) as refused:
        decode(data, largest=BYTES)
    assert refused.value.kind == kind


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e308, -1e308, 64.000001])
def test_values_outside_the_range_are_refused_and_not_quoted(bad):
    with pytest.raises(FrameRefused) as refused:
        check_values(np.array([0.0, bad]), clip=64.0)
    assert refused.value.kind == "values" and "308" not in str(refused.value)


def test_values_at_the_edge_of_the_range_pass():
    check_values(np.array([64.0, -64.0]), clip=64.0)
    check_values(np.empty(0), clip=64.0)


def test_a_hundred_thousand_frames_of_garbage():
    """Random bytes, and frames cut, stretched and flipped: refused, or taken apart to the right form."""
    rng = random.Random(os.urandom(16))
    honest = made()
    for _ in range(100_000):
        way = rng.randrange(4)
        data = bytearray(honest) if way else bytearray(rng.randbytes(rng.randrange(400)))
        if way == 1:
            del data[rng.randrange(len(data)) :]
        elif way == 2:
            data += rng.randbytes(rng.randrange(200))
        for _ in range(rng.randrange(4)):
            if data:
                data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            taken = decode(bytes(data), largest=BYTES)
        except FrameRefused:
            continue
        assert len(taken.message) <= len(data) and taken.signed + taken.signature == bytes(data)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=600))
def test_any_bytes_are_refused_in_one_way(data):
    try:
        decode(data, largest=BYTES)
    except FrameRefused as refused:
        assert "\n" not in str(refused)

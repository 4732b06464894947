"""Only job, kind, attempt, round, sender, payload and signature leave a site, in one format."""

import os
import random
import struct
from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.sitework import frame, sites
from taciturn.sites.protocol.frames import (
    HEADER,
    MAGIC,
    MOST_WANTED,
    FrameRefused,
    Kind,
    SignedFrame,
    Slot,
    contradict,
    decode,
    encode,
    pack_plain,
    pack_question,
    read_plain,
    read_question,
    size_cap,
)

BYTES = 32


SEVENTH = Slot(Kind.MESSAGE, 3, 7, 2)


def made(*, job=bytes(range(32)), slot=SEVENTH, scope=b"a" * 32, payload=bytes(32)):
    return encode(job, slot, scope, payload) + b"c" * 40 + b"s" * 64


def taken(**changes):
    return decode(made(**changes), largest=100)


def test_what_goes_in_comes_out():
    found = taken()
    assert (found.job, found.slot, found.scope) == (bytes(range(32)), (Kind.MESSAGE, 3, 7, 2), b"a" * 32)
    assert found.payload == bytes(32)
    assert found.certificate == b"c" * 40 and found.signature == b"s" * 64
    assert found.signed + found.signature == made()


def test_the_schema_has_no_room_for_anything_else():
    """Every byte of a frame belongs to job, slot, scope, payload, certificate or signature."""
    assert {field.name for field in fields(SignedFrame)} == {
        *("job", "kind", "attempt", "t", "sender", "scope", "payload", "certificate", "signature")
    }
    layout = struct.unpack("<12s32sBIIH32sI32s40s64s", made())
    assert layout[:8] == (MAGIC, bytes(range(32)), Kind.MESSAGE, 3, 7, 2, b"a" * 32, 32)
    assert len(made()) == HEADER.size + 32 + 40 + 64


def test_the_digest_is_about_the_content_alone():
    """A renewed certificate changes nothing; a changed byte of anything else does."""
    same = decode(made()[:-104] + b"d" * 50 + b"t" * 64, largest=BYTES)
    assert same.digest == taken().digest
    changes = ({"slot": Slot(Kind.MESSAGE, 3, 8, 2)}, {"scope": bytes(32)}, {"payload": b"1" * 32})
    assert all(taken(**change).digest != same.digest for change in changes)


def test_frame_of_another_release_is_distinguished_from_garbage():
    for said, word in (("2", "older"), ("4", "newer")):
        for data in (made(), made()[:60]):
            with pytest.raises(FrameRefused, match=f"uses version {said} .*{word}") as refused:
                decode(f"taciturn/{said}".encode() + data[10:], largest=BYTES)
            assert refused.value.kind == "version"


def test_the_frame_of_a_site_holds_only_what_is_public(tmp_path):
    site = sites(tmp_path)[0]
    found = decode(frame(site, Kind.MESSAGE, 3, payload=bytes(32)), largest=BYTES)
    assert (found.job, found.t, found.sender) == (site.job.hash, 3, 0)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", "garbage"),
        (b"x" * 115, "garbage"),
        (b"x" * 300, "garbage"),
        (made()[: HEADER.size + 90], "garbage"),
        (made(payload=b"") + b"x" * 2040, "garbage"),
        (b"\0" * (size_cap(BYTES) + 1), "size"),
    ],
)
def test_a_wrong_form_is_refused(data, kind):
    with pytest.raises(FrameRefused) as refused:
        decode(data, largest=BYTES)
    assert refused.value.kind == kind


def plain(t, before, vector=b"v" * 8, **changes):
    return taken(slot=Slot(Kind.MESSAGE, 3, t, 2), payload=pack_plain(before, vector), **changes)


def test_two_frames_for_one_slot_contradict_each_other():
    assert contradict(taken(), taken(payload=b"1" * 32))
    assert not contradict(taken(), taken())
    assert not contradict(taken(), taken(scope=bytes(32), payload=b"1" * 32))  # another attempt
    assert not contradict(taken(), taken(job=bytes(32), payload=b"1" * 32))
    hellos = [taken(slot=Slot(Kind.HELLO, 3, 0, 2), payload=bytes([k])) for k in range(2)]
    assert not contradict(*hellos)  # a site that lost its state may say hello again


def test_a_message_that_names_another_one_before_it_contradicts_the_one_that_was_sent():
    first = plain(7, bytes(32))
    assert read_plain(first.payload) == (bytes(32), b"v" * 8)
    assert not contradict(first, plain(8, first.digest))
    for liar in (plain(8, b"x" * 32), plain(8, bytes(32))):
        assert contradict(first, liar) and contradict(liar, first)
    assert not contradict(first, plain(9, b"x" * 32))


def test_masked_messages_have_no_chain_of_digests():
    """Their bytes are uniform, so they must not become part of a proof."""
    first, second = (taken(slot=Slot(Kind.MESSAGE, 3, t, 2), payload=os.urandom(64)) for t in (7, 8))
    assert not contradict(first, second) and not contradict(first, plain(8, b"x" * 32))


@pytest.mark.slow
def test_a_hundred_thousand_frames_of_garbage():
    """Random bytes and truncated, extended or bit-flipped frames are refused or parsed correctly."""
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
            found = decode(bytes(data), largest=BYTES)
        except FrameRefused:
            continue
        assert len(found.payload) <= len(data) and found.signed + found.signature == bytes(data)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=600))
def test_any_bytes_are_refused_in_one_way(data):
    try:
        decode(data, largest=BYTES)
    except FrameRefused as refused:
        assert "\n" not in str(refused)


def test_a_question_that_ends_in_the_middle_of_a_slot_or_is_too_long_is_cut():
    """An unauthenticated client may send any bytes; a site answers the slots that are whole."""
    slots = [Slot(Kind.MESSAGE, 1, t, 2) for t in range(3)]
    asked = pack_question(slots)
    for cut in range(1, 11):
        assert read_question(asked[:-cut]) == tuple(slots[:2])
    assert read_question(asked) == tuple(slots)
    assert len(read_question(asked * MOST_WANTED)) == MOST_WANTED

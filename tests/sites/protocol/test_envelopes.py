"""Envelopes: who gets the key of a site, and who can open what it sends."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.sitework import sites
from taciturn.sites.files.difference import difference, show_keys
from taciturn.sites.files.keys import load_certificates
from taciturn.sites.files.site import Site
from taciturn.sites.protocol.envelopes import MAGIC, REQUEST, Content, Envelopes
from taciturn.sites.protocol.frames import NOTHING, FrameRefused, Kind, Slot, encode
from taciturn.sites.wire.trust import Trust, load_identity, load_trust


def make(site: Site, trust: Trust | None = None, job: bytes | None = None) -> Envelopes:
    """The envelopes of a new process of a site."""
    keys = site.file.keys
    own = load_trust(site.path(keys.authority))
    identity = load_identity(site.path(keys.private), site.path(keys.certificate), site.name, own)
    names, accepts = site.job.names, trust or own
    return Envelopes(
        job or site.job.hash,
        site.number,
        identity.seal,
        lambda frame, via: accepts.check(frame, names[via]),
        os.urandom,
        show_keys(site.job),
    )


def exchange(asker: Envelopes, other: Envelopes) -> bytes | None:
    """The asker gets the key of the other."""
    answer = other.answer(other.read(asker.request, asker.own))
    assert answer is not None
    return asker.learn(asker.read(answer, other.own), other.own)


@pytest.fixture
def three(tmp_path: Path) -> list[Site]:
    return sites(tmp_path)


def test_a_neighbour_opens_an_envelope_once_it_has_the_key(three: list[Site]) -> None:
    alpha, beta = make(three[0]), make(three[1])
    closed = alpha.close(Content.FRAME, b"a frame")
    assert closed.startswith(MAGIC) and b"a frame" not in closed
    assert beta.open(closed, 0) is None
    assert exchange(beta, alpha) == b""
    assert beta.open(closed, 0) == (Content.FRAME, b"a frame")
    assert beta.open(closed, 2) is None, "the key of one neighbour opens nothing of another"
    assert alpha.close(Content.FRAME, b"a frame") != closed


def test_a_revoked_certificate_gets_no_key(three: list[Site]) -> None:
    serial = load_certificates(three[1].path(three[1].file.keys.certificate))[0].serial_number
    knows = load_trust(three[0].path(three[0].file.keys.authority), [f"{serial:x}"])
    alpha, thief = make(three[0], knows), make(three[1])
    with pytest.raises(FrameRefused, match="revoked"):
        exchange(thief, alpha)
    assert thief.open(alpha.close(Content.QUESTION, b"?"), 0) is None
    assert exchange(make(three[2]), alpha) == b"", "the others do"


def test_a_request_in_the_name_of_another_site_is_refused(three: list[Site]) -> None:
    alpha, gamma = make(three[0]), make(three[2])
    with pytest.raises(FrameRefused, match="it claims to be site-1, but its certificate is that of 'site-2'"):
        alpha.read(gamma.request, 1)


def test_who_replays_the_request_of_another_cannot_read_the_answer(three: list[Site]) -> None:
    alpha, beta, thief = make(three[0]), make(three[1]), make(three[1])
    answer = alpha.answer(alpha.read(beta.request, 1))
    assert answer is not None
    assert thief.learn(thief.read(answer, 0), 0) is None
    assert thief.open(alpha.close(Content.FRAME, b"a frame"), 0) is None


def test_a_process_that_was_started_again_has_another_key(three: list[Site]) -> None:
    first, again, beta = make(three[0]), make(three[0]), make(three[1])
    exchange(beta, first)
    assert beta.open(again.close(Content.FRAME, b"a frame"), 0) is None
    exchange(beta, again)
    for process in (first, again):
        assert beta.open(process.close(Content.FRAME, b"a frame"), 0) == (Content.FRAME, b"a frame")
    first.renew()
    assert beta.open(first.close(Content.FRAME, b"a frame"), 0) is None


def test_two_jobs_that_differ_are_shown_to_each_other(three: list[Site], tmp_path: Path) -> None:
    other = sites(tmp_path / "other", job={"C": 11.0})
    shown = exchange(make(three[1]), make(three[0], job=other[0].job.hash))
    assert shown == show_keys(three[0].job)
    assert "`C` is" in difference(other[0].job, shown)


@pytest.mark.parametrize(
    "payload", [b"", REQUEST, REQUEST + bytes(32), REQUEST + bytes(31), b"!" + bytes(32)]
)
def test_a_hostile_request_is_refused_or_ignored(three: list[Site], payload: bytes) -> None:
    alpha, beta = make(three[0]), make(three[1])
    data = beta.seal(encode(beta.job, Slot(Kind.KEY, 0, 0, 1), NOTHING, payload))
    try:
        assert alpha.answer(alpha.read(data, 1)) is None
    except FrameRefused as error:
        assert error.kind == "cipher"


def test_a_hostile_envelope_is_refused(three: list[Site]) -> None:
    alpha, beta = make(three[0]), make(three[1])
    exchange(beta, alpha)
    closed = alpha.close(Content.FRAME, b"a frame")
    for hostile in (closed[:-1], closed[:32], closed[:-1] + bytes([closed[-1] ^ 1]), closed[:20]):
        with pytest.raises(FrameRefused, match="cannot be decrypted"):
            beta.open(hostile, 0)
    with pytest.raises(FrameRefused, match="not encrypted"):
        beta.read(alpha.seal(encode(alpha.job, Slot(Kind.MESSAGE, 1, 1, 0), NOTHING, b"")), 0)

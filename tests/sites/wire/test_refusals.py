"""The reason why the frames of a neighbour are refused, and its end."""

from types import SimpleNamespace

from taciturn.sites.transport.zenoh import ZenohLinks
from taciturn.sites.wire.refusals import Refusals

WORDS = "`C` is 11.0 in its job, 10.0 in this site's"


def test_a_corrected_job_is_no_longer_given_as_the_reason_for_silence():
    """beta had a different job and was started again with the right one; later it falls silent."""
    refusals = Refusals()
    refusals.refuse("beta", "job", "it has a different job")
    refusals.explain("beta", "job", WORDS)
    assert refusals.reason("beta") == f"it has a different job: {WORDS}"
    frame = SimpleNamespace(job=b"ours")
    envelopes = SimpleNamespace(read=lambda *_: frame, answer=lambda _: None, learn=lambda *_: b"")
    site = SimpleNamespace(job=SimpleNamespace(hash=b"ours", names=("alpha", "beta")))
    links = SimpleNamespace(
        _envelopes=envelopes, _site=site, met=set(), refusals=refusals, _tell=lambda _: None
    )
    ZenohLinks._exchange(links, b"an answer", 1)
    assert links.met == {1} and refusals.reason("beta") == ""
    assert refusals.counts() == {("beta", "job"): 1}  # the metrics still count it


def test_a_reason_that_returns_is_given_again():
    refusals = Refusals()
    for _ in range(2):
        refusals.refuse("beta", "job", "it has a different job")
        refusals.explain("beta", "job", WORDS)
        assert refusals.reason("beta") == f"it has a different job: {WORDS}"
        refusals.accept("beta")

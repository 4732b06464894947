"""Rejections in Zenoh's log are reported once, with the client and the reason."""

import pytest

from support.sitework import sites
from taciturn.sites.wire.refusals import Refusals
from taciturn.sites.wire.zenoh_log import report_refusals

TLS = "2026-01-01T00:00:00Z  WARN acc-0 ThreadId(05) zenoh_link_tls::unicast: {}. Hint: increase the limit."
ACL = (
    "2026-01-01T00:00:00Z TRACE  rx-0 ThreadId(09) zenoh::net::routing::interceptor::access_control: 6aaf on "
    "Interface(lo)+CertCommonName(site-1)+Transport(Tls)+6aaf is {} to Put (ingress) on {}"
)


@pytest.fixture
def heard(tmp_path):
    refusals = Refusals()
    refusals.connected = lambda: {"site-1"}
    return report_refusals(sites(tmp_path)[0], refusals), refusals


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("peer sent no certificates", "no certificate"),
        ("invalid peer certificate: UnknownIssuer", "authority"),
        ("invalid peer certificate: BadSignature", "authority"),
        ("invalid peer certificate: certificate expired: verification time 1 (UNIX)", "expired"),
        ("received corrupt message of type InvalidContentType", "handshake"),
    ],
)
def test_failed_handshake_is_logged_with_the_missing_sites(heard, caplog, reason, kind):
    tell, refusals = heard
    for _ in range(3):
        tell(TLS.format(reason))
    assert refusals.counts() == {("an unauthenticated client", kind): 3}
    assert len(caplog.records) == 1 and "(not connected: site-2)" in caplog.text


def test_denied_message_is_logged_with_its_sender(heard, caplog):
    tell, refusals = heard
    tell(ACL.format("unauthorized", "taciturn/*/3"))
    assert refusals.counts() == {("site-1", "access"): 1}
    assert "from site-1: its operation is not allowed: put taciturn/*/3" in caplog.text


def test_allowed_messages_and_lookups_are_not_logged_as_refusals(heard):
    tell, refusals = heard
    tell(ACL.format("authorized", "taciturn/site-1/3"))
    tell(ACL.format("unauthorized", "taciturn/site-2"))
    tell(ACL.format("unauthorized", "taciturn/site-2/**"))
    tell("anything else")
    assert refusals.counts() == {}

"""The temporary keys of the comparison, and the probe that tests whether a server authenticates."""

from __future__ import annotations

import socket
import ssl
import threading

import pytest
from benchmarks.peers.running import keys, probe


def test_client_that_trusts_the_test_authority_completes_the_handshake(tmp_path, monkeypatch):
    """The probe finds TLS on a server with these keys; a client that trusts the authority connects."""
    monkeypatch.setattr(probe, "VERDICT", 60.0)
    paths = keys.write_certificates(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(paths["server.pem"], paths["server.key"])
    client = ssl.create_default_context(cafile=str(paths["ca.pem"]))
    for ask in (client, None):
        ours, theirs = socket.socketpair()
        served = threading.Thread(target=lambda end=theirs: _serve(context, end))
        served.start()
        if ask is None:
            assert probe.knock(ours) == "TLS, closes the connection"
        else:
            with ask.wrap_socket(ours, server_hostname="localhost") as secured:
                assert secured.version() is not None
        served.join()
    public = keys.write_key(tmp_path / "one").with_suffix(".pub").read_text()
    assert public.startswith("ecdsa-sha2-nistp384 ")


@pytest.mark.parametrize("trusted", [True, False])
def test_server_refuses_a_certificate_of_another_authority(tmp_path, trusted):
    here, there = (keys.write_certificates(tmp_path / name) for name in ("here", "there"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(here["server.pem"], here["server.key"])
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(here["ca.pem"])
    shown = here if trusted else there
    ours, theirs = socket.socketpair()
    served = threading.Thread(target=lambda: _greet(context, theirs))
    served.start()
    said = probe.knock(ours, [str(shown["server.pem"]), str(shown["server.key"])])
    served.join()
    assert said == ("TLS, lets this certificate in" if trusted else "TLS, refuses this certificate")


def _greet(context: ssl.SSLContext, end: socket.socket) -> None:
    """Say a word to whom the handshake lets in."""
    try:
        with context.wrap_socket(end, server_side=True) as secured:
            secured.sendall(b"hello")
    except ssl.SSLError:
        end.close()


def _serve(context: ssl.SSLContext, end: socket.socket) -> None:
    with context.wrap_socket(end, server_side=True):
        pass

"""The probe finds out who answers at an address and whether it is the expected site."""

import socket
import ssl
import threading
from contextlib import contextmanager

import pytest

from support.sitework import sites
from taciturn.sites.files.keys import DAY, Authority, new_key, pem, signing_request, write_new
from taciturn.sites.wire import probe as module
from taciturn.sites.wire.probe import address, probe

LONG = 60.0  # seconds that no busy machine needs


@pytest.fixture(autouse=True)
def unhurried(monkeypatch):
    monkeypatch.setattr(module, "TIMEOUT", LONG)


@pytest.fixture
def pair(tmp_path):
    return sites(tmp_path / "net", [(0, 1)]), Authority.load(tmp_path / "net")


@contextmanager
def served(folder, authority, name, *, trusts=None, **options):
    """A TLS server with a certificate for `name` from `authority`, which asks callers for theirs."""
    key = new_key(folder / "server.key")
    certificate = authority.sign(signing_request(key, name, ["127.0.0.1"]), **options)
    write_new(folder / "server.pem", pem(certificate))
    write_new(folder / "trusted.pem", pem((trusts or authority).certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem", folder / "server.key")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(folder / "trusted.pem")
    with socket.create_server(("127.0.0.1", 0)) as server:
        done = threading.Event()

        def serve():
            try:
                near, _ = server.accept()
                near.settimeout(LONG)
                with near, context.wrap_socket(near, server_side=True):
                    done.wait(LONG)
            except OSError:
                return

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"tls/127.0.0.1:{server.getsockname()[1]}"
        done.set()
        server.close()
        thread.join()


def test_a_neighbour_that_is_there_and_is_itself(pair, tmp_path):
    made, authority = pair
    with served(tmp_path, authority, "site-0") as endpoint:
        assert probe(made[1], "site-0", endpoint) is None


def test_another_site_at_the_address_of_a_neighbour_is_reported(pair, tmp_path):
    made, authority = pair
    with served(tmp_path, authority, "stranger") as endpoint:
        assert "is that of stranger, not of site-0" in probe(made[1], "site-0", endpoint)


def test_a_certificate_from_another_authority(pair, tmp_path):
    made, authority = pair
    with served(tmp_path, Authority.throw_away("other"), "site-0", trusts=authority) as endpoint:
        assert "is not trusted" in probe(made[1], "site-0", endpoint)


def test_an_expired_certificate(pair, tmp_path):
    made, authority = pair
    with served(tmp_path, authority, "site-0", days=-1, starts=-3 * DAY) as endpoint:
        assert "expired" in probe(made[1], "site-0", endpoint)


def test_a_neighbour_that_does_not_trust_this_site(pair, tmp_path, monkeypatch):
    made, authority = pair
    monkeypatch.setattr(module, "VERDICT", LONG)  # it comes after the handshake, when it comes
    with served(tmp_path, authority, "site-0", trusts=Authority.throw_away("other")) as endpoint:
        assert "refused this site's certificate" in probe(made[1], "site-0", endpoint)


def test_unreachable_neighbour_is_reported(pair):
    made, _ = pair
    assert "cannot be reached" in probe(made[1], "site-0", made[0].listens())
    assert "cannot be reached" in probe(made[1], "site-0", "tls/no-such-host.invalid:7447")


def test_addresses():
    assert address("tls/a.example:7447") == ("a.example", 7447)
    assert address("tls/[::1]:7447") == ("::1", 7447)

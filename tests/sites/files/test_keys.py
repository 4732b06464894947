"""Keys: created once, readable only by their owner, signed by an authority."""

import stat

import pytest
from cryptography import x509

from taciturn.core.errors import SiteError
from taciturn.sites.files.keys import (
    Authority,
    common_name,
    load_certificates,
    load_key,
    new_key,
    signing_request,
)


def test_a_private_key_is_for_its_owner_and_never_overwritten(tmp_path):
    path = tmp_path / "a.key"
    key = new_key(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load_key(path).private_bytes_raw() == key.private_bytes_raw()
    with pytest.raises(SiteError, match="never overwritten"):
        new_key(path)


def test_a_request_becomes_a_certificate_with_its_name_and_hosts(tmp_path):
    key = new_key(tmp_path / "a.key")
    certificate = Authority.throw_away().sign(signing_request(key, "a", ["10.0.0.7", "a.example"]))
    assert common_name(certificate) == "a"
    hosts = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert sorted(str(entry.value) for entry in hosts) == ["10.0.0.7", "a", "a.example"]


def test_an_authority_comes_back_from_its_folder(tmp_path):
    authority = Authority.throw_away()
    authority.save(tmp_path)
    assert Authority.load(tmp_path).certificate == authority.certificate
    assert stat.S_IMODE((tmp_path / "authority.key").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "text", [b"", b"nonsense", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
def test_files_that_hold_something_else_are_named(tmp_path, text):
    path = tmp_path / "x.pem"
    path.write_bytes(text)
    with pytest.raises(SiteError, match=r"x\.pem"):
        load_certificates(path)
    with pytest.raises(SiteError, match=r"x\.pem"):
        load_key(path)
    with pytest.raises(SiteError, match=r"missing\.pem"):
        load_key(tmp_path / "missing.pem")
    with pytest.raises(SiteError, match="signing request"):
        Authority.throw_away().sign(text)

"""Keys: each site has one Ed25519 key, with which it proves its name in TLS and signs its messages (frames).

Each site creates its own key, which never leaves the site. An authority that the sites choose certifies it,
in answer to a signing request; if the job lists the keys, each site signs its certificate itself. To try
things out, there is a throw-away authority.
"""

from __future__ import annotations

import datetime
import hashlib
import ipaddress
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...core.errors import MissingExtra, ParameterError, SiteError
from ...jobfile.toml_fields import NAME
from ...jobfile.toml_files import about_files
from .parties import HOST

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError as error:
    raise MissingExtra("cryptography", "zenoh") from error

PEM = serialization.Encoding.PEM
DAY = datetime.timedelta(days=1)
MOST_HOSTS = 20  # the most hosts in one signing request
LARGEST = 2**20  # bytes of a key, a certificate or a request
_USAGES = (False,) * 5 + (True, True, False, False)  # may sign certificates and revocation lists


def new_key(path: Path) -> Ed25519PrivateKey:
    """Create a key, and write it to a new file that only its owner can read; `path` must not exist yet."""
    key = Ed25519PrivateKey.generate()
    _write_key(path, key)
    return key


def _write_key(path: Path, key: Ed25519PrivateKey) -> None:
    text = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    write_new(path, text, mode=0o600)


def signing_request(key: Ed25519PrivateKey, name: str, hosts: Sequence[str]) -> bytes:
    """A PEM request for a certificate with common name `name`, valid for `hosts` (names or addresses)."""
    builder = x509.CertificateSigningRequestBuilder().subject_name(_subject(name))
    return builder.add_extension(_alternatives(name, hosts), critical=False).sign(key, None).public_bytes(PEM)


@about_files
def load_key(path: Path) -> Ed25519PrivateKey:
    try:
        key = serialization.load_pem_private_key(read_pem(path), password=None)
    except (ValueError, TypeError) as error:
        raise SiteError(f"{path} is not an unencrypted private key in PEM form.") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise SiteError(
            f"{path} must be an Ed25519 key, to sign the messages. Create one with: taciturn site keys"
        )
    return key


@about_files
def load_certificates(path: Path) -> list[x509.Certificate]:
    """All certificates of a PEM file, at least one."""
    try:
        return x509.load_pem_x509_certificates(read_pem(path))
    except ValueError as error:
        raise SiteError(f"{path} contains no certificate in PEM form.") from error


def pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(PEM)


def common_name(certificate: x509.Certificate) -> str | None:
    """The one common name of a certificate's subject; None if it has no common name or several."""
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[0].value) if len(names) == 1 else None


@dataclass(frozen=True)
class Request:
    """A signing request: name, hosts and key."""

    text: bytes
    name: str
    hosts: tuple[str, ...]
    fingerprint: str


@about_files
def read_request(path: Path) -> Request:
    """Read and check a PEM signing request for one site."""
    text = read_pem(path)
    asked, hosts = _parse_request(text, str(path))
    names, key = asked.subject.get_attributes_for_oid(NameOID.COMMON_NAME), asked.public_key()
    if len(names) != 1 or not re.fullmatch(NAME, str(names[0].value)):
        raise SiteError(
            f"{path} must state exactly one name, which is valid as the name of a site; got {names!r}."
        )
    if not isinstance(key, Ed25519PublicKey):
        raise SiteError(f"{path} must contain an Ed25519 key, with which the site signs its messages.")
    if len(list(hosts)) > MOST_HOSTS:
        raise SiteError(
            f"{path}: a signing request may name at most {MOST_HOSTS} hosts; got {len(list(hosts))}."
        )
    return Request(text, str(names[0].value), tuple(str(host.value) for host in hosts), fingerprint(key))


def _parse_request(
    text: bytes, where: str = "the text"
) -> tuple[x509.CertificateSigningRequest, x509.SubjectAlternativeName]:
    """A signing request, and the hosts that it is for."""
    try:
        asked = x509.load_pem_x509_csr(text)
        asked.public_key()
        return asked, asked.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, TypeError, x509.ExtensionNotFound) as error:
        raise SiteError(
            f"{where} is not a signing request in PEM form that names a site and its hosts."
        ) from error


def self_signed(key: Ed25519PrivateKey, name: str, hosts: Sequence[str], days: float = 365) -> bytes:
    """A PEM certificate that a site signs for itself, for a job that lists the keys of its sites."""
    builder = _certificate(_subject(name), _subject(name), key, days, -DAY)
    return pem(_for_site(builder, _alternatives(name, hosts)).sign(key, None))


def short_fingerprint(key: Ed25519PublicKey) -> str:
    """The first 128 bits of a key's fingerprint, as a job lists them: 7c1f-02aa-...-b95a."""
    return "-".join(fingerprint(key).split()[:8])


def fingerprint(key: Ed25519PublicKey) -> str:
    """SHA-256 of a public key in DER form, in groups of four digits, to be read out on the telephone."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    digest = hashlib.sha256(key.public_bytes(serialization.Encoding.DER, form)).hexdigest()
    return " ".join(digest[k : k + 4] for k in range(0, len(digest), 4))


@dataclass(frozen=True)
class Authority:
    """A certificate authority for trials. Anyone who has its key can pretend to be any site."""

    key: Ed25519PrivateKey
    certificate: x509.Certificate

    @classmethod
    def throw_away(cls, name: str = "taciturn throw-away authority", *, days: float = 30) -> Authority:
        """A new authority, valid for `days` days."""
        key = Ed25519PrivateKey.generate()
        usage = x509.KeyUsage(*_USAGES)
        builder = _certificate(_subject(name), _subject(name), key, days, -DAY)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(usage, critical=True)
        identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        return cls(key, builder.add_extension(identifier, critical=False).sign(key, None))

    @classmethod
    def load(cls, folder: Path) -> Authority:
        """The authority that `save` wrote."""
        return cls(load_key(folder / "authority.key"), load_certificates(folder / "authority.pem")[0])

    def save(self, folder: Path) -> None:
        """Write `authority.pem`, which is public, and `authority.key`, which is secret."""
        check_new(folder / "authority.key", folder / "authority.pem")
        _write_key(folder / "authority.key", self.key)
        write_new(folder / "authority.pem", pem(self.certificate))

    def sign(
        self, request: bytes, *, days: float = 30, starts: datetime.timedelta = -DAY
    ) -> x509.Certificate:
        """A certificate with the name and hosts that a PEM signing request asks for."""
        asked, alternatives = _parse_request(request)
        if not asked.is_signature_valid:
            raise SiteError("the signing request is not signed by its own key.")
        builder = _certificate(asked.subject, self.certificate.subject, asked, days, starts)
        builder = _for_site(builder, alternatives)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        return builder.add_extension(issuer, critical=False).sign(self.key, None)


def _for_site(
    builder: x509.CertificateBuilder, hosts: x509.SubjectAlternativeName
) -> x509.CertificateBuilder:
    """Let a certificate serve as client and server at these hosts, but not sign other certificates."""
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(hosts, critical=False)
    both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    return builder.add_extension(x509.ExtendedKeyUsage(both), critical=False)


def check_new(*paths: Path) -> None:
    """Check that none of the files that a command will write exists already."""
    for path in paths:
        if path.exists():
            raise SiteError(f"{path} exists already, and is never overwritten. Move it away first.")


def write_new(path: Path, text: bytes, *, mode: int = 0o644) -> None:
    """Write a file that must not exist yet."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError as error:
        raise SiteError(f"{path} exists already, and is never overwritten. Move it away first.") from error
    except OSError as error:
        raise SiteError(f"{path} cannot be written ({error.strerror}).") from error
    with os.fdopen(descriptor, "wb") as file:
        file.write(text)


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def check_hosts(hosts: Sequence[str]) -> None:
    """Check that a certificate can state these host names and addresses."""
    for host in hosts:
        try:
            ipaddress.ip_address(host)
        except ValueError:
            if not re.fullmatch(HOST, host.removeprefix("*.")):
                raise ParameterError(
                    "`--host` must be an address or a host name in ASCII, such as alpha.example; got "
                    f"{host!r:.80}."
                ) from None


def _alternatives(name: str, hosts: Sequence[str]) -> x509.SubjectAlternativeName:
    entries: list[x509.GeneralName] = [x509.DNSName(name)]
    for host in hosts:
        try:
            entries.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            entries.append(x509.DNSName(host))
    return x509.SubjectAlternativeName(list(dict.fromkeys(entries)))


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    holder: Ed25519PrivateKey | x509.CertificateSigningRequest,
    days: float,
    starts: datetime.timedelta,
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(holder.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + starts)
        .not_valid_after(now + days * DAY)
    )


def read_pem(path: Path) -> bytes:
    """Read a key, a certificate, a request or a revocation list, up to a size limit."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise SiteError(f"{path} cannot be read ({error.strerror}).") from error
    if len(data) > LARGEST:
        raise SiteError(f"{path} must have at most {LARGEST} bytes.")
    return data

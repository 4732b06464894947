"""Throw-away certificates and keys, for the runs with a peer's authentication enabled."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import NameOID


def write_certificates(folder: Path) -> dict[str, Path]:
    """Write an authority, and a server's key and certificate for loopback: ca.pem, server.key, server.pem."""
    folder.mkdir(parents=True, exist_ok=True)
    authority, server = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer, subject = _name("throw-away authority"), _name("localhost")
    hosts = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    root = _begin(issuer, issuer, authority).add_extension(x509.BasicConstraints(True, None), True)
    leaf = _begin(subject, issuer, server).add_extension(x509.SubjectAlternativeName(hosts), False)
    paths = {name: folder / name for name in ("ca.pem", "server.pem", "server.key")}
    for name, draft in (("ca.pem", root), ("server.pem", leaf)):
        paths[name].write_bytes(draft.sign(authority, hashes.SHA256()).public_bytes(Encoding.PEM))
    paths["server.key"].write_bytes(_private(server, PrivateFormat.PKCS8))
    return paths


def write_key(path: Path) -> Path:
    """Write a key pair like ssh-keygen: the private key to `path`, the public key to path.pub."""
    path.parent.mkdir(parents=True, exist_ok=True)
    key = ec.generate_private_key(ec.SECP384R1())
    path.write_bytes(_private(key, PrivateFormat.OpenSSH))
    path.with_suffix(".pub").write_bytes(
        key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    )
    return path


def _private(key: ec.EllipticCurvePrivateKey, form: PrivateFormat) -> bytes:
    return key.private_bytes(Encoding.PEM, form, NoEncryption())


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _begin(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    draft = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer)
    draft = draft.public_key(key.public_key()).serial_number(x509.random_serial_number())
    return draft.not_valid_before(now - datetime.timedelta(hours=1)).not_valid_after(
        now + datetime.timedelta(days=2)
    )

"""Which certificates are believed no more: by serial number, by fingerprint, or by the authority's list."""

from __future__ import annotations

import datetime
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from ...core.errors import SiteError
from .keys import read_pem

SHORT, WHOLE = 32, 64  # hexadecimal digits of the two forms of a fingerprint


@dataclass(frozen=True)
class Revocations:
    """Serial numbers, and the SHA-256 (or its first half) of certificates or keys, in hexadecimal."""

    serials: frozenset[int] = frozenset()
    fingerprints: frozenset[str] = frozenset()

    def hold(self, certificate: x509.Certificate) -> bool:
        """Whether a certificate was revoked."""
        if certificate.serial_number in self.serials:
            return True
        der = certificate.public_bytes(serialization.Encoding.DER)
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        key = certificate.public_key().public_bytes(serialization.Encoding.DER, form)
        found = [hashlib.sha256(data).hexdigest() for data in (der, key)]
        return not self.fingerprints.isdisjoint(part for text in found for part in (text, text[:SHORT]))


def read_revocations(
    entries: Sequence[str], lists: Sequence[Path] = (), authorities: Sequence[x509.Certificate] = ()
) -> Revocations:
    """What site.toml says, and what the lists of the authority say, each signed by it and up to date."""
    plain = [re.sub("[ :-]", "", entry).lower() for entry in entries]
    prints = {entry for entry in plain if len(entry) in (SHORT, WHOLE)}
    serials = {int(entry, 16) for entry in plain if len(entry) < WHOLE}
    for path in lists:
        serials |= {entry.serial_number for entry in _read_list(path, authorities)}
    return Revocations(frozenset(serials), frozenset(prints))


def _read_list(path: Path, authorities: Sequence[x509.Certificate]) -> x509.CertificateRevocationList:
    text = read_pem(path)
    try:
        load = x509.load_pem_x509_crl if text.lstrip().startswith(b"-----") else x509.load_der_x509_crl
        found = load(text)
    except ValueError as error:
        raise SiteError(f"{path}: contains no revocation list in PEM or DER form.") from error
    signers = [one for one in authorities if one.subject == found.issuer and _signed(found, one)]
    if not signers:
        raise SiteError(f"{path}: is not signed by this network's authority.")
    now = datetime.datetime.now(datetime.UTC)
    if found.next_update_utc is not None and found.next_update_utc < now:
        raise SiteError(
            f"{path}: expired on {found.next_update_utc:%Y-%m-%d}: get the authority's newest list."
        )
    return found


def _signed(found: x509.CertificateRevocationList, authority: x509.Certificate) -> bool:
    try:
        return bool(found.is_signature_valid(authority.public_key()))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False

"""Revoked certificates, from site.toml and from the authority's lists. A running site reads them again.

A site rejects everything that is signed with a revoked certificate. From then on, it encrypts what it sends
with a new key, which the holder of the certificate does not get.
"""

from __future__ import annotations

import datetime
import hashlib
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from ...core.errors import SiteError, TaciturnError
from ...jobfile.toml_files import read_file
from ..files.keys import read_pem
from ..files.site import Site, SiteFile

SHORT, WHOLE = 32, 64  # hexadecimal digits of the two forms of a fingerprint
log = logging.getLogger("taciturn.site")


@dataclass(frozen=True)
class Revocations:
    """Revoked certificates and keys."""

    serials: frozenset[int] = frozenset()
    fingerprints: frozenset[str] = frozenset()

    @classmethod
    def read(
        cls, entries: Sequence[str], lists: Sequence[Path], authorities: Sequence[x509.Certificate]
    ) -> Revocations:
        """The revocations in site.toml and in the authority's lists.

        entries : serial numbers, and SHA-256 fingerprints (or their first half) of certificates or keys, in
            hexadecimal.
        lists : files of the authority; each must be signed and not expired.
        """
        plain = [re.sub("[ :-]", "", entry).lower() for entry in entries]
        serials = {int(entry, 16) for entry in plain if len(entry) < WHOLE}
        for path in lists:
            serials |= {entry.serial_number for entry in _read_list(path, authorities)}
        return cls(frozenset(serials), frozenset(entry for entry in plain if len(entry) in (SHORT, WHOLE)))

    def hold(self, certificate: x509.Certificate) -> bool:
        """Whether a certificate was revoked."""
        if certificate.serial_number in self.serials:
            return True
        der = certificate.public_bytes(serialization.Encoding.DER)
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        key = certificate.public_key().public_bytes(serialization.Encoding.DER, form)
        found = [hashlib.sha256(data).hexdigest() for data in (der, key)]
        return not self.fingerprints.isdisjoint(part for text in found for part in (text, text[:SHORT]))


class RevocationFiles:
    """The files of a running site that revoke certificates: site.toml and the authority's lists.

    site : the site, with the revocations that were read last.
    authorities : the certificates that may sign a list.
    """

    def __init__(self, site: Site, authorities: Sequence[x509.Certificate]) -> None:
        self.site, self._authorities = site, authorities
        self._seen: dict[Path, tuple[int, ...]] = {}

    def read_changed(self) -> Revocations | None:
        """The revocations, if a file has changed since the last call and can be read; otherwise None.

        If a changed file cannot be read, perhaps because an editor is writing it, a warning names the file.
        """
        if (found := self._look()) == self._seen:
            return None
        self._seen = found  # a list that is new in site.toml is not in `found`: the next call sees it
        try:
            self.site = _with_new_revocations(self.site)
            keys = self.site.file.keys
            lists = [self.site.path(path) for path in keys.revocations]
            return Revocations.read(keys.revoked, lists, self._authorities)
        except TaciturnError as error:
            log.warning("the changed list of revoked certificates is not used: %s", error)
            return None

    def _look(self) -> dict[Path, tuple[int, ...]]:
        """For each file, numbers that change when it is written or replaced."""
        lists = map(self.site.path, self.site.file.keys.revocations)
        return {path: _numbers(path) for path in (self.site.source, *lists)}


def _with_new_revocations(site: Site) -> Site:
    """The site with the revocations that are in site.toml now; its other settings stay as they are."""
    new = read_file(site.source, SiteFile).keys
    keys = site.file.keys.model_copy(update={"revoked": new.revoked, "revocations": new.revocations})
    return replace(site, file=site.file.model_copy(update={"keys": keys}))


def _numbers(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_ino, found.st_size


def _read_list(path: Path, authorities: Sequence[x509.Certificate]) -> x509.CertificateRevocationList:
    text = read_pem(path)
    try:
        load = x509.load_pem_x509_crl if text.lstrip().startswith(b"-----") else x509.load_der_x509_crl
        found = load(text)
    except ValueError as error:
        raise SiteError(f"{path} contains no revocation list in PEM or DER form.") from error
    signers = [one for one in authorities if one.subject == found.issuer and _signed(found, one)]
    if not signers:
        raise SiteError(f"{path} is not signed by this network's authority.")
    now = datetime.datetime.now(datetime.UTC)
    if found.next_update_utc is not None and found.next_update_utc < now:
        raise SiteError(
            f"{path} expired on {found.next_update_utc:%Y-%m-%d}: get the authority's newest list."
        )
    return found


def _signed(found: x509.CertificateRevocationList, authority: x509.Certificate) -> bool:
    try:
        return bool(found.is_signature_valid(authority.public_key()))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False

"""Trust: a frame is accepted if the authority certifies the key that signed it, or if the job lists this key.

A frame is a signed message between sites. TLS protects the links; signatures protect the frames end to end. A
relay can drop a frame, but not alter it. Certificates are revoked by serial number, by fingerprint, or by the
authority's list.
"""

from __future__ import annotations

import datetime
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from ...core.errors import SiteError
from ..files.keys import common_name, load_certificates, load_key, pem, read_pem, short_fingerprint
from ..files.site import Site
from ..protocol.frames import LARGEST_CERTIFICATE, FrameRefused, SignedFrame
from .revocations import Revocations

MOST_CACHED = 1024
log = logging.getLogger("taciturn.site")


@dataclass(frozen=True)
class _KnownCertificate:
    """The content of a certificate that has passed the checks."""

    name: str
    key: Ed25519PublicKey
    begins: datetime.datetime
    ends: datetime.datetime


class Trust:
    """The keys that may sign for each name: the authority certifies them, or the job lists them.

    In both cases, the certificate of the key must be valid now and must not be revoked.

    Parameters
    ----------
    authorities : certificates of the authority; several while an old one is being replaced.
    revoked, lists : serial numbers and fingerprints, and lists of the authority; see `Revocations`.
    keys : for each name, the short fingerprint of the one key that may sign for it. If given, no authority
        is used.
    """

    def __init__(
        self,
        authorities: Sequence[x509.Certificate],
        revoked: Sequence[str] = (),
        *,
        lists: Sequence[Path] = (),
        keys: Mapping[str, str] | None = None,
    ) -> None:
        self.authorities = tuple(authority for authority in authorities if _may_sign(authority))
        self._keys = dict(keys or {})
        if not self.authorities and not self._keys:
            raise SiteError("`keys.authority`: the file has no certificate of an authority.")
        self.revocations = Revocations.read(revoked, lists, self.authorities)
        self._known: dict[bytes, _KnownCertificate] = {}

    def revoke(self, revocations: Revocations) -> None:
        """Replace the revocations by these."""
        self.revocations = revocations
        self._known = {}

    def key_of(self, certificate: bytes, name: str, at: datetime.datetime | None = None) -> Ed25519PublicKey:
        """The key that a DER certificate certifies for `name` at the time `at`, by default now.

        Raises `FrameRefused` if the certificate is not valid for this name at this time.
        """
        known = self._look(certificate)
        then = at or datetime.datetime.now(datetime.UTC)
        if not known.begins <= then <= known.ends:
            when = "expired" if then > known.ends else "not valid yet"
            raise FrameRefused("certificate", f"its certificate is {when}")
        if known.name != name:
            raise FrameRefused(
                "name", f"it claims to be {name}, but its certificate is that of {known.name!r}"
            )
        return known.key

    def check(self, frame: SignedFrame, name: str, *, ever: bool = False) -> None:
        """Check that `name` signed the frame, with a certificate that is valid now.

        With `ever`, an expired certificate is accepted too, because a proof stays valid.
        """
        try:
            at = self._look(frame.certificate).begins if ever else None
            self.key_of(frame.certificate, name, at).verify(frame.signature, frame.signed)
        except InvalidSignature as error:
            raise FrameRefused("signature", f"its signature is not that of {name}") from error

    def ends(self, certificate: bytes) -> datetime.datetime:
        """The time until which a DER certificate and the certificate of its authority are both valid."""
        return self._look(certificate).ends

    def _look(self, der: bytes) -> _KnownCertificate:
        cache = self._known  # not `self._known` below: another thread may replace it
        if (seen := cache.get(der)) is not None:
            return seen
        try:
            certificate = x509.load_der_x509_certificate(der)
            name, key = common_name(certificate), certificate.public_key()
            revoked = self.revocations.hold(certificate)
        except Exception as error:  # any parser error on hostile bytes is a refusal
            raise FrameRefused("certificate", "its certificate cannot be read") from error
        issuers = [authority for authority in self.authorities if _issued(certificate, authority)]
        if not issuers and not self._keys:
            raise FrameRefused("certificate", "its certificate is not from this network's authority")
        if name is None or not isinstance(key, Ed25519PublicKey):
            raise FrameRefused("certificate", "its certificate has no single name, or no Ed25519 key")
        if self._keys and self._keys.get(name) != short_fingerprint(key):
            raise FrameRefused("certificate", "its key is not the one that the job lists for it")
        if revoked:
            raise FrameRefused("certificate", "its certificate was revoked")
        if len(cache) >= MOST_CACHED:
            cache.clear()
        ends = certificate.not_valid_after_utc
        if not self._keys:
            ends = min(ends, max(issuer.not_valid_after_utc for issuer in issuers))
        known = cache[der] = _KnownCertificate(name, key, certificate.not_valid_before_utc, ends)
        return known


@dataclass(frozen=True)
class Identity:
    """This site's name, its private key, and the certificate for them in DER form."""

    name: str
    key: Ed25519PrivateKey
    certificate: bytes

    def sign(self, data: bytes) -> bytes:
        """The Ed25519 signature of `data`."""
        return self.key.sign(data)

    def seal(self, content: bytes) -> bytes:
        """A whole frame: content, certificate, signature."""
        unsigned = content + self.certificate
        return unsigned + self.sign(unsigned)


def load_trust(
    authority: Path,
    revoked: Sequence[str] = (),
    *,
    lists: Sequence[Path] = (),
    keys: Mapping[str, str] | None = None,
) -> Trust:
    """Trust in the authorities of a PEM file or, if a job lists `keys`, in these keys."""
    return Trust(load_certificates(authority), revoked, lists=lists, keys=keys)


def reader_trust(file: Path) -> Trust:
    """Trust for a reader without a job: the PEM file has an authority, or each site's own certificate."""
    found = load_certificates(file)
    if any(map(_may_sign, found)):
        return Trust(found)
    keys: dict[str, str] = {}
    for certificate in found:
        name, key = common_name(certificate), certificate.public_key()
        if name is not None and isinstance(key, Ed25519PublicKey):
            if keys.setdefault(name, short_fingerprint(key)) != short_fingerprint(key):
                raise SiteError(
                    f"{file} has two keys for {name!r}; keep only the certificate whose key the job lists."
                )
    return Trust(found, keys=keys)


def site_trust(site: Site) -> Trust:
    """The trust of a site: site.toml lists revocations, and the job may list keys."""
    keys = site.file.keys
    lists = [site.path(path) for path in keys.revocations]
    return load_trust(site.path(keys.authority), keys.revoked, lists=lists, keys=site.job.keys)


def trusted_roots(site: Site) -> bytes:
    """The roots of TLS, in PEM form: the authority, or the certificates of all keys that the job lists.

    Certificates of revoked or unlisted keys are left out, so that their holders cannot connect.
    """
    whole = site.path(site.file.keys.authority)
    if not site.job.keys:
        return read_pem(whole)
    trust, kept = site_trust(site), []
    for certificate in load_certificates(whole):
        try:
            trust.key_of(certificate.public_bytes(serialization.Encoding.DER), str(common_name(certificate)))
        except FrameRefused as refused:
            log.warning("ignoring the certificate of %s: %s", common_name(certificate), refused)
        else:
            kept.append(pem(certificate))
    if not kept:
        raise SiteError(f"{whole} contains no certificate for a key that the job lists.")
    return b"".join(kept)


def load_identity(private: Path, certificate: Path, name: str, trust: Trust) -> Identity:
    """This site's key and certificate, checked as a neighbour will check them."""
    key, issued = load_key(private), load_certificates(certificate)[0]
    der = issued.public_bytes(serialization.Encoding.DER)
    if len(der) > LARGEST_CERTIFICATE:
        raise SiteError(
            f"{certificate} must be at most {LARGEST_CERTIFICATE} bytes in DER form; got {len(der)}."
        )
    try:
        public = trust.key_of(der, name)
    except FrameRefused as error:
        raise SiteError(f"{certificate}: {error}; no neighbour would accept this site.") from error
    if public.public_bytes_raw() != key.public_key().public_bytes_raw():
        raise SiteError(f"{certificate} does not belong to the key in {private}.")
    return Identity(name, key, der)


def _may_sign(authority: x509.Certificate) -> bool:
    try:
        return bool(authority.extensions.get_extension_for_class(x509.BasicConstraints).value.ca)
    except x509.ExtensionNotFound:
        return False


def _issued(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True

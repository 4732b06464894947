"""The parts of `taciturn site check` that need no other site: keys, certificate, host name and rows."""

from __future__ import annotations

import datetime
import hashlib
import ipaddress
import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID

from ...core.errors import one_line
from ...data.tables.cell_counts import count_column
from ...jobfile.job_format import TRAIN
from ...jobfile.job_rows import read_tables
from ..files.keys import load_certificates
from ..files.rows import load_rows
from ..files.site import Site
from ..rounds.prepare import PreparedSite
from ..wire.probe import address

Extension = TypeVar("Extension", bound=x509.ExtensionType)
OWNER_ONLY = "only for the owner of the rows; never share it"
SOON = datetime.timedelta(days=7)


@dataclass(frozen=True)
class Finding:
    """One line of a check-up; a `note` is information only, neither a success nor a failure."""

    good: bool
    text: str
    note: bool = False

    def line(self) -> str:
        return f"{'FAIL' if not self.good else 'note' if self.note else 'ok  '}  {one_line(self.text)}"


def keys(ready: PreparedSite) -> Iterator[Finding]:
    """Findings about the certificate (issuer, dates, hosts, purposes) and the permissions of the key file."""
    site, files = ready.site, ready.site.file.keys
    if site.job.keys:
        shown = f"this site's key is {site.job.keys[site.name]}, as the job lists it"
        yield Finding(True, f"keys: {shown}; compare all keys of the job by telephone")
    else:
        yield Finding(True, f"keys: the network's authority issued the certificate to {site.name}")
        for authority in load_certificates(site.path(files.authority)):  # two, while one replaces the other
            shown = f"the authority's fingerprint is {fingerprint(authority)}"
            yield Finding(True, f"keys: {shown}; compare it with the other sites by telephone")
    private = site.path(files.private)
    mode = private.stat().st_mode & 0o777
    if os.name == "posix" and _open_to_others(private.stat()):
        yield Finding(False, f"keys: others can read {private} (mode {mode:o}); run: chmod 600 {private}")
    yield _dates(ready)
    yield from _uses(site, load_certificates(site.path(files.certificate))[0])


def _open_to_others(key: os.stat_result) -> bool:
    """Whether users other than the user of this process can read the site's private key.

    A key that belongs to root may be readable by a group of this process: Kubernetes stores secrets this way.
    """
    lent = key.st_uid == 0 != os.geteuid() and key.st_gid in {os.getegid(), *os.getgroups()}
    return bool(key.st_mode & (0o037 if lent else 0o077))


def fingerprint(certificate: x509.Certificate) -> str:
    """The first 128 bits of a certificate's SHA-256, in groups of four hexadecimal digits."""
    digest = hashlib.sha256(certificate.public_bytes(serialization.Encoding.DER)).hexdigest()
    return "-".join(digest[k : k + 4] for k in range(0, 32, 4))


def _dates(ready: PreparedSite) -> Finding:
    """Check that the certificates of the site and its authority stay valid for `patience` seconds."""
    ends = ready.trust.ends(ready.identity.certificate)
    left = ends - datetime.datetime.now(datetime.UTC)
    patience = ready.site.file.patience
    text = f"keys: the certificate, or that of its authority, expires on {ends:%Y-%m-%d %H:%M} UTC"
    if left.total_seconds() < patience:
        return Finding(
            False, f"{text}: in less than `patience` ({patience:g} s); have the certificate renewed first"
        )
    return Finding(
        True, f"{text}{': soon' if left < SOON else ''}, in {left / datetime.timedelta(days=1):.1f} days"
    )


def _uses(site: Site, certificate: x509.Certificate) -> Iterator[Finding]:
    """Findings if the certificate lacks a needed purpose, or the host name to which other sites connect."""
    listens, calls = site.job.site(site.name).endpoint, site.dials()
    allowed = _extension(certificate, x509.ExtendedKeyUsage)
    wanted = [("clientAuth", ExtendedKeyUsageOID.CLIENT_AUTH, "outgoing", bool(calls))]
    wanted.append(("serverAuth", ExtendedKeyUsageOID.SERVER_AUTH, "incoming", listens is not None))
    for name, purpose, what, needed in wanted:
        if needed and allowed is not None and purpose not in allowed:
            yield Finding(False, f"keys: the certificate does not allow {what} connections: it lacks {name}")
    if listens is None:
        return
    host = address(listens)[0]
    alternatives: Iterable[x509.GeneralName] = _extension(certificate, x509.SubjectAlternativeName) or ()
    hosts = [str(entry.value) for entry in alternatives if isinstance(entry, x509.DNSName | x509.IPAddress)]
    if not {host.lower(), f"*.{host.partition('.')[2]}".lower()} & {name.lower() for name in hosts}:
        named = ", ".join(hosts) or "none"
        yield Finding(
            False, f"keys: other sites connect to {host}, but the certificate is valid for {named} only"
        )


def _extension(certificate: x509.Certificate, kind: type[Extension]) -> Extension | None:
    """An extension of a certificate; None if the certificate lacks it."""
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None


def place(site: Site) -> Iterator[Finding]:
    """A finding if the host name where this site listens is unknown, or leads only to this machine."""
    listens = site.listens()
    if listens is None:
        return
    host = address(listens)[0]
    with suppress(ValueError):
        ipaddress.ip_address(host)  # an address needs no look-up
        return
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
    except OSError as error:
        yield Finding(
            False, f"host: this machine cannot resolve {host}, where the site listens ({error.strerror})"
        )
        return
    if host != "localhost" and all(ipaddress.ip_address(a.split("%")[0]).is_loopback for a in found):
        yield Finding(
            False,
            f"host: {host} resolves to {', '.join(sorted(found))}, which only this machine reaches; correct "
            f'/etc/hosts, or set `listen = "tls/0.0.0.0:{address(listens)[1]}"` in site.toml',
        )


def rows(site: Site) -> Iterator[Finding]:
    """Findings about unusable rows, labels and cells. Only the owner of the rows may see these findings."""
    job = site.job
    if job.kind == TRAIN:
        yield from _training_rows(site)
    if job.table is None:
        return
    fields = [field for field in job.schema_ if job.kind == TRAIN or field.name in job.asking.reads]
    columns = read_tables(job, [site.rows], [field.name for field in fields]).columns if fields else {}
    for field in fields:
        counts = count_column(field, columns[field.name])
        if counts.many_lost:
            yield Finding(counts.fit > 0, f"{OWNER_ONLY}: {counts.losses()}")


def _training_rows(site: Site) -> Iterator[Finding]:
    """Findings about rows that become zeros, and about labels that are all equal."""
    (X, y), job = load_rows(site), site.job
    used = X.any(axis=1)
    zeros = int(np.sum(~used))
    if zeros:
        text = f"{OWNER_ONLY}: {zeros} of {len(X)} rows become zeros and have no effect"
        yield Finding(zeros < len(X), text)
    if job.loss.kind == "regression" or job.several or zeros == len(X):
        return
    positive = int(np.sum(y[used] > 0))
    if positive in (0, len(X) - zeros):
        what = repr((("-1", "+1") if job.label is None else job.label.told or ())[positive > 0])
        text = f"every label that can be read is {what}: is the job's other class spelt as in the table?"
        yield Finding(False, f"{OWNER_ONLY}: {text}")

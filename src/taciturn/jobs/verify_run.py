"""Check that the files of a run agree: model, certificate, ledger, trace, and signed statement.

The certificate states the privacy cost of the run. The ledger records each cost. The trace has every vector
that a site released; only the vectors of the last round are checked. The check detects if the model, the
certificate or the ledger was changed. A forger who rewrites all files can make them agree; only the signature
of a site's statement (`taciturn site verify`), or a hash kept elsewhere, protects against this.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..core.errors import CertificateError, LedgerError, ParameterError
from ..core.files import DAMAGED_NPZ
from .run_folder import CERTIFICATE, LEDGER, MODEL, RESULT, TRACE

if TYPE_CHECKING:
    from ..estimators.model_file import Model
    from ..privacy.certificate.certificate import Certificate

STATEMENT, STORE = "statement.json", "site.sqlite"
_CLOSE = 1e-9


def verify_run(folder: Path) -> tuple[Certificate, list[str]]:
    """(certificate, lines): one line for each check that passed. Raises at the first check that fails."""
    certificate = _read_certificate(folder / CERTIFICATE)
    found = [f"{CERTIFICATE}: every number follows from the facts in the file"]
    found += _check_statement(folder)
    found += _check_ledger(folder, certificate)
    found += _check_result(folder, certificate) or _check_model(folder, certificate)
    return certificate, found


def _check_result(folder: Path, certificate: Certificate) -> list[str]:
    """Check that the certificate was written for the totals in result.json, if the job asked questions."""
    from ..privacy.certificate.released import Released

    path = folder / RESULT
    if not path.exists():
        return []
    try:
        totals = np.asarray(json.loads(path.read_text(encoding="utf-8"))["totals"], dtype=np.float64)
        certificate.check_released(
            Released.of("counts" if certificate.run.loss.counting else "totals", totals)
        )
    except (ValueError, KeyError, TypeError) as error:
        raise CertificateError(
            f"{path}: this is not the result of a job that answers questions (a job of kind describe, "
            "evaluate, ...)."
        ) from error
    except CertificateError as error:
        raise CertificateError(f"{path} was changed, or belongs to another run: {error}") from error
    return [
        f"{RESULT}: {CERTIFICATE} was written for these totals; the answers, which are computed from the "
        "totals and the job, were not computed again"
    ]


def _read_certificate(path: Path) -> Certificate:
    from ..privacy.certificate.certificate import Certificate

    try:
        certificate = Certificate.from_json(path.read_text(encoding="utf-8-sig"))
        certificate.check()
    except (CertificateError, ParameterError, UnicodeDecodeError) as error:
        raise CertificateError(f"{path}: {error}") from error
    return certificate


def _check_ledger(folder: Path, certificate: Certificate) -> list[str]:
    from ..privacy.certificate.certificate import Certificate
    from ..privacy.certificate.document import compare, document
    from ..privacy.ledger.disk import SqliteLedger
    from ..sites.rounds.store import read_ledger

    path = next((folder / name for name in (LEDGER, STORE) if (folder / name).exists()), None)
    if path is None:
        if certificate.head is not None:
            raise LedgerError(
                f"{folder / LEDGER} is missing, but the certificate refers to the last row of this ledger."
            )
        return ["no ledger: the certificate names no ledger"]
    if certificate.head is None:
        raise CertificateError(f"{path} does not belong to {CERTIFICATE}, which names no ledger.")
    given = certificate.delta, certificate.released, certificate.form
    if path.name == STORE:
        fresh = Certificate.from_ledger(read_ledger(path), *given)
    else:
        with SqliteLedger(path, readonly=True) as ledger:
            fresh = Certificate.from_ledger(ledger, *given)
    if fresh.head != certificate.head:
        raise LedgerError(f"{path} belongs to another run, or has charges newer than {CERTIFICATE}.")
    try:
        compare(json.loads(certificate.to_json()), document(fresh))
    except CertificateError as error:
        raise LedgerError(f"{path} does not agree with {CERTIFICATE}: {error}") from error
    return [f"{path.name}: {certificate.head.rows} rows with a valid hash chain give the same certificate"]


def _check_model(folder: Path, certificate: Certificate) -> list[str]:
    from ..estimators.loaded import check_model
    from ..estimators.model_file import read_model

    if not (folder / MODEL).exists():
        return [f"no {MODEL}: no model was trained, or the model is kept elsewhere"]
    model = read_model(folder / MODEL)
    digest = hashlib.sha256((folder / CERTIFICATE).read_bytes()).hexdigest()
    if isinstance(model.certificate, str) and model.certificate != digest:
        raise CertificateError(
            f"{folder / MODEL} belongs to another run. It states the hash of its certificate, and "
            f"{CERTIFICATE} has another hash."
        )
    if isinstance(model.certificate, dict) and model.certificate != json.loads(certificate.to_json()):
        raise CertificateError(f"{folder / MODEL} contains a certificate that differs from {CERTIFICATE}.")
    try:
        check_model(certificate, model)
    except CertificateError as error:
        raise CertificateError(f"{folder / MODEL} was changed, or belongs to another run: {error}") from error
    named = f"is the model that {CERTIFICATE} was written for" if certificate.form > 1 else ""
    traced = _check_trace(folder, model)
    said = " and ".join(part for part in (named, traced) if part)
    return [f"{MODEL}: {said}"] if said else []


def _check_trace(folder: Path, model: Model) -> str:
    """Check that the coefficients are the weighted average of the last released vectors of the sites."""
    from ..data.tables.unit_ball import UnitBallScaling
    from ..methods.admm.updates import network_average

    path, weights = folder / TRACE, model.run.get("weights")
    if not path.exists() or weights is None:
        return ""
    try:
        with np.load(path, allow_pickle=False) as trace:
            released = np.asarray(trace["released"], dtype=np.float64)
    except (OSError, *DAMAGED_NPZ) as error:
        raise CertificateError(f"{path} cannot be read.") from error
    given = model.settings
    ball = UnitBallScaling(
        model.data_norm, bool(given.get("fit_intercept", True)), given.get("intercept_scaling", 0.5)
    )
    try:
        found = ball.model(network_average(released[-1].swapaxes(0, 1), weights))
    except (ParameterError, IndexError, ValueError, TypeError) as error:
        raise CertificateError(
            f"{TRACE} and {MODEL} are of different runs: their array shapes differ."
        ) from error
    for average, entries in zip(found, (model.coef, model.intercept), strict=True):
        stated = np.array(entries)
        if average.shape != stated.shape or not np.allclose(average, stated, rtol=_CLOSE, atol=1e-12):
            raise CertificateError(
                f"{folder / MODEL} was changed, or belongs to another run: its coefficients are not the "
                f"average of the releases in {TRACE}."
            )
    return f"is the average of the last releases in {TRACE}"


def _check_statement(folder: Path) -> list[str]:
    """If the folder has a site's statement, check the files against its hashes. No signature is checked."""
    path = folder / STATEMENT
    if not path.exists():
        return []
    try:
        files = dict(json.loads(path.read_text(encoding="utf-8"))["statement"]["files"])
    except (ValueError, KeyError, TypeError) as error:
        raise CertificateError(f"{path}: this is not a signed statement.") from error
    for name, digest in files.items():
        beside = folder / Path(name).name
        if beside.exists() and hashlib.sha256(beside.read_bytes()).hexdigest() != digest:
            raise CertificateError(f"{beside} is not the file that {STATEMENT} was signed for.")
    return [f"{STATEMENT}: matches the files in its folder; `taciturn site verify` checks the signature"]

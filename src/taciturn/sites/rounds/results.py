"""What a site holds at the end: the model, its certificate, and a signed statement of its total cost."""

from __future__ import annotations

import datetime
import hashlib
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.x509 import load_der_x509_certificate, load_pem_x509_certificate

from ...canonical import canonical
from ...diskfile import write_whole
from ...errors import SiteError
from ...privacy.certificate.certificate import Certificate
from ...types import Array
from ..files.job import NetworkJob
from ..files.keys import pem
from ..wire.frame import FrameRefused
from ..wire.trust import Trust
from .prepare import Ready
from .store import SiteStore

LARGEST = 2**24  # bytes of a statement
SIGNED_AT = "%Y-%m-%dT%H:%M:%SZ"
MODEL, CERTIFICATE, STATEMENT = "model.json", "certificate.json", "statement.json"
_SETTINGS = {"h": "smoothing", "scale": "scale"}  # what an estimator calls the parameters of its loss


def write_results(
    ready: Ready, store: SiteStore[Any], model: Array, *, ended: dict[str, Any] | None = None
) -> Certificate:
    """model.json, certificate.json and statement.json in the state folder; each whole or not at all.

    `ended` says after which `round`, with which `sites` and for which `reason`, if not after the last.
    """
    folder, job = ready.site.state, ready.site.job
    certificate = Certificate.from_ledger(store.ledger, delta=job.delta)
    texts = {
        MODEL: json.dumps(model_facts(job, model, ended), indent=1, allow_nan=False) + "\n",
        CERTIFICATE: certificate.to_json(),
    }
    facts = statement(ready, store, certificate, texts) | ({} if ended is None else {"ended": ended})
    texts[STATEMENT] = json.dumps(sign_facts(ready, facts), indent=1) + "\n"
    for name, text in texts.items():
        write_whole(folder / name, text.encode())
    return certificate


def model_facts(job: NetworkJob, coef: Array, ended: dict[str, Any] | None = None) -> dict[str, Any]:
    """The content of model.json, as `taciturn.data.model_file` reads it; the same bytes at every site.

    An intercept of the job is a constant inside x, so its weight is the last of `coef`; a masked job's has a
    public value and stands apart. Several classes have a row of `coef` each.
    """
    coef = coef.reshape(-1, job.dimension)
    apart, names = np.zeros(len(coef)), list(job.feature_names)
    if job.ball is not None:
        (coef, apart), names = job.ball.model(coef), names[:-1]
    settings = {_SETTINGS[name]: value for name, value in vars(job.loss).items() if name in _SETTINGS}
    facts: dict[str, Any] = {
        "format": "taciturn-model/1",
        "loss": job.training_loss.name,
        "features": names,
        "coef": coef.tolist(),
        "intercept": apart.tolist(),
        "settings": {"delta": job.delta, "fit_intercept": job.ball is not None, **settings},
        "simulated": job.simulated,
        "run": {
            "job": job.name,
            "sha256": job.hash.hex(),
            "sites": list(job.names) if ended is None else ended["sites"],
            "rounds": job.rounds if ended is None else ended["round"],
        },
    }
    if job.label is not None and job.label.classes is not None:
        facts["classes"] = list(job.label.classes)
    elif job.loss.kind != "regression":
        positive = None if job.label is None else job.label.positive
        facts["classes"] = [-1, 1] if positive is None else [f"not {positive}", positive]
    if job.label is not None:
        facts |= {
            "label": job.label.column,
            "schema": job.table,
            "encoding": {"intercept": job.intercept and job.ball is None},
        }
    return facts


def statement(
    ready: Ready, store: SiteStore[Any], certificate: Certificate, texts: dict[str, str]
) -> dict[str, Any]:
    """What a site puts its name to: what the whole run cost its records, and which files say so."""
    job = ready.site.job
    return {
        "format": "taciturn-statement/1",
        "site": ready.site.name,
        "job": {"name": job.name, "sha256": job.hash.hex()},
        "rounds": certificate.rounds,
        "epsilon": certificate.epsilon,
        "delta": certificate.delta,
        "pure_epsilon": certificate.pure_epsilon if np.isfinite(certificate.pure_epsilon) else None,
        **_collusion(certificate),
        "simulated": job.simulated,
        "ledger": {"rows": store.ledger.head.rows, "sha256": store.ledger.head.digest},
        "files": {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()},
        "signed_at": time.strftime(SIGNED_AT, time.gmtime()),
    }


def _collusion(certificate: Certificate) -> dict[str, Any]:
    """Of a masked run: against how many of the other sites epsilon holds, and what it is against 0, 1, ..."""
    run = certificate.run
    if not run.masked:
        return {}
    against = [certificate.epsilon_against(number) for number in range(run.sites)]
    return {"colluding": run.colluding, "epsilon_against": against}


def verify_statement(path: Path, trust: Trust) -> dict[str, Any]:
    """The facts of a statement whose signature is that of the site it names, and of the files beside it."""
    try:
        if path.stat().st_size > LARGEST:
            raise SiteError(f"{path}: too large to be a statement.")
        entries = json.loads(path.read_text(encoding="utf-8"))
        facts, signature = entries["statement"], bytes.fromhex(entries["signature"])
        certificate = load_pem_x509_certificate(entries["signed_by"].encode())
        der = certificate.public_bytes(serialization.Encoding.DER)
        at = datetime.datetime.strptime(facts["signed_at"], SIGNED_AT).replace(tzinfo=datetime.UTC)
        trust.key_of(der, facts["site"], at).verify(signature, canonical(facts).encode())
        files = {Path(name).name: str(digest) for name, digest in facts["files"].items()}
        _check_facts(facts)
    except FrameRefused as error:
        raise SiteError(f"{path}: {error}.") from error
    except InvalidSignature as error:
        raise SiteError(f"{path}: the signature does not fit what is stated.") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SiteError(f"{path}: not a signed statement.") from error
    for name, digest in files.items():
        beside = path.parent / name
        if beside.exists() and hashlib.sha256(beside.read_bytes()).hexdigest() != digest:
            raise SiteError(f"{beside}: is not the file that {path.name} was signed for.")
    _check_agreement(path, facts)
    return dict(facts)


def _check_facts(facts: dict[str, Any]) -> None:
    """What is signed is of the kinds that a statement has; raises one of the errors that `verify` expects."""
    released = facts["released"] if "released" in facts else [int(facts["rounds"])]
    if not all(isinstance(entry, int) for entry in released):
        raise TypeError("rounds")
    if not 0 <= float(facts["delta"]) < 1 or not float(facts["epsilon"]) >= 0:
        raise ValueError("cost")
    against, colluding = facts.get("epsilon_against", []), facts.get("colluding", 0)
    if not all(isinstance(entry, float) and entry >= 0 for entry in against):
        raise TypeError("epsilon_against")
    if not (colluding is None or isinstance(colluding, int)):
        raise TypeError("colluding")
    if not isinstance(facts["simulated"], bool):
        raise TypeError("simulated")
    if not all(
        isinstance(text, str) for text in (facts["site"], facts["job"]["name"], facts["job"]["sha256"])
    ):
        raise TypeError("names")


def _check_agreement(path: Path, facts: dict[str, Any]) -> None:
    """A statement says what its certificate says, of the job that its model is of."""
    beside, model = path.parent / CERTIFICATE, path.parent / MODEL
    if CERTIFICATE in facts["files"] and beside.exists():
        certificate = Certificate.from_json(beside.read_text(encoding="utf-8"))
        certificate.verify()
        for key in ("epsilon", "delta", "rounds"):
            if facts.get(key) != getattr(certificate, key):
                raise SiteError(f"{path}: states another `{key}` than {beside.name} beside it.")
        for key, value in _collusion(certificate).items():
            if facts.get(key) != value:
                raise SiteError(f"{path}: states another `{key}` than {beside.name} beside it.")
        if [entry.name for entry in certificate.sites] != [facts["site"]]:
            raise SiteError(f"{path}: {beside.name} beside it is about another site.")
    if MODEL in facts["files"] and model.exists():
        try:
            run = json.loads(model.read_text(encoding="utf-8"))["run"]["sha256"]
        except (ValueError, LookupError, TypeError, RecursionError):
            run = None
        if run != facts["job"]["sha256"]:
            raise SiteError(f"{path}: {model.name} beside it is the model of another job.")


def sign_facts(ready: Ready, facts: dict[str, Any]) -> dict[str, Any]:
    identity = ready.identity
    return {
        "statement": facts,
        "signature": identity.sign(canonical(facts).encode()).hex(),
        "signed_by": pem(load_der_x509_certificate(identity.certificate)).decode(),
    }

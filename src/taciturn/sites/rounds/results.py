"""The results of a site: the model, its certificate, and a signed statement of its total cost."""

from __future__ import annotations

import datetime
import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any, cast

import numpy as np
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.x509 import load_der_x509_certificate, load_pem_x509_certificate

from ...core.canonical import canonical
from ...core.errors import CertificateError, SiteError
from ...core.files import write_whole
from ...core.types import Array
from ...jobfile.job_format import TRAIN
from ...jobfile.job_rows import encoding_facts, make_encoder
from ...jobfile.toml_files import about_files
from ...privacy.certificate.certificate import Certificate
from ...privacy.certificate.released import Released
from ...questions.asking import released_as
from ..files.job import NetworkJob
from ..files.keys import pem
from ..protocol.frames import FrameRefused
from ..wire.trust import Trust
from .prepare import PreparedSite
from .store import CERTIFICATE, MODEL, RESULT, STATEMENT, SiteStore

FORMAT, STOPPED = "taciturn-statement/1", "taciturn-stopped/1"
LARGEST, MOST_CERTIFICATE, MOST_MODEL = 2**20, 2**28, 2**28  # bytes of a statement and its files
AHEAD = datetime.timedelta(days=1)  # the largest difference between two clocks that is tolerated
SIGNED_AT = "%Y-%m-%dT%H:%M:%SZ"
_MASKED = ("colluding", "epsilon_against")
_ONLY_IN = {
    FORMAT: ("rounds", "pure_epsilon", "ledger", "ended", "attempts", "left_out", *_MASKED),
    STOPPED: ("released", "because_of"),
}
_SETTINGS = {"h": "smoothing", "scale": "scale"}  # parameters of a loss: their names in an estimator


def write_results(
    ready: PreparedSite,
    store: SiteStore,
    model: Array,
    *,
    ended: dict[str, Any] | None = None,
    coordinates: Array | None = None,
) -> Certificate:
    """Write model.json, certificate.json and statement.json to the state folder, each one atomically.

    If not all sites completed all rounds, `ended` has the last `round`, the `sites` and the `reason`. If
    `coordinates` V are given, the model applies to V'x, shrunk to norm at most 1, and not to x. A job that
    trains no model has result.json instead of model.json. `left_out` in the statement counts rounds of the
    model in which this site released nothing, for example because it was away.
    """
    folder, job = ready.site.state, ready.site.job
    asked = job.kind != TRAIN
    facts = {} if asked else model_facts(job, model, ended, coordinates)
    numbers: list[Any] = [facts.get(key) for key in ("coef", "intercept", "whitening")]
    released = released_as(job.sums, model) if asked else Released.model(*numbers)
    took_part = len(store.charges) > store.run.moments  # otherwise, this site added nothing to the result
    certificate = Certificate.from_ledger(store.ledger, job.delta, released if took_part else None)
    facts = answer_facts(job, model, certificate) if asked else facts
    texts = {
        RESULT if asked else MODEL: json.dumps(facts, indent=1, allow_nan=False) + "\n",
        CERTIFICATE: certificate.to_json(),
    }
    signed = statement(ready, certificate, texts) | ({} if ended is None else {"ended": ended})
    last = job.rounds if ended is None else int(ended["round"])
    missing = len(set(range(1, last + 1)) - set(store.rounds))
    signed |= {"left_out": missing} if missing else {}
    signed |= {"at_least": True} if store.at_least else {}
    texts[STATEMENT] = json.dumps(sign_facts(ready, signed), indent=1) + "\n"
    for name, text in texts.items():
        write_whole(folder / name, text.encode())
    return certificate


def answer_facts(job: NetworkJob, totals: Array, certificate: Certificate) -> dict[str, Any]:
    """The content of result.json."""
    run = {"job": job.name, "sha256": job.hash.hex(), "sites": list(job.names), "rounds": job.rounds}
    about = {"settings": {"delta": job.delta}, "simulated": job.simulated, "run": run}
    return job.asking.document(job.asking.answers(job.sums, totals, certificate), totals, about)


def model_facts(
    job: NetworkJob, coef: Array, ended: dict[str, Any] | None = None, coordinates: Array | None = None
) -> dict[str, Any]:
    """The content of model.json, as `taciturn.data.model_file` reads it; the same bytes at every site.

    If the job has an intercept, the last entry of x is a constant, whose weight is the last entry of `coef`.
    In a job of method "masked", `intercept` states the constant's contribution instead. With more than two
    classes, each class has a row of `coef`.
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
    if coordinates is not None:
        facts["whitening"] = [[*row, 0.0] for row in coordinates.T.tolist()]
    if job.loss.kind != "regression":
        facts["classes"] = [-1, 1] if job.label is None else list(job.label.told or ())
    if job.label is not None:
        facts |= {
            "label": job.label.column,
            "schema": job.table,
            "encoding": encoding_facts(make_encoder(job, intercept=job.intercept and job.ball is None)),
        }
    return facts


def statement(ready: PreparedSite, certificate: Certificate, texts: dict[str, str]) -> dict[str, Any]:
    """The facts that a site signs: the cost of the whole run, and the hashes of the result files."""
    job = ready.site.job
    return {
        "format": FORMAT,
        "site": ready.site.name,
        "job": {"name": job.name, "sha256": job.hash.hex()},
        **_costs(certificate),
        "files": {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()},
        "signed_at": time.strftime(SIGNED_AT, time.gmtime()),
    }


def _costs(certificate: Certificate) -> dict[str, Any]:
    """For a statement: the costs that a certificate states, and the hash of the ledger behind them.

    For a run of method "masked", also the assumed number of colluding sites, and a list with the epsilon
    against 0, 1, ... colluding sites.
    """
    run, head = certificate.run, certificate.head
    facts: dict[str, Any] = {
        "rounds": certificate.rounds,
        "epsilon": certificate.epsilon,
        "delta": certificate.delta,
        "pure_epsilon": certificate.pure_epsilon if np.isfinite(certificate.pure_epsilon) else None,
        "simulated": run.simulated,
        "ledger": None if head is None else {"rows": head.rows, "sha256": head.digest},
    }
    if certificate.against:
        facts |= {"colluding": run.colluding, "epsilon_against": list(certificate.against)}
    if run.attempts:
        facts["attempts"] = [{"id": entry.id, "members": list(entry.members)} for entry in run.attempts]
    return facts


@about_files
def verify_statement(path: Path, trust: Trust) -> dict[str, Any]:
    """Verify the signature of a statement and the files beside it; return the facts in the statement."""
    try:
        entries = json.loads(read_text(path, LARGEST, "a statement"))
        facts, signature = entries["statement"], bytes.fromhex(entries["signature"])
        certificate = load_pem_x509_certificate(entries["signed_by"].encode())
        der = certificate.public_bytes(serialization.Encoding.DER)
        at = datetime.datetime.strptime(facts["signed_at"], SIGNED_AT).replace(tzinfo=datetime.UTC)
        trust.key_of(der, facts["site"], at).verify(signature, canonical(facts).encode())
        _check_facts(facts)
    except FrameRefused as error:
        raise SiteError(f"{path}: {error}.") from error
    except InvalidSignature as error:
        raise SiteError(f"{path}: the signature does not match the statement.") from error
    except SiteError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SiteError(f"{path} is not a signed statement.") from error
    if at > datetime.datetime.now(datetime.UTC) + AHEAD:
        raise SiteError(f"{path} states that it was signed on {at:%Y-%m-%d}, which is in the future.")
    for beside in files_beside(path, facts):
        with beside.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != facts["files"][beside.name]:
                raise SiteError(
                    f"{beside} has another hash than {path.name} states: it was replaced or edited."
                )
    _check_agreement(path, facts)
    return dict(facts)


def files_beside(path: Path, facts: dict[str, Any]) -> list[Path]:
    """The files that a statement names and that are in its folder; pipes and devices are left out."""
    return [path.parent / name for name in facts["files"] if (path.parent / name).is_file()]


def read_text(path: Path, most: int, what: str) -> str:
    """Read a text of at most `most` bytes from another party; `what` names it in errors."""
    if path.exists() and not path.is_file():
        raise SiteError(f"{path} is not a file, so it cannot be {what}.")
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise SiteError(f"{path} is too large to be {what}.")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SiteError(f"{path} is not text, so it cannot be {what}.") from error


def _check_facts(facts: dict[str, Any]) -> None:
    """Check the types in a statement. `verify_statement` reports each error as 'is not a signed statement'.

    A statement of a whole run must name both result files; otherwise it could be put beside any files. Each
    key in `_ONLY_IN` is allowed in one format only, because the other format does not check it.
    """
    form = facts["format"]
    if (
        facts["files"].keys()
        not in {FORMAT: ({MODEL, CERTIFICATE}, {RESULT, CERTIFICATE}), STOPPED: (set(),)}[form]
    ):
        raise ValueError("files")
    if any(key in facts for other, keys in _ONLY_IN.items() if other != form for key in keys):
        raise ValueError("another format")
    if form == FORMAT:
        _check_end(facts)
    elif not isinstance(facts["released"], list) or not all(_is_whole(t, 1) for t in facts["released"]):
        raise TypeError("released")
    if not _is_number(facts["delta"]) or not facts["delta"] < 1 or not _is_number(facts["epsilon"]):
        raise ValueError("cost")
    against, colluding = facts.get("epsilon_against", []), facts.get("colluding")
    if not isinstance(against, list) or not all(_is_number(entry) for entry in against):
        raise TypeError("epsilon_against")
    if not (colluding is None or _is_whole(colluding)):
        raise TypeError("colluding")
    if not isinstance(facts["simulated"], bool) or not isinstance(facts.get("at_least", False), bool):
        raise TypeError("simulated")
    names = facts["site"], facts["job"]["name"], facts["job"]["sha256"], *facts["files"].values()
    if not all(isinstance(text, str) for text in names):
        raise TypeError("names")


def _check_end(facts: dict[str, Any]) -> None:
    """Check the entries of a whole run: its rounds, its pure epsilon, and its end, if it ended early."""
    left_out = facts.get("left_out", 0)
    if not _is_whole(facts["rounds"]) or not _is_whole(left_out):
        raise TypeError("rounds")
    if facts["pure_epsilon"] is not None and not _is_number(facts["pure_epsilon"]):
        raise TypeError("pure_epsilon")
    if "ended" not in facts:
        return
    ended, last = facts["ended"], facts["ended"]["round"]
    if not _is_whole(last, 1) or left_out > last:
        raise ValueError("ended")
    total = facts["rounds"] + left_out
    # Without repeated rounds, it is at least the last complete round; with `left_out`, at most one more.
    if "attempts" not in facts and (total < last or (left_out and total > last + 1)):
        raise ValueError("ended")
    if not isinstance(ended["reason"], str) or not (left_out or facts["site"] in ended["sites"]):
        raise TypeError("ended")


def _is_number(value: object) -> bool:
    """A JSON number, finite and not below 0."""
    return type(value) in (int, float) and 0 <= cast(float, value) <= sys.float_info.max


def _is_whole(value: object, least: int = 0) -> bool:
    return type(value) is int and value >= least


def _check_agreement(path: Path, facts: dict[str, Any]) -> None:
    """Check that a statement agrees with the certificate, model and answers in its folder."""
    near = files_beside(path, facts)
    if path.parent / CERTIFICATE in near:
        _check_certificate(path, facts)
    for name in (MODEL, RESULT):
        if path.parent / name in near:
            _check_model(path, facts, name)


def _check_certificate(path: Path, facts: dict[str, Any]) -> None:
    beside = path.parent / CERTIFICATE
    try:
        certificate = Certificate.from_json(read_text(beside, MOST_CERTIFICATE, "a certificate"))
        certificate.verify()
    except CertificateError as error:
        raise SiteError(f"{beside}: {error}") from error
    costs = _costs(certificate)
    for key in dict.fromkeys((*costs, "attempts", *_MASKED)):
        if facts.get(key) != costs.get(key):
            raise SiteError(f"{path}: its `{key}` differs from the one in {beside.name} in the same folder.")
    if [entry.name for entry in certificate.sites] != [facts["site"]]:
        raise SiteError(f"{path}: {beside.name} in the same folder is about another site.")


def _check_model(path: Path, facts: dict[str, Any], name: str) -> None:
    """Check that the model, or the answer, has the stated job, rounds and sites."""
    beside, ended = path.parent / name, facts.get("ended")
    try:
        model = json.loads(read_text(beside, MOST_MODEL, "a model"))
        run, simulated, delta = model["run"], model["simulated"], model["settings"]["delta"]
        rounds, sites, hashed = run["rounds"], run["sites"], run["sha256"]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise SiteError(f"{beside} is not the result of a network's run.") from error
    if hashed != facts["job"]["sha256"] or run.get("job") != facts["job"]["name"]:
        raise SiteError(f"{path}: {beside.name} in the same folder is the result of another job.")
    left_out = facts.get("left_out", 0)
    total = facts["rounds"] + left_out
    again = "attempts" in facts and _is_whole(rounds, 1) and left_out <= rounds <= total
    completed = rounds if again else total  # repeated rounds, after a drop-out, count again
    stated = {
        "rounds": (completed if ended is None else ended["round"], rounds),
        "sites": (sites if ended is None else ended["sites"], sites),
        "simulated": (facts["simulated"], simulated),
        "delta": (facts["delta"], delta),
    }
    for key, (here, there) in stated.items():
        if here != there:
            raise SiteError(f"{path}: its `{key}` differs from the one in {beside.name} in the same folder.")


def sign_facts(ready: PreparedSite, facts: dict[str, Any]) -> dict[str, Any]:
    identity = ready.identity
    return {
        "statement": facts,
        "signature": identity.sign(canonical(facts).encode()).hex(),
        "signed_by": pem(load_der_x509_certificate(identity.certificate)).decode(),
    }

"""A forger of certificates: edits facts at random and recomputes the hash."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from taciturn.core.canonical import canonical, digest
from taciturn.core.errors import CertificateError, TaciturnError
from taciturn.estimators.model_file import load_model
from taciturn.jobs.verify_run import verify_run
from taciturn.privacy.certificate import document
from taciturn.privacy.certificate.certificate import Certificate

TEXTS = (
    "",
    "missing",
    "zeros",
    "norm",
    "gaussian",
    "logistic",
    "custom",
    "record",
    "real",
    "process",
    "network",
    "simulated",
    "none",
    "\n",
    "x" * 400,
)


LESS = (0.0, 0.1, 0.5, 0.999)


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where there is something to edit."""
    found = [path] if path else []
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    return found + [each for key, entry in entries for each in paths(entry, (*path, key))]


def edited(body: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """One to three edits anywhere; figures and texts stay as they were unless they are what is edited."""
    body = copy.deepcopy(body)
    for _ in range(rng.choice([1, 1, 2, 3])):
        path = rng.choice([path for path in paths(body) if path[0] != "sha256"])
        holder: Any = body
        for key in path[:-1]:
            holder = holder[key]
        action = rng.random()
        if action < 0.08 and isinstance(holder, dict):
            holder[rng.choice(["added", "note", "epsilon2"])] = rng.choice(["missing", 0, None, {}])
        elif action < 0.12 and isinstance(holder, dict):
            del holder[path[-1]]
        else:
            holder[path[-1]] = other(holder[path[-1]], rng)
    return signed(body)


def other(value: Any, rng: random.Random) -> Any:
    """Something else of the same kind, or of another."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice([0, 1, 2, value + 1, value * 10, value * 1000, -value, value - 1, 10**6, None])
    if isinstance(value, float):
        factor = rng.choice([0.0, 1e-6, 0.5, 0.9, 0.999, 1.001, 2.0, 10.0, 1e6, 1e300, -1.0])
        return rng.choice([value * factor, value * factor, 1e-320, 1e308, None])
    if isinstance(value, str):
        return rng.choice(TEXTS)
    if isinstance(value, list) and value:
        return rng.choice([value[:-1], [*value, value[-1]], value[::-1], []])
    return rng.choice([0, 1, 1.0, "", [], {}, True])


def signed(body: dict[str, Any]) -> dict[str, Any]:
    plain = {key: value for key, value in body.items() if key != "sha256"}
    return plain | {"sha256": digest(plain)}


def recomputed(body: dict[str, Any]) -> str | None:
    """An edited certificate with every figure and text made to fit its facts; None if they cannot be."""
    try:
        stated = Certificate.from_json(json.dumps(body))
        return document.text(document.document(Certificate.from_facts(*stated.facts)))
    except (CertificateError, ValueError, ArithmeticError, KeyError, TypeError):
        return None


def accepted(text: str) -> Certificate | None:
    """The certificate, if it is believed; an error of any other kind than ours is a fault."""
    try:
        certificate = Certificate.from_json(text)
        certificate.check()
    except CertificateError:
        return None
    return certificate


def attack_sums(honest: Certificate, edits: int, seed: int) -> int:
    """How many forgeries of masked sums are refused, each with every figure made to fit what it claims."""
    rng, body = random.Random(seed), json.loads(honest.to_json())
    refused = 0
    for _ in range(edits):
        forged = copy.deepcopy(body)
        for entry in rng.sample(forged["run"]["sums"], rng.randint(1, len(forged["run"]["sums"]))):
            name = rng.choice(["sensitivity", "stray", "length", "part"])
            if name == "part":
                entry[name] = rng.choice(["gradient", "means and squares", "noise"])
            else:
                entry[name] = max(1, entry[name] // 2) if name == "length" else entry[name] * rng.choice(LESS)
        if rng.random() < 0.3:
            fixed = honest.run.loss.counting  # how many tables there are is a fact, as the noise is
            name = rng.choice(["records", "largest", "data_norm", *["dimension"] * (not fixed)])
            forged["run"][name] = rng.choice([1, 7, 10**6])
        text = recomputed(signed(forged))
        found = None if text is None else accepted(text)
        if found is None:
            refused += 1
        elif found.epsilon < honest.epsilon * (1 - 1e-8):
            raise AssertionError(f"believed, and too small: {canonical(forged)[:2000]}")
    return refused


Trick = Callable[[dict[str, Any], random.Random], None]


def _custom_loss(body: dict[str, Any], rng: random.Random) -> None:
    """A loss that nobody knows, flatter than the one that was used; elsewhere its author may state it."""
    if not body["run"]["sums"]:
        raise KeyError("sums")
    slope = rng.choice([0.01, 0.148, 0.5])
    loss = {"name": rng.choice(["custom", "custom flat"]), "kind": "classification", "parameters": {}}
    body["run"]["loss"] = {**loss, "slope_bound": slope, "curvature_bound": 0.25}
    for entry in body["run"]["sums"]:
        entry["sensitivity"] *= slope


def _claim(body: dict[str, Any], rng: random.Random) -> None:
    """A text where free text is allowed, which reads like a figure of the certificate."""
    figure = rng.choice(["epsilon = 0.01", "Epsilon: 0.1 at delta 1e-9", "true ε=0.1", "the cost is 0.1"])
    if rng.random() < 0.5:
        body["run"]["marks"] = [figure]
    else:
        body["sites"][0]["name"] = f"north, epsilon = {rng.choice([0.01, 0.1])}"


def _end_early(body: dict[str, Any], rng: random.Random) -> None:
    """Claim that the run ended after a few rounds."""
    if body["run"]["rounds"] == 1:
        raise KeyError("rounds")
    left = rng.randint(1, body["run"]["rounds"] - 1)
    for site in body["sites"]:
        site["charged_rounds"] = left
    body["ledger_head"] = None


def _cheaper_plan(body: dict[str, Any], rng: random.Random) -> None:
    """Claim that the missing rounds were planned with more noise, or not at all."""
    _end_early(body, rng)
    body["tables"].append(rng.choice([[1e6], [3.0, 1e6], []]))
    for site in body["sites"]:
        site[rng.choice(["planned_eta", "planned_scale"])] = len(body["tables"]) - 1


def _attempts(body: dict[str, Any], rng: random.Random) -> None:
    """Claim that later gradients are the first one again, of attempts that never took place."""
    sums = body["run"]["sums"]
    first = next((k for k, entry in enumerate(sums) if entry["part"] == "gradient"), None)
    if first is None or body["run"]["simulated"]:
        raise KeyError("sums")
    starts = [0, *sorted(rng.sample(range(first + 1, len(sums)), rng.randint(1, len(sums) - first - 1)))]
    everybody = list(range(body["run"]["sites"]))
    body["run"]["attempts"] = [
        {"id": f"{k:064x}", "members": everybody, "first": k + 1, "round": first + 1 if k else 1}
        for k in starts
    ]
    for k in starts[1:]:
        sums[k]["sensitivity"] = sums[first]["sensitivity"]


TRICKS: dict[str, Trick] = {
    "a user's loss in masked sums": _custom_loss,
    "free text that reads like a figure": _claim,
    "a run that ended early": _end_early,
    "a plan with more noise": _cheaper_plan,
    "attempts that never took place": _attempts,
}


def attack_trick(honest: Certificate, trick: Trick, edits: int, seed: int) -> int:
    """How many are refused; raises where one is believed that states less, with every figure made to fit."""
    rng, refused = random.Random(seed), 0
    for _ in range(edits):
        forged = json.loads(honest.to_json())
        try:
            trick(forged, rng)
        except KeyError:
            continue
        for text in (json.dumps(signed(forged)), recomputed(signed(forged))):
            found = None if text is None else accepted(text)
            refused += found is None
            if found is not None and (found.epsilon < honest.epsilon * (1 - 1e-8) or trick is _claim):
                raise AssertionError(f"believed: {canonical(forged)[:2000]}")
    return refused


def attack_model(model: dict[str, Any], folder: Path, edits: int, seed: int) -> int:
    """How many forged model files are refused: other values, width, loss, rounds or another digest."""
    rng, path, refused = random.Random(seed), folder / "forged.json", 0
    for _ in range(edits):
        forged = copy.deepcopy(model)
        for key in rng.sample(["coef", "intercept", "loss", "rounds", "released"], rng.randint(1, 2)):
            if key in ("coef", "intercept"):
                forged[key] = _other_values(forged[key], rng)
            elif key == "loss":
                forged[key] = rng.choice(["smooth-hinge", "softmax"])
            elif key == "rounds":
                forged["run"][key] += rng.choice([-1, 1, 10])
            else:
                _other_digest(forged["certificate"], rng)
                forged["certificate"] = json.loads(recomputed(signed(forged["certificate"])) or "{}")
        path.write_text(json.dumps(forged))
        try:
            load_model(path)
        except TaciturnError:
            refused += 1
        else:
            raise AssertionError(
                f"a model with a certificate that is not its own: {canonical(forged)[:2000]}"
            )
    return refused


def attack_result(found: Any, folder: Path, edits: int, seed: int) -> int:
    """How many forged results of a program are refused beside its certificate: other totals."""
    rng, refused = random.Random(seed), 0
    (folder / "certificate.json").write_text(found.certificate.to_json())
    totals = [value for total in found.totals for value in total.tolist()]
    for honest in (True, *[False] * edits):
        forged = list(totals)
        if not honest:
            at = rng.randrange(len(forged))
            forged[at : at + 1] = rng.choice([[], [forged[at] + 1e-9], [9.0], [forged[at], 0.0]])
        (folder / "result.json").write_text(json.dumps({"totals": forged}))
        try:
            verify_run(folder)
        except CertificateError:
            refused += 1
        else:
            if not honest:
                raise AssertionError(f"a result with a certificate that is not its own: {forged}")
    return refused


def _other_values(value: Any, rng: random.Random) -> Any:
    if isinstance(value, list):
        return [_other_values(entry, rng) for entry in value]
    return value + rng.choice([1e-9, 0.5, 9.0])


def _other_digest(body: dict[str, Any], rng: random.Random) -> None:
    key = rng.choice(["kind", "shape", "sha256"])
    edits = {
        "kind": rng.choice(["vectors", "counts"]),
        "shape": [1, rng.choice([1, 3, 5, 9])],
        "sha256": "0" * 64,
    }
    body["released"][key] = edits[key]


def attack(honest: Certificate, edits: int, seed: int) -> tuple[int, int]:
    """(refused, believed) of so many forgeries; raises where one that is believed states too little."""
    rng, body = random.Random(seed), json.loads(honest.to_json())
    refused = believed = 0
    for _ in range(edits):
        forged = edited(body, rng)
        try:
            text = json.dumps(forged, allow_nan=False)
        except ValueError:
            continue
        found = accepted(text)
        if found is None:
            refused += 1
            continue
        believed += 1
        fresh = Certificate.from_facts(*found.facts)
        if min(found.epsilon, fresh.epsilon) < honest.epsilon * (1 - 1e-8) and found.delta <= honest.delta:
            raise AssertionError(f"believed, and too small: {canonical(forged)[:2000]}")
    return refused, believed

"""A forger of certificates: edits facts at random, and makes the hash fit."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

from taciturn.canonical import canonical, digest
from taciturn.errors import CertificateError
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
        facts = stated.run, stated.sites, stated.budgets, stated.releases, stated.delta, stated.head
        return document.text(document.document(Certificate.from_facts(*facts)))
    except (CertificateError, ValueError, ArithmeticError, KeyError, TypeError):
        return None


def accepted(text: str) -> Certificate | None:
    """The certificate, if it is believed; an error of any other kind than ours is a fault."""
    try:
        certificate = Certificate.from_json(text)
        certificate.verify()
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
            name = rng.choice(["records", "largest", "dimension", "data_norm"])
            forged["run"][name] = rng.choice([1, 7, 10**6])
        text = recomputed(signed(forged))
        found = None if text is None else accepted(text)
        if found is None:
            refused += 1
        elif found.epsilon < honest.epsilon * (1 - 1e-8):
            raise AssertionError(f"believed, and too small: {canonical(forged)[:2000]}")
    return refused


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
        fresh = Certificate.from_facts(
            found.run, found.sites, found.budgets, found.releases, found.delta, found.head
        )
        if min(found.epsilon, fresh.epsilon) < honest.epsilon * (1 - 1e-8) and found.delta <= honest.delta:
            raise AssertionError(f"believed, and too small: {canonical(forged)[:2000]}")
    return refused, believed

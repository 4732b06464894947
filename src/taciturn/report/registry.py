"""Write a certificate as a YAML entry for the public registry of deployments of differential privacy.

The fields are those of the registry's template (github.com/opendp/deployments-registry-data). A certificate,
which states the privacy cost of a run, has no answer for some fields, such as the intended use. These fields
stay empty, and a comment says so.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from ..core.formatting import format_cost
from ..core.templates import fill
from ..privacy.certificate import assumptions
from ..privacy.certificate.certificate import Certificate
from ..privacy.ledger.pricing import LEAK
from .brief import NOT_COVERED, bound_on_rows, covers, holds_against, took_part


def registry_entry(certificate: Certificate, about: Mapping[str, Any] | None = None) -> str:
    """The entry as YAML.

    about : facts that are not in the certificate: `name`, `learnt` (the quantity that was learnt),
        `date` and `slug` (the short name of the entry).
    """
    told, run, who = dict(about or {}), certificate.run, took_part(certificate)
    pure, counting = certificate.accountant == "pure", run.loss.counting
    epsilon = {"epsilon": format_cost(certificate.epsilon)} if math.isfinite(certificate.epsilon) else {}
    whole, _, power = repr(certificate.delta).partition("e")  # YAML reads 1e-05 as text
    delta = {} if pure else {"delta": f"{float(whole)}e{power}" if power else whole}
    learnt = f" of {told['learnt']}" if told.get("learnt") else ""
    names = [{"data_curator_name": facts.name, "data_curator_type": ""} for facts in certificate.sites]
    rows = f"tables with {bound_on_rows(certificate)}"
    public = LEAK if LEAK in run.marks else "from public facts alone; every schedule was fixed before the run"
    central = run.where in ("process", "simulated", "planned", "folders")
    facts = {
        "slug": told.get("slug", ""),
        "name": told.get("name", ""),
        "curators": names,
        "description": f"Counts of the records of {who}."
        if counting
        else f"A linear model{learnt}, trained by {who}.",
        "product": "Summary statistics" if counting else "Machine learning model",
        "date": told.get("date", ""),
        "variant": "Pure DP" if pure else "Approximate DP",
        "domain": f"records counted in {run.dimension} tables with public cells" if counting else rows,
        "unit": f"{run.unit}-level",
        "unit_details": f"{run.relation}; the guarantee protects {covers(certificate)}",
        "units": certificate.units,
        "theorems": " ".join(assumptions.theorems(certificate)),
        "model": "Central" if central else "Distributed",
        "status": assumptions.status(certificate),
        "trust": f"The guarantee holds against {holds_against(certificate)}.",
        "actors": who,
        "release": "One release" if certificate.rounds == 1 else "Many releases",
        "rounds": f"{certificate.rounds} rounds, accounted for together",
        "preprocessing": public,
        "mechanisms": f"{run.noise} noise, method {run.method}, {run.rounds} rounds planned",
        "composition": f"accountant: {certificate.accountant or 'none'}",
        "not_covered": "Not covered: " + "; ".join(NOT_COVERED) + ".",
    }
    # texts and lists are written as JSON, which is valid YAML
    filled = {name: json.dumps(value, ensure_ascii=False) for name, value in facts.items()}
    numbers = ", ".join(f"{name}: {number}" for name, number in (epsilon | delta).items())
    return fill(__package__, "registry.yaml", parameters=f"{{ {numbers} }}", **filled)

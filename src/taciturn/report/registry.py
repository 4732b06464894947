"""A certificate as an entry of the public registry of deployments of differential privacy, in YAML.

The fields are those of the registry's own template (github.com/opendp/deployments-registry-data). What a
certificate cannot know, such as the name of the curator, is left empty, and a comment says so.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from ..privacy.accounting.shown import rounded_up
from ..privacy.certificate import grounds
from ..privacy.certificate.certificate import Certificate
from .brief import NOT_COVERED, covers, holds_against, took_part

_HEAD = (
    "# An entry for the registry of differential privacy deployments, made from a certificate of taciturn.\n"
    "# Empty fields are for you to fill in; check the values against the registry's schema first.\n"
)


def registry_entry(certificate: Certificate, about: Mapping[str, Any] | None = None) -> str:
    """The entry as YAML; `about` may say `name`, `learnt`, `date` and `features`."""
    told, run = dict(about or {}), certificate.run
    pure = certificate.accountant == "pure"
    parameters = {"epsilon": float(rounded_up(certificate.epsilon))} if _finite(certificate) else {}
    if not pure:
        parameters["delta"] = certificate.delta
    deployment = {
        "basic": {
            "name": told.get("name", ""),
            "data_curators": [
                {"data_curator_name": facts.name, "data_curator_type": ""} for facts in certificate.sites
            ],
            "description": _description(certificate, told),
            "intended_use": "",
            "data_product_type": "Summary statistics" if run.loss.counting else "Machine learning model",
            "data_product_region": "",
            "data_product_sector": "",
            "publication_date": told.get("date", ""),
        },
        "dp_variant": {
            "variant_name": "Pure DP" if pure else "Approximate DP",
            "data_domain": _domain(certificate),
            "unprotected_quantities": "numbers of records and of links of every site, sites, rounds, schema",
        },
        "privacy_loss": {
            "privacy_unit": f"{run.unit}-level",
            "privacy_unit_details": f"{run.relation}; the promise covers {covers(certificate)}",
            "number_of_privacy_units": certificate.units,
            "privacy_parameters": parameters,
            "privacy_parameters_details": "; ".join(grounds.theorems(certificate)),
        },
        "deployment_model": _model(certificate),
        "implementation": _implementation(certificate),
        "administrative": {"status": "Draft", "registry_authors": [""], "tier": 3},
    }
    body: dict[str, Any] = {"url_slug": told.get("slug", ""), "deployment": deployment}
    return _HEAD + "\n".join(_lines(body)) + "\n"


def _finite(certificate: Certificate) -> bool:
    return math.isfinite(certificate.epsilon)


def _domain(certificate: Certificate) -> str:
    run = certificate.run
    if run.loss.counting:
        return f"records counted in {run.dimension} tables with public cells"
    return f"tables with rows of norm at most {run.data_norm:g}, by public bounds"


def _description(certificate: Certificate, told: Mapping[str, Any]) -> str:
    what = told.get("learnt")
    if certificate.run.loss.counting:
        return f"Counts of the records of {took_part(certificate)}."
    return f"A linear model{f' of {what}' if what else ''}, trained by {took_part(certificate)}."


def _model(certificate: Certificate) -> dict[str, str]:
    run = certificate.run
    central = run.where in ("process", "simulated", "planned", "folders")
    return {
        "model_name": "Central" if central else "Distributed",
        "model_name_details": grounds.status(certificate),
        "trust_assumptions": f"It holds against {holds_against(certificate)}.",
        "actors": took_part(certificate),
        "release_type": "One release" if certificate.rounds == 1 else "Many releases",
        "release_type_details": f"{certificate.rounds} rounds, accounted for together",
        "data_source_type": "Static",
        "data_source_type_details": "the number of records of a site was fixed before the run",
        "access_type": "Non-interactive",
        "access_type_details": "nobody asks questions of the records: every round was fixed before the run",
    }


def _implementation(certificate: Certificate) -> dict[str, str]:
    run = certificate.run
    return {
        "preprocessing_and_hyperparameter_tuning": "by public facts alone; every schedule was fixed before",
        "mechanisms": f"{run.noise} noise, method {run.method}, {run.rounds} rounds planned",
        "composition": f"accountant: {certificate.accountant or 'none'}",
        "post_processing": "results are computed from what was released, at no further cost",
        "justification": "",
        "utility": "not measured on the records: such a score would be a release of its own",
        "additional_information": "Not covered: " + "; ".join(NOT_COVERED) + ".",
    }


def _lines(value: Any, depth: int = 0) -> list[str]:
    """A mapping as YAML. A text between double quotes is written as in JSON, which YAML reads alike."""
    pad, lines = "  " * depth, []
    for key, entry in value.items():
        if isinstance(entry, Mapping) and entry:
            lines += [f"{pad}{key}:", *_lines(entry, depth + 1)]
        elif isinstance(entry, list):
            lines.append(f"{pad}{key}:")
            for one in entry:
                if isinstance(one, Mapping):
                    inner = _lines(one, depth + 2)
                    lines += [f"{pad}  - {inner[0].lstrip()}", *inner[1:]]
                else:
                    lines.append(f"{pad}  - {_scalar(one)}")
        else:
            lines.append(f"{pad}{key}: {_scalar(entry)}")
    return lines


def _scalar(value: Any) -> str:
    if isinstance(value, float):
        text = repr(value)
        return text.replace("e", ".0e") if "e" in text and "." not in text else text
    return json.dumps(value, ensure_ascii=False)

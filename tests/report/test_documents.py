"""Documents from a certificate: an entry of the public registry, and a model card."""

from __future__ import annotations

from dataclasses import replace

import pytest

from taciturn.privacy.ledger.pricing import LEAK
from taciturn.report.card import answers, model_card
from taciturn.report.registry import registry_entry

SECTIONS = {
    "basic",
    "dp_variant",
    "privacy_loss",
    "deployment_model",
    "implementation",
    "administrative",
}


def test_an_entry_is_yaml_with_the_fields_of_the_registry(certificates):
    yaml = pytest.importorskip("yaml", reason="the extra `docs` is not installed")
    one = certificates["gaussian"]
    entry = yaml.safe_load(registry_entry(one, {"name": "A: model #1", "learnt": "yes"}))
    deployment = entry["deployment"]
    assert set(entry) == {"url_slug", "deployment"} and set(deployment) == SECTIONS
    assert deployment["basic"]["name"] == "A: model #1"
    assert deployment["basic"]["data_curators"][0]["data_curator_name"] == "site 0"
    loss = deployment["privacy_loss"]
    assert loss["privacy_parameters"]["epsilon"] >= one.epsilon
    assert loss["privacy_parameters"]["delta"] == 1e-5 and loss["privacy_unit"] == "record-level"
    assert loss["number_of_privacy_units"] == 135
    assert deployment["dp_variant"]["variant_name"] == "Approximate DP"
    assert deployment["deployment_model"]["release_type"] == "Many releases"


def test_missing_bound_is_shown_without_a_number(certificates):
    yaml = pytest.importorskip("yaml", reason="the extra `docs` is not installed")
    entry = yaml.safe_load(registry_entry(certificates["none"]))
    assert "epsilon" not in entry["deployment"]["privacy_loss"]["privacy_parameters"]


def test_documents_do_not_call_a_bound_public_that_was_taken_from_the_data(certificates):
    public = certificates["gaussian"]
    leaky = replace(public, run=replace(public.run, marks=(*public.run.marks, LEAK)))
    question = "Is the sensitivity bounded without the data?"
    assert answers(public)[question].startswith("Yes: rows of norm at most 1 (a public bound)")
    assert answers(leaky)[question].startswith(f"No: rows of norm at most 1 ({LEAK})")
    assert "from public facts alone" in registry_entry(public)
    assert "public bound" not in registry_entry(leaky) and "public facts" not in registry_entry(leaky)


def test_model_card_fills_in_facts_and_leaves_the_rest_to_its_publisher(certificates):
    one = certificates["norm"]
    card = model_card(one, {"name": "Readmission", "learnt": "readmitted"})
    assert card.startswith("# Readmission\n\nSIMULATED") and "to be filled in" in card
    said = answers(one)
    assert "can be replayed" in said["Is the randomness suitable?"]
    assert "one record replaced by another" in said["Which data sets are neighbours?"]
    assert "infinite" in answers(certificates["none"])["What are the privacy parameters?"]
    assert all(answer in card for answer in said.values())

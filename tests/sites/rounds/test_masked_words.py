"""Texts of a masked job: epsilon rounded up, and the assumed colluders."""

import json

import numpy as np
import pytest

from support.sitemasked import masked_network
from support.sitestore import charge_round, open_store
from taciturn.cli.app import run
from taciturn.core.canonical import canonical
from taciturn.core.errors import SiteError
from taciturn.core.formatting import format_cost
from taciturn.sites.files.site import load_site
from taciturn.sites.rounds.prepare import make_ready
from taciturn.sites.rounds.results import verify_statement, write_results
from taciturn.sites.watch.status import page, read_status
from taciturn.sites.wire.trust import load_trust


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """A site that has released all of its rounds."""
    ready = make_ready(load_site(masked_network(tmp_path_factory.mktemp("masked"))[0]))
    with open_store(ready) as store:
        for t in range(1, 7):
            charge_round(ready, store, t)
        certificate = write_results(ready, store, np.zeros(4))
    return ready, certificate


def said(certificate):
    worst = format_cost(certificate.epsilon_against(None))
    return f"if at most one other site colludes, {worst} if all other sites collude"


def test_status_names_the_assumed_colluders(ended):
    ready, certificate = ended
    status = read_status(ready.site)
    assert said(certificate) in status.lines()[1] and said(certificate) in page(status)
    assert f"epsilon {format_cost(certificate.epsilon)} spent" in status.lines()[1]
    facts = json.loads(status.to_json())
    assert facts["colluding"] == 1 and facts["epsilon_against"] == list(certificate.against)


def test_verify_rounds_up_and_names_the_assumed_colluders(ended, capsys):
    ready, certificate = ended
    authority = str(ready.site.path(ready.site.file.keys.authority))
    assert run(["site", "verify", str(ready.site.state / "statement.json"), "--authority", authority]) == 0
    shown = capsys.readouterr().out
    assert f"epsilon {format_cost(certificate.epsilon)} at delta 1e-05 {said(certificate)}" in shown


def test_statement_with_a_smaller_epsilon_against_more_colluders_is_refused(ended):
    ready, _ = ended
    path = ready.site.state / "statement.json"
    entries, text = json.loads(path.read_text()), path.read_text()
    facts = entries["statement"]
    facts["epsilon_against"][-1] = facts["epsilon_against"][0]
    entries["signature"] = ready.identity.sign(canonical(facts).encode()).hex()
    path.write_text(json.dumps(entries))
    try:
        with pytest.raises(SiteError, match="its `epsilon_against` differs"):
            verify_statement(path, load_trust(ready.site.path(ready.site.file.keys.authority)))
    finally:
        path.write_text(text)

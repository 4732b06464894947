"""Model, certificate and statement: complete, correct, and signed by the named site."""

import hashlib
import json
import time

import numpy as np
import pytest

from support.sitestore import charge_round, open_store
from support.sitework import sites
from taciturn.cli.app import run
from taciturn.core.canonical import canonical
from taciturn.core.errors import ExitCode, SiteError
from taciturn.privacy.certificate.certificate import Certificate
from taciturn.sites.files.keys import DAY, Authority, new_key, pem, signing_request
from taciturn.sites.rounds.prepare import make_ready
from taciturn.sites.rounds.results import SIGNED_AT, verify_statement, write_results
from taciturn.sites.wire.trust import Trust, load_trust


@pytest.fixture
def written(tmp_path):
    ready = make_ready(sites(tmp_path)[0])
    with open_store(ready) as store:
        for t in range(1, 6):
            charge_round(ready, store, t)
        write_results(ready, store, np.array([0.1, -0.2, 0.3, 1 / 3]))
    return ready.site, load_trust(ready.site.path(ready.site.file.keys.authority))


def test_the_model_is_plain_and_exact(written):
    model = json.loads((written[0].state / "model.json").read_text())
    assert model["coef"] == [[0.1, -0.2, 0.3, 1 / 3]] and model["features"] == ["x0", "x1", "x2", "x3"]
    assert model["run"]["sha256"] == written[0].job.hash.hex() and model["simulated"] is True


def test_the_certificate_follows_from_the_ledger(written):
    certificate = Certificate.from_json((written[0].state / "certificate.json").read_text())
    certificate.verify()
    assert certificate.rounds == 5 and certificate.run.simulated
    assert [facts.name for facts in certificate.sites] == ["site-0"]


def test_the_statement_is_signed_by_its_site(written):
    site, trust = written
    facts = verify_statement(site.state / "statement.json", trust)
    assert facts["site"] == "site-0" and facts["rounds"] == 5 and facts["simulated"] is True
    assert "eta" not in json.dumps(facts) and "penalty" not in json.dumps(facts)


def test_the_ledger_of_a_site_is_certified_at_the_delta_of_its_budget(tmp_path, capsys):
    ready = make_ready(sites(tmp_path, site={"budget": {"epsilon": 1000.0, "delta": 1e-7}})[0])
    with open_store(ready) as store:
        charge_round(ready, store, 1)
    assert run(["verify", str(ready.site.state / "site.sqlite"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["delta"] == 1e-7


@pytest.mark.parametrize("key", ["epsilon", "site", "rounds", "simulated", "delta"])
def test_edited_statement_is_rejected(written, key):
    site, trust = written
    path = site.state / "statement.json"
    entries = json.loads(path.read_text())
    entries["statement"][key] = "site-1" if key == "site" else 0.001
    path.write_text(json.dumps(entries))
    with pytest.raises(SiteError, match=r"statement\.json"):
        verify_statement(path, trust)


def test_the_files_beside_a_statement_are_the_ones_it_was_made_for(written):
    site, trust = written
    model = site.state / "model.json"
    model.write_text(model.read_text().replace("0.1", "0.2"))
    with pytest.raises(SiteError, match=r"model\.json has another hash than statement\.json states"):
        verify_statement(site.state / "statement.json", trust)


def test_statement_of_another_network_is_rejected(written):
    path = written[0].state / "statement.json"
    with pytest.raises(SiteError, match="authority"):
        verify_statement(path, Trust([Authority.throw_away().certificate]))
    path.write_text("{}")
    with pytest.raises(SiteError, match="not a signed statement"):
        verify_statement(path, written[1])


def resign(site, change, without=(), **options):
    """The site's statement with a change, signed by a certificate of the network's authority."""
    path = site.state / "statement.json"
    facts = json.loads(path.read_text())["statement"] | change
    facts = {name: value for name, value in facts.items() if name not in without}
    key = new_key(site.folder / "again.key")
    request = signing_request(key, site.name, ["127.0.0.1"])
    certificate = Authority.load(site.folder.parent).sign(request, **options)
    entries = {
        "statement": facts,
        "signature": key.sign(canonical(facts).encode()).hex(),
        "signed_by": pem(certificate).decode(),
    }
    path.write_text(json.dumps(entries))
    return path


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": 0.001},
        {"delta": 1e-9},
        {"rounds": 4},
        {"simulated": False},
        {"pure_epsilon": 0.1},
        {"ledger": {"rows": 1, "sha256": "00"}},
    ],
)
def test_a_statement_says_what_its_certificate_says(written, change):
    site, trust = written
    with pytest.raises(
        SiteError, match=f"its `{next(iter(change))}` differs from the one in certificate.json"
    ):
        verify_statement(resign(site, change), trust)


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": "a little"},
        {"epsilon": None},
        {"epsilon": "0.001"},
        {"epsilon": "\u0661.\u0660"},
        {"epsilon": True},
        {"epsilon": -1},
        {"epsilon": 10**400},
        {"delta": 3},
        {"delta": "1e-5"},
        {"delta": True},
        {"rounds": "many"},
        {"rounds": "3"},
        {"rounds": 2.5},
        {"rounds": -1},
        {"rounds": True},
        {"pure_epsilon": "x"},
        {"released": ["1"]},
        {"released": []},
        {"at_least": 1},
        {"colluding": True},
        {"epsilon_against": "1"},
        {"ended": {"round": 6, "reason": "", "sites": ["site-0"]}},
        {"ended": {"round": 3, "reason": "", "sites": ["site-1"]}},
        {"ended": "early"},
        {"simulated": 1},
        {"job": "trial"},
        {"job": {"name": 3, "sha256": "00"}},
        {"files": ["model.json"]},
        {"files": {}},
        {"files": {"model.json": 1, "certificate.json": 2}},
        {"files": {"./certificate.json": "00", "model.json": "00"}},
        {"format": "taciturn-stopped/1"},
        {"format": "taciturn-statement/9"},
        {"signed_at": 7},
    ],
)
def test_invalid_signed_statement_gives_a_one_line_error(written, change):
    """The member has the key of a site and can sign anything."""
    site, trust = written
    with pytest.raises(SiteError, match="not a signed statement"):
        verify_statement(resign(site, change), trust)


STOPPED = {
    "format": "taciturn-stopped/1",
    "because_of": "site-1",
    "released": [1, 2],
    "at_least": True,
    "epsilon": 1.0,
    "files": {},
}
WHOLE_RUN = ("rounds", "pure_epsilon", "ledger")  # what only a statement of a whole run says


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": "1.0"},
        {"epsilon": "1_0"},
        {"epsilon": True},
        {"delta": "0.1"},
        {"delta": 1},
        {"released": "abc"},
        {"released": [0]},
        {"released": [True]},
        {"released": {"1": 1}},
        {"at_least": "yes"},
        {"rounds": 3},
        {"ended": {}},
    ],
)
def test_invalid_signed_release_counts_give_a_one_line_error(written, capsys, change):
    site, trust = written
    path = resign(site, STOPPED, without=WHOLE_RUN)
    assert verify_statement(path, trust)["released"] == [1, 2]
    (site.folder / "again.key").unlink()
    path = resign(site, change)
    assert verify(site) == ExitCode.WRONG_FILES
    assert capsys.readouterr().err == f"taciturn: {path} is not a signed statement.\n"


def verify(site):
    """What `site verify` ends with."""
    command = ["site", "verify", str(site.state / "statement.json")]
    return run([*command, "--authority", str(site.path(site.file.keys.authority))])


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("rounds", lambda model: model["run"].update(rounds=40)),
        ("simulated", lambda model: model.update(simulated=False)),
        ("delta", lambda model: model["settings"].update(delta=1e-9)),
    ],
)
def test_a_statement_says_what_its_model_says(written, key, change):
    """Both are signed: a model of forty rounds beside the cost of one round."""
    site, trust = written
    rewrite(site, "model.json", change)
    with pytest.raises(SiteError, match=f"its `{key}` differs from the one in model.json"):
        verify_statement(site.state / "statement.json", trust)


def test_a_statement_of_an_early_end_is_of_the_round_and_the_sites_of_its_model(written):
    site, trust = written
    ended = {"round": 3, "reason": "all agreed", "sites": ["site-0", "site-1"]}
    with pytest.raises(SiteError, match=r"its `rounds` differs from the one in model\.json"):
        verify_statement(resign(site, {"ended": ended}), trust)
    (site.folder / "again.key").unlink()
    rewrite(site, "model.json", lambda model: model["run"].update(rounds=3), {"ended": ended})
    with pytest.raises(SiteError, match=r"its `sites` differs from the one in model\.json"):
        verify_statement(site.state / "statement.json", trust)
    (site.folder / "again.key").unlink()
    rewrite(site, "model.json", lambda model: model["run"].update(sites=ended["sites"]))
    assert verify_statement(site.state / "statement.json", trust)["ended"] == ended


@pytest.mark.parametrize(
    "change",
    [
        lambda certificate: certificate.update(epsilon=0.001),
        lambda certificate: certificate.pop("run"),
        lambda certificate: certificate.update(format="x"),
    ],
)
def test_a_broken_certificate_beside_a_statement_is_a_wrong_file(written, capsys, change):
    site, _ = written
    rewrite(site, "certificate.json", change)
    assert verify(site) == ExitCode.WRONG_FILES
    said = capsys.readouterr().err
    assert said.startswith(f"taciturn: {site.state / 'certificate.json'}: ") and said.count("\n") == 1


def test_statement_claims_masks_only_if_its_certificate_does(written):
    site, trust = written
    with pytest.raises(SiteError, match="its `colluding` differs from the one in certificate"):
        verify_statement(resign(site, {"colluding": 1, "epsilon_against": [1.0]}), trust)


def rewrite(site, name, change, more=None):
    """A file beside the statement with a change, and a statement that is signed for it."""
    path = site.state / name
    entries = json.loads(path.read_text())
    change(entries)
    path.write_text(json.dumps(entries))
    files = json.loads((site.state / "statement.json").read_text())["statement"]["files"]
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    resign(site, {"files": files | {name: digest}} | (more or {}))


def test_a_statement_is_of_the_job_of_its_model(written):
    site, trust = written
    with pytest.raises(SiteError, match="the result of another job"):
        verify_statement(resign(site, {"job": {"name": "trial", "sha256": "00"}}), trust)


def test_certificate_validity_is_checked_at_the_signing_time(written):
    """A certificate that has expired since then is valid; one that began later is not."""
    site, trust = written
    path = resign(site, {"signed_at": two_days_ago()}, days=-1, starts=-3 * DAY)
    assert verify_statement(path, trust)["site"] == "site-0"
    (site.folder / "again.key").unlink()
    with pytest.raises(SiteError, match="not valid yet"):
        verify_statement(resign(site, {"signed_at": two_days_ago()}), trust)


def test_statement_dated_in_the_future_is_rejected(written):
    site, trust = written
    later = time.strftime(SIGNED_AT, time.gmtime(time.time() + 3 * 86400))
    with pytest.raises(SiteError, match="in the future"):
        verify_statement(resign(site, {"signed_at": later}), trust)


def test_links_and_devices_beside_a_statement_are_not_read(written, capsys):
    """A folder from elsewhere may contain a link to an endless device."""
    site, _ = written
    (site.state / "model.json").unlink()
    (site.state / "model.json").symlink_to("/dev/zero")
    command = ["site", "verify", str(site.state / "statement.json")]
    authority = ["--authority", str(site.path(site.file.keys.authority))]
    assert run([*command, *authority]) == 0
    out = capsys.readouterr().out
    assert "certificate.json agrees" in out and "model.json is not in the same folder" in out
    assert run(["site", "verify", "--proof", "/dev/zero", *authority]) == ExitCode.WRONG_FILES
    assert "not a file" in capsys.readouterr().err


def two_days_ago():
    return time.strftime(SIGNED_AT, time.gmtime(time.time() - 2 * 86400))

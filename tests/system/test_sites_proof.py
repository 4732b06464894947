"""Equivocation: every site names the signer with a proof that anyone can check, and there is no model."""

import json

import pytest

from support.siteprocess import Network
from support.sitering import KINDS
from support.sitework import network
from taciturn.cli.app import run
from taciturn.core.errors import ExitCode
from taciturn.sites.files.site import load_site
from taciturn.sites.rounds.results import verify_statement
from taciturn.sites.wire.trust import load_trust

CAUGHT = 4  # the exit code


def authority_of(site):
    return str(site.path(site.file.keys.authority))


@pytest.mark.parametrize(("size", "kind"), [(5, "penalty"), (5, "masked"), (20, "masked")])
def test_equivocation_between_processes_ends_the_run_of_every_site_with_a_proof(
    tmp_path, ring_of, capsys, size, kind
):
    """Site 1 signs two frames of one round; most sites have no link to it. Both frames form the proof."""
    ring = ring_of(size, kind, rounds=4, site={"patience": 60.0})
    ring.start(1, lie="twice", t=2)
    ring.start(*(i for i in range(size) if i != 1))
    honest = [i for i in range(size) if i != 1]
    assert [ring.running[i].wait() for i in honest] == [CAUGHT] * (size - 1), ring.logs()
    for i in honest:
        site = ring.sites[i]
        (proof,) = site.state.glob("proof-*.json")
        assert json.loads(proof.read_text())["site"] == "site-1"
        assert "site-1 signed two messages (frames)" in ring.text(i)
        assert not (site.state / "model.json").exists()
        assert run(["site", "verify", "--proof", str(proof), "--authority", authority_of(site)]) == 0
        assert "site-1 signed two messages of" in capsys.readouterr().out
        said = verify_statement(site.state / "stopped.json", load_trust(site.path(site.file.keys.authority)))
        assert said["because_of"] == "site-1" and said["released"] == ring.charged()[i]


@KINDS
def test_equivocation_found_at_the_end_leaves_no_model(ring_of, kind):
    """Site 1 contradicts itself when its neighbours have stored their results and wait for it to leave."""
    ring = ring_of(5, kind, rounds=3)
    ring.start(1, lie="late", t=3, stay=2.0)
    ring.start(0, 2, 3, 4, stay=2.0)
    codes = ring.codes()
    assert CAUGHT in (codes[0], codes[2]) and set(codes) <= {CAUGHT, 0}, ring.logs()
    for code, site in zip(codes, ring.sites, strict=True):
        left = {path.name for path in site.state.glob("*.json")}
        assert left >= ({"stopped.json"} if code else {"model.json", "statement.json"})
        assert code == 0 or not left & {"model.json", "certificate.json", "statement.json"}


def test_invalid_proof_is_rejected(tmp_path, capsys):
    paths = network(tmp_path, [(0, 1)])
    running = Network(paths, {0: {"stay": 3.0}, 1: {"lie": "twice", "t": 1, "stay": 3.0}})
    assert running.running[0].wait() == CAUGHT, running.logs()
    running.stop()
    (path,) = load_site(paths[0]).state.glob("proof-*.json")
    facts = json.loads(path.read_text())
    flipped = facts["frames"][1][:299] + ("0" if facts["frames"][1][299] != "0" else "1")
    changed = [
        facts | {"site": "site-0"},
        facts | {"frames": [facts["frames"][0]] * 2},
        facts | {"frames": [facts["frames"][0], flipped + facts["frames"][1][300:]]},
        {"frames": 3},
    ]
    for k, entries in enumerate(changed):
        other = tmp_path / f"{k}.json"
        other.write_text(json.dumps(entries))
        assert (
            run(["site", "verify", "--proof", str(other), "--authority", str(tmp_path / "authority.pem")])
            == ExitCode.WRONG_FILES
        )
        assert "proves nothing" in (said := capsys.readouterr().err) or "not a proof" in said

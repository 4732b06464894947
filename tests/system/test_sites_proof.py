"""Who tells two stories is named by everybody, with a proof that anyone can check, and there is no model."""

import json

import pytest

from support.siteend import charged_rounds
from support.siteprocess import Network
from support.sitering import KINDS
from support.sitework import network
from taciturn.cli.app import run
from taciturn.errors import ExitCode
from taciturn.sites.files.site import load_site
from taciturn.sites.rounds.evidence import cost_of
from taciturn.sites.rounds.prepare import make_ready
from taciturn.sites.rounds.results import verify_statement
from taciturn.sites.wire.trust import load_trust

CAUGHT = 4  # the exit code
CASES = [
    (5, "penalty", "twice", 2),
    (5, "penalty", "two stories", 2),  # in a masked job a frame goes round before the second can be told
    (5, "penalty", "chain", 3),
    (5, "masked", "twice", 2),
    (5, "masked", "chain", 2),
    (5, "masked", "chain", 3),
    (20, "penalty", "two stories", 2),
    (20, "penalty", "chain", 3),
    (20, "masked", "twice", 2),
]


@pytest.mark.parametrize(("size", "kind", "lie", "t"), CASES)
def test_equivocation_ends_the_run_for_everybody_with_a_proof(tmp_path, ring_of, capsys, size, kind, lie, t):
    """Site 1 signs two frames of one round, or one that follows from another; most never talk to it."""
    ring = ring_of(size, kind, rounds=3)
    ring.start(1, lie=lie, t=t)
    ring.start(*(i for i in range(size) if i != 1))
    assert ring.codes() == [CAUGHT] * size, ring.logs()
    for i, site in enumerate(ring.sites):
        (proof,) = site.state.glob("proof-*.json")
        assert json.loads(proof.read_text())["site"] == "site-1"
        assert "site-1 signed two frames" in ring.text(i)
        assert not (site.state / "model.json").exists()
        assert run(["site", "verify", "--proof", str(proof), "--authority", authority_of(site)]) == 0
        assert "site-1 signed both" in capsys.readouterr().out
    check_counted(ring, t, twice=lie == "twice")


def authority_of(site):
    return str(site.path(site.file.keys.authority))


def check_counted(ring, t, *, twice):
    """What each site signs at such an end is what it released; both frames count against the liar."""
    for i, site in enumerate(ring.sites):
        said = verify_statement(site.state / "stopped.json", load_trust(site.path(site.file.keys.authority)))
        charged, ready = charged_rounds(site), make_ready(site)
        counted = said["released"]
        assert set(counted) == set(charged) and said["epsilon"] == cost_of(ready, counted)
        if i == 1 and twice:
            assert counted.count(t) == 2 and cost_of(ready, counted) > cost_of(ready, charged)
        elif i != 1:
            assert counted == charged


@KINDS
def test_a_contradiction_that_comes_to_light_at_the_very_end_leaves_no_model_either(ring_of, kind):
    """The neighbours of site 1 wait for it to leave, their results are on disk, and it tells two stories."""
    ring = ring_of(5, kind, rounds=3)
    ring.start(1, lie="late", t=3, stay=2.0)
    ring.start(0, 2, 3, 4, stay=2.0)
    codes = ring.codes()
    assert [codes[0], codes[2]] == [CAUGHT] * 2 and set(codes) <= {CAUGHT, 0}, ring.logs()
    assert all("done: epsilon" in ring.text(i) for i in (0, 2))
    for code, site in zip(codes, ring.sites, strict=True):
        left = {path.name for path in site.state.glob("*.json")}
        assert left >= ({"stopped.json"} if code else {"model.json", "statement.json"})
        assert code == 0 or not left & {"model.json", "certificate.json", "statement.json"}


def test_a_site_that_holds_a_proof_does_not_start_again(tmp_path):
    paths, short = network(tmp_path, [(0, 1)]), {"stay": 3.0}
    running = Network(paths, {0: short, 1: {"lie": "twice", "t": 2} | short})
    assert [entry.wait() for entry in running.running] == [CAUGHT] * 2, running.logs()
    again = Network(paths, {0: short, 1: short})
    assert [entry.wait() for entry in again.running] == [CAUGHT] * 2, again.logs()


def test_a_proof_that_proves_nothing_is_told_so(tmp_path, capsys):
    paths = network(tmp_path, [(0, 1)])
    running = Network(paths, {1: {"lie": "twice", "t": 1}})
    assert [entry.wait() for entry in running.running] == [CAUGHT] * 2, running.logs()
    (path,) = load_site(paths[0]).state.glob("proof-*.json")
    facts = json.loads(path.read_text())
    changed = [
        facts | {"site": "site-0"},
        facts | {"frames": [facts["frames"][0]] * 2},
        facts
        | {
            "frames": [
                facts["frames"][0],
                ("0" if facts["frames"][1][300] != "0" else "1").join(
                    [facts["frames"][1][:300], facts["frames"][1][301:]]
                ),
            ]
        },
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

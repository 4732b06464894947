"""Who tells two stories is named by everybody, with a proof that anyone can check, and there is no model."""

import json

import pytest

from support.siteprocess import Network
from support.sitework import network
from taciturn.cli.app import run
from taciturn.sites.files.site import load_site

CAUGHT = 4  # the exit code
RING_OF_4 = [(0, 1), (1, 2), (2, 3), (3, 0)]


@pytest.mark.parametrize(("lie", "t"), [("twice", 2), ("two stories", 2), ("two stories", 5)])
def test_equivocation_ends_the_run_for_everybody_with_a_proof(tmp_path, capsys, lie, t):
    """Site 1 signs two frames of one round; site 3 never talks to it. In the last round, too."""
    paths = network(tmp_path, RING_OF_4)
    running = Network(paths, {1: {"lie": lie, "t": t}})
    codes = [entry.wait() for entry in running.running]
    assert codes == [CAUGHT] * 4, running.logs()
    for path, entry in zip(paths, running.running, strict=True):
        state = load_site(path).state
        (proof,) = state.glob("proof-*.json")
        assert json.loads(proof.read_text())["site"] == "site-1"
        assert "site-1 signed two frames" in entry.text()
        assert not (state / "model.json").exists() and (state / "stopped.json").exists()
        assert (
            run(["site", "verify", "--proof", str(proof), "--authority", str(tmp_path / "authority.pem")])
            == 0
        )
        assert "site-1 signed both" in capsys.readouterr().out
    said = json.loads((load_site(paths[1]).state / "stopped.json").read_text())["statement"]
    assert said["released"].count(t) == 2 or lie != "twice"  # both frames count against its own budget


def test_a_site_that_holds_a_proof_does_not_start_again(tmp_path):
    paths = network(tmp_path, [(0, 1)], site={"patience": 3.0})
    running = Network(paths, {1: {"lie": "twice", "t": 2}})
    assert [entry.wait() for entry in running.running] == [CAUGHT] * 2, running.logs()
    again = Network(paths)
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
            == 1
        )
        assert "proves nothing" in (said := capsys.readouterr().err) or "not a proof" in said

"""A run that ends before its last round: one model for all who are left, and certificates that are true."""

import json
import subprocess
import sys

import numpy as np
import pytest

from support.linkcut import until
from support.siteend import charged_rounds, check_end, in_process, rounds_of
from support.sitemasked import SITE as MASKED
from support.sitemasked import masked_network
from support.siteprocess import Command, SiteProcess
from support.sitework import PATH_OF_3, network
from taciturn.cli.app import run
from taciturn.errors import ExitCode
from taciturn.privacy.certificate.certificate import Certificate
from taciturn.sites.files.site import load_site
from taciturn.sites.rounds.driver import open_store
from taciturn.sites.rounds.prepare import make_ready
from taciturn.sites.rounds.results import verify_statement
from taciturn.sites.wire.frame import to_vector
from taciturn.sites.wire.trust import load_trust


def poorer(path, epsilon):
    """Give a site a smaller budget; how many rounds it pays for."""
    text = path.read_text()
    old = next(line for line in text.splitlines() if line.startswith("budget = "))
    path.write_text(text.replace(old, f"budget = {{ epsilon = {epsilon} }}"))
    return make_ready(load_site(path)).affordable()


def start_until_spent(paths, poor, paid):
    """Start all; the budget of the site `poor` ends when everybody has completed what it paid for."""
    running = [SiteProcess(path, {"hold": paid + 1} if i == poor else None) for i, path in enumerate(paths)]
    let_spend(paths, poor, paid)
    return running


def let_spend(paths, poor, paid):
    """Or who waits for somebody slow would hear of it a round earlier, and it would be another end."""
    others = [load_site(path) for i, path in enumerate(paths) if i != poor]
    until(lambda: all(rounds_of(site) > paid for site in others))
    (paths[poor].parent / "go").touch()


def check_early(sites, last, folder):
    """One model, of round `last`; and each certificate counts what its site has really released."""
    models = {(site.state / "model.json").read_bytes() for site in sites}
    assert len(models) == 1
    model = json.loads(models.pop())
    assert model["run"]["rounds"] == last and model["run"]["sites"] == [site.name for site in sites]
    for site in sites:
        facts = verify_statement(site.state / "statement.json", load_trust(folder / "authority.pem"))
        certificate = Certificate.from_json((site.state / "certificate.json").read_text())
        certificate.verify()
        assert facts["ended"]["round"] == last and facts["rounds"] == certificate.rounds
        assert certificate.rounds == len(charged_rounds(site)) >= last
    return np.array(model["coef"][0])


def vectors_of(sites, t):
    """What each site released in round t."""
    found = []
    for site in sites:
        ready = make_ready(site)
        with open_store(ready) as store:
            found.append(to_vector(ready.open_frame(store.frame(t)).message))
    return np.stack(found)


def test_a_budget_that_is_spent_ends_the_run_for_all_with_a_model_and_a_reason(tmp_path):
    paths = network(tmp_path, PATH_OF_3)
    whole = make_ready(load_site(paths[2])).forecast().epsilon
    paid = poorer(paths[2], 0.6 * whole)
    assert 1 <= paid < 5
    running = start_until_spent(paths, 2, paid)
    codes = [entry.wait() for entry in running]
    assert codes == [0, 0, ExitCode.BUDGET_SPENT], "\n".join(entry.text() for entry in running)
    sites = [load_site(path) for path in paths]
    coef = check_early(sites, paid, tmp_path)
    assert charged_rounds(sites[2]) == list(range(1, paid + 1))
    assert coef.tobytes() == vectors_of(sites, paid).mean(axis=0).tobytes()
    reason = json.loads((sites[0].state / "statement.json").read_text())["statement"]["ended"]["reason"]
    assert reason == "the budget of site-2 does not pay for another round"
    assert f"the run ends after round {paid} of 5: {reason}" in running[0].text()
    again = SiteProcess(paths[0])
    assert again.wait() == 0  # it stays ended, and needs nobody for that


def test_those_who_are_left_agree_to_finish_without_one(tmp_path):
    paths = network(tmp_path)
    running = [SiteProcess(paths[0]), SiteProcess(paths[1]), SiteProcess(paths[2], {"hold": 3})]
    sites = [load_site(path) for path in paths]
    until(lambda: [rounds_of(site) for site in sites] == [3, 3, 2])
    for entry in running:
        entry.kill()
    before = [charged_rounds(site) for site in sites]
    words = [sys.executable, "-m", "taciturn", "site", "finish"]
    ended = [
        subprocess.Popen([*words, str(path), "--without", "site-2"], stdout=subprocess.PIPE, text=True)
        for path in paths[:2]
    ]
    said = [process.communicate(timeout=300)[0] for process in ended]
    assert [process.returncode for process in ended] == [0, 0]
    assert "ended early: all that are left agreed to finish, without site-2" in said[0]
    coef = check_early(sites[:2], 2, tmp_path)
    assert coef.tobytes() == vectors_of(sites[:2], 2).mean(axis=0).tobytes()
    assert [charged_rounds(site) for site in sites] == before  # nothing more was released
    assert not (sites[2].state / "model.json").exists()


def test_a_masked_run_ends_with_the_model_of_its_last_complete_round(tmp_path):
    ring = [(0, 1), (1, 2), (0, 2)]
    paths = masked_network(tmp_path, ring, job={"seed": None})
    paid = poorer(paths[1], 0.7 * MASKED["budget"]["epsilon"])
    assert 2 <= paid < 6
    running = start_until_spent(paths, 1, paid)
    codes = [entry.wait() for entry in running]
    assert codes == [0, ExitCode.BUDGET_SPENT, 0], "\n".join(entry.text() for entry in running)
    sites = [load_site(path) for path in paths]
    coef = check_early(sites, paid, tmp_path)
    for site in sites:
        ready = make_ready(site)
        with open_store(ready) as store:
            assert store.end_after(paid).tobytes() == coef.tobytes()
            assert store._open().execute("SELECT count(*) FROM masks").fetchone() == (0,)
    assert charged_rounds(sites[1]) == list(range(1, paid + 1))


LIES = [("penalty", "another last"), ("penalty", "no round complete"), ("masked", "no round complete")]


@pytest.mark.parametrize(("kind", "lie"), LIES)
def test_who_says_at_an_early_end_what_its_frames_belie_ends_it_for_everybody(ring_of, capsys, kind, lie):
    """Site 1 shows another vector than it sent, or claims fewer rounds; its neighbours hold its frames."""
    ring, paid = start_ring(ring_of, kind, lie=lie)
    assert ring.codes() == [ExitCode.CONTRADICTION] * 5, ring.logs()
    for i, site in enumerate(ring.sites):
        (proof,) = site.state.glob("proof-site-1-*.json")
        assert lie != "another last" or proof.name == f"proof-site-1-{paid}.json"
        assert "site-1 signed two frames" in ring.text(i)
        assert not (site.state / "model.json").exists()
        authority = site.path(site.file.keys.authority)
        assert run(["site", "verify", "--proof", str(proof), "--authority", str(authority)]) == 0
        assert "site-1 signed both" in capsys.readouterr().out
        said = verify_statement(site.state / "stopped.json", load_trust(authority))
        assert set(said["released"]) == set(charged_rounds(site))
        assert i == 1 or said["released"] == charged_rounds(site)
    assert len(said := released_by(ring.sites[1])) > len(set(said))  # both stories count against the liar


def start_ring(ring_of, kind, **fault):
    """Five sites; the budget of site 3 ends the run, and site 1 is not as it should be."""
    ring = ring_of(5, kind, rounds=6)
    budget = MASKED["budget"]["epsilon"] if kind == "masked" else make_ready(ring.sites[3]).forecast().epsilon
    paid = poorer(ring.paths[3], 0.7 * budget)
    assert 2 <= paid < 6
    ring.start(1, **fault)
    ring.start(3, hold=paid + 1)
    ring.start(0, 2, 4)
    let_spend(ring.paths, 3, paid)
    return ring, paid


def released_by(site):
    return json.loads((site.state / "stopped.json").read_text())["statement"]["released"]


def test_who_shows_a_vector_of_another_round_is_named_and_there_is_no_model(ring_of):
    ring, paid = start_ring(ring_of, "penalty", lie="last of another round")
    codes = ring.codes()
    assert [codes[i] for i in (0, 2, 4)] == [ExitCode.NEIGHBOUR] * 3, ring.logs()
    for i in (0, 2, 3, 4):
        assert f"site-1 signed a last vector that is not of round {paid}" in ring.text(i)
    assert not any((site.state / "model.json").exists() for site in ring.sites)


def test_a_last_vector_at_the_edge_is_said_by_those_who_did_not_hear_its_site_before(ring_of):
    ring, paid = start_ring(ring_of, "penalty", edge=64.0)
    assert ring.codes() == [0, 0, 0, ExitCode.BUDGET_SPENT, 0], ring.logs()
    words = "site-1 sends values at the edge of the job's range of +-64 since round"
    said = [ring.text(i).count(f"{words} {paid if i in (3, 4) else 1}:") for i in range(5)]
    assert said == [1, 0, 1, 1, 1]
    assert [ring.text(i).count(words) for i in range(5)] == said  # once for each


def test_a_site_that_waits_is_told_who_wants_to_finish_and_how_to_agree(tmp_path):
    paths = network(tmp_path, [(0, 1)])
    running = [SiteProcess(paths[0]), SiteProcess(paths[1], {"hold": 3})]
    sites = [load_site(path) for path in paths]
    until(lambda: [rounds_of(site) for site in sites] == [3, 2])
    running[1].kill()
    ended = [Command("site", "finish", str(paths[1]), path=paths[1])]
    words = "site-1 wants to finish the run here, and releases nothing more: to agree, stop this site and run"
    until(lambda: f"{words} taciturn site finish" in running[0].text())
    running[0].kill()
    ended.append(Command("site", "finish", str(paths[0]), path=paths[0]))
    assert [command.wait()[0] for command in ended] == [0, 0]
    check_early(sites, 1, tmp_path)  # site 1 had not stored what it heard in round 2


def test_an_end_before_the_first_round_states_what_was_spent_and_has_no_model(tmp_path):
    paths = network(tmp_path, [(0, 1)])
    assert poorer(paths[1], 0.01) == 0
    running = start_until_spent(paths, 1, 0)
    assert [entry.wait() for entry in running] == [ExitCode.RUN_OVER, ExitCode.BUDGET_SPENT]
    site = load_site(paths[0])
    assert "the run ends before there is a model" in running[0].text()
    assert not (site.state / "model.json").exists()
    said = verify_statement(site.state / "stopped.json", load_trust(tmp_path / "authority.pem"))
    assert said["released"] == charged_rounds(site) == [1]


def test_whoever_ends_without_a_model_stays_until_the_others_have_heard_why(tmp_path):
    """The site between the two others says nothing unasked: what it holds must be there when they ask."""
    paths = network(tmp_path, PATH_OF_3)
    assert poorer(paths[1], 0.01) == 0
    running = [SiteProcess(path, {"mute": True} if i == 1 else None) for i, path in enumerate(paths)]
    codes = [entry.wait() for entry in running]
    logs = "\n".join(entry.text() for entry in running)
    assert codes == [ExitCode.RUN_OVER, ExitCode.BUDGET_SPENT, ExitCode.RUN_OVER], logs
    assert "silent since" not in logs and "may still need this site" not in logs


def test_a_site_that_would_finish_while_others_have_completed_the_run_completes_it(tmp_path):
    """They hold its last frame, have said 'done' and will never say 'finish'."""
    paths = network(tmp_path, PATH_OF_3)
    running = [SiteProcess(path) for path in paths[:2]]
    assert SiteProcess(paths[2], {"point": "after the send", "t": 5}).wait() < 0
    code, out, err = Command("site", "finish", str(paths[2]), path=paths[2]).wait()
    assert code == 0, err
    assert "has completed the run, so this site does too" in err
    assert "ended early" not in out
    assert [entry.wait() for entry in running] == [0, 0]
    check_end(paths)


FAULTS = (  # of each site, one after the other: steps 1 to 4 are finish, last, done and left
    (("said", 1), ("heard", 2), ("results", 0)),
    (("heard", 1), ("said", 3), ("said", 4)),
    (("said", 2), ("heard", 3), ("heard", 4)),
)


@pytest.mark.parametrize("kind", ["penalty", "masked"])
def test_killed_at_every_point_of_an_early_end_it_comes_to_the_same_end(tmp_path, kind):
    make, budget = (network, None) if kind == "penalty" else (masked_network, MASKED["budget"]["epsilon"])
    paths = make(tmp_path, PATH_OF_3)
    paid = poorer(paths[2], 0.65 * (budget or make_ready(load_site(paths[2])).forecast().epsilon))
    assert 2 <= paid < 5
    codes, left = {}, [[{"ending": ending, "t": t} for ending, t in each] for each in FAULTS]
    left[2][0]["hold"] = paid + 1
    running = dict(enumerate(SiteProcess(path, left[i].pop(0)) for i, path in enumerate(paths)))
    let_spend(paths, 2, paid)
    while running:
        for i, entry in list(running.items()):
            entry.process.join(0.02)
            code = entry.process.exitcode
            if code is not None and code < 0:
                running[i] = SiteProcess(paths[i], left[i].pop(0) if left[i] else None)
            elif code is not None:
                codes[i] = code
                del running[i]
    logs = "\n".join((path.parent / "log.txt").read_text() for path in paths)
    assert codes == {0: 0, 1: 0, 2: ExitCode.BUDGET_SPENT}, logs
    assert left == [[], [], []] and "silent since" not in logs
    sites = [load_site(path) for path in paths]
    coef = check_early(sites, paid, tmp_path)
    if kind == "penalty":
        assert coef.tobytes() == in_process(sites)[paid - 1].mean(axis=0).tobytes()
    else:
        with open_store(make_ready(sites[0])) as store:
            assert store.end_after(paid).tobytes() == coef.tobytes()


@pytest.mark.parametrize(("without", "line"), [("nobody", "must name another site"), ("site-1", "no way to")])
def test_who_is_left_must_be_able_to_agree(tmp_path, without, line):
    path = network(tmp_path, PATH_OF_3)[0]
    code, _, err = Command("site", "finish", str(path), "--without", without, path=path).wait()
    assert code == 1 and line in err and err.count("\n") == 1

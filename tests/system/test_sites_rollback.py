"""A state folder that is lost, put back or copied releases nothing a second time."""

import shutil
import sqlite3
import time
from contextlib import closing

import pytest

from support.linkcut import until
from support.siteend import charged_rounds, check_end, rounds_of
from support.sitework import PATH_OF_3, network
from taciturn.sites.files.site import load_site
from taciturn.sites.rounds.evidence import cost_of
from taciturn.sites.rounds.prepare import make_ready
from taciturn.sites.rounds.results import verify_statement
from taciturn.sites.trial.rehearsal import free_ports
from taciturn.sites.wire.trust import load_trust

REAL = {"job": {"seed": None}, "site": {"output_noise": {"kind": "gaussian", "std": 1e-3}}}
LOST = 3  # the exit code


def frames(site, table="outbox", who=None):
    """Round -> bytes of what a site said, or heard of another."""
    where = "" if who is None else f" AND sender = {who}"
    with closing(sqlite3.connect(f"file:{site.database}?mode=ro", uri=True)) as db:
        return dict(db.execute(f"SELECT t, frame FROM {table} WHERE t > 0{where}").fetchall())


def outbox(site):
    """How many frames a site has ready to be sent."""
    try:
        with closing(sqlite3.connect(f"file:{site.database}?mode=ro", uri=True)) as db:
            return db.execute("SELECT count(*) FROM outbox").fetchone()[0]
    except sqlite3.OperationalError:  # not begun yet
        return 0


def stopped(site):
    """What a site has signed when it stopped."""
    trust = load_trust(site.path(site.file.keys.authority))
    return verify_statement(site.state / "stopped.json", trust)


def midway(paths, started, t):
    """All sites in round t, where the last one holds back its frame."""
    running = [started(path, {"hold": t} if path == paths[-1] else None) for path in paths]
    sites = [load_site(path) for path in paths]
    until(lambda: rounds_of(sites[0]) == t and _kept(sites[1], t), seconds=60.0)
    return running, sites


def _kept(site, t):
    """Whether a site has written down what it heard of the first one in round t."""
    return frames(site, "heard", 0).get(t) is not None


def test_state_lost_before_everybody_is_there_costs_nothing(tmp_path, started):
    """The first site starts three times, each time without its state; then the last one comes."""
    paths = network(tmp_path, PATH_OF_3, **REAL)
    sites = [load_site(path) for path in paths]
    middle = started(paths[1])
    for _ in range(3):
        first = started(paths[0])
        until(lambda: outbox(sites[0]) > 0, seconds=60.0)
        first.kill()
        assert charged_rounds(sites[0]) == []
        shutil.rmtree(sites[0].state)
    rest = [started(paths[0]), middle, started(paths[2])]
    assert [entry.wait() for entry in rest] == [0, 0, 0]
    for i, j in ((0, 1), (1, 0), (1, 2), (2, 1)):
        assert (
            frames(sites[i], "heard", j).items()
            >= {t: frame for t, frame in frames(sites[j]).items() if t <= 5}.items()
        )


@pytest.mark.parametrize("way", ["folder", "file", "empty"])
def test_a_site_that_lost_its_state_stops_and_says_what_it_has_spent(tmp_path, started, way):
    paths = network(tmp_path, **REAL)
    running, sites = midway(paths, started, 3)
    running[0].kill()
    if way == "folder":
        shutil.rmtree(sites[0].state)
    else:
        for file in sites[0].state.glob("site.sqlite*"):
            file.unlink()
        if way == "empty":
            sites[0].database.touch()
    again = started(paths[0])
    assert again.wait() == LOST, again.text()
    assert "holds a frame of this site, of round 3, that this site does not know of" in again.text()
    assert charged_rounds(sites[0]) == [] and frames(sites[0]) == {}
    said = stopped(sites[0])
    assert said["released"] == [1, 2, 3]
    ready = make_ready(sites[0])
    assert said["epsilon"] == cost_of(ready, [1, 2, 3]) > cost_of(ready, [1, 2])
    assert not (sites[0].state / "model.json").exists()


def test_a_folder_of_yesterday_stops_and_the_right_one_goes_on(tmp_path, started):
    paths = network(tmp_path)
    first, second, third = (started(paths[0]), started(paths[1]), started(paths[2], {"hold": 2}))
    site = load_site(paths[0])
    until(lambda: rounds_of(site) == 2, seconds=60.0)
    first.kill()
    yesterday, today = tmp_path / "yesterday", tmp_path / "today"
    shutil.copytree(site.state, yesterday)
    third.kill()
    first, third = started(paths[0]), started(paths[2], {"hold": 4})
    until(lambda: rounds_of(site) == 4, seconds=60.0)
    first.kill()
    site.state.rename(today)
    shutil.copytree(yesterday, site.state)
    back = started(paths[0])
    assert back.wait() == LOST, back.text()
    assert charged_rounds(site) == [1, 2]
    shutil.rmtree(site.state)
    today.rename(site.state)
    (paths[2].parent / "go").touch()
    first = started(paths[0])
    assert [entry.wait() for entry in (first, second, third)] == [0, 0, 0]
    check_end(paths)


def test_a_copy_on_another_machine_stops_and_the_run_goes_on(tmp_path, started):
    """The copy of a site that calls the others; a copy of one that is called would hear from nobody."""
    paths = network(tmp_path, **REAL)
    running = [started(paths[0], {"hold": 2}), started(paths[1]), started(paths[2])]
    sites = [load_site(path) for path in paths]
    until(lambda: rounds_of(sites[2]) == 2, seconds=60.0)
    copy = tmp_path / "copy"
    shutil.copytree(paths[2].parent, copy)
    with (copy / "site.toml").open("a") as file:
        file.write(f'listen = "tls/127.0.0.1:{free_ports(1)[0]}"\n')
    double = started(copy / "site.toml")
    assert double.wait() == LOST, double.text()
    assert "two processes with the name and key of this site" in double.text()
    assert frames(load_site(copy / "site.toml")) == frames(sites[2])
    (paths[0].parent / "go").touch()
    assert [entry.wait() for entry in running] == [0, 0, 0]
    assert len({(site.state / "model.json").read_bytes() for site in sites}) == 1


def test_two_copies_started_at_the_same_moment_release_no_round_twice(tmp_path, started):
    """Whoever asks later is seen by the neighbours beside the other: one goes on at most, or neither."""
    paths = network(tmp_path, **REAL)
    running = [started(paths[0]), started(paths[1]), started(paths[2], {"hold": 3})]
    sites = [load_site(path) for path in paths]
    until(lambda: rounds_of(sites[2]) == 2 and rounds_of(sites[0]) == 3, seconds=60.0)
    running[2].kill()
    copy = tmp_path / "copy"
    shutil.copytree(paths[2].parent, copy)
    with (copy / "site.toml").open("a") as file:
        file.write(f'listen = "tls/127.0.0.1:{free_ports(1)[0]}"\n')
    twins = [started(paths[2], {"hold": 3}), started(copy / "site.toml", {"hold": 3})]
    end = time.monotonic() + 20.0  # both would stand before their release by then
    while time.monotonic() < end and all(twin.process.exitcode is None for twin in twins):
        time.sleep(0.05)
    for folder in (paths[2].parent, copy):
        (folder / "go").touch()
    codes = sorted(twin.wait() for twin in twins)
    assert codes in ([0, LOST], [LOST, LOST]), [twin.text() for twin in twins]
    if 0 not in codes:  # each saw the other; the right one goes on alone
        assert started(paths[2]).wait() == 0
    assert [entry.wait() for entry in running[:2]] == [0, 0]
    sent = [frames(site) for site in (sites[2], load_site(copy / "site.toml"))]
    common = {t for t in sent[0].keys() & sent[1].keys() if t <= 5}
    assert {t: sent[0][t] for t in common} == {t: sent[1][t] for t in common} and {1, 2} <= common
    assert len({(site.state / "model.json").read_bytes() for site in sites[:2]}) == 1


def stand_in_round(paths, started, t):
    """Run until all have released round t, where the last holds back its frame; then end all."""
    running = [started(path, {"hold": t} if path == paths[-1] else None) for path in paths]
    until(lambda: all(rounds_of(load_site(path)) >= t - (path == paths[-1]) for path in paths), seconds=60.0)
    for entry in running:
        entry.kill()


def test_all_put_back_at_once_release_nothing_and_one_that_was_not_vouches(tmp_path, started):
    paths = network(tmp_path, PATH_OF_3, **REAL)
    sites = [load_site(path) for path in paths]
    stand_in_round(paths, started, 2)
    for site in sites:
        shutil.copytree(site.state, site.folder / "yesterday")
    stand_in_round(paths, started, 4)
    for site in sites:
        site.state.rename(site.folder / "today")
        shutil.copytree(site.folder / "yesterday", site.state)
    before = [frames(site) for site in sites]
    again = [started(path) for path in paths]
    assert [entry.wait() for entry in again] == [LOST, LOST, LOST], again[0].text()
    assert "and so were those of all its neighbours" in again[1].text()
    assert [frames(site) for site in sites] == before
    for site in sites:
        shutil.rmtree(site.state)
    (sites[1].folder / "today").rename(sites[1].state)  # the very folder; the others get a copy of theirs
    for site in (sites[0], sites[2]):
        shutil.copytree(site.folder / "today", site.state)
    again = [started(path) for path in paths]
    assert [entry.wait() for entry in again] == [0, 0, 0], again[0].text()
    assert len({(site.state / "model.json").read_bytes() for site in sites}) == 1
    assert "Never put this folder back" in (sites[0].state / "README.txt").read_text()

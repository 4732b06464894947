"""A state folder that is lost, put back or copied releases nothing a second time: five sites, and twenty.

The noise is real: a round that were drawn anew would be another frame.
"""

import shutil
import sqlite3
from contextlib import closing

import pytest

from support.linkcut import until
from support.siteend import charged_rounds, rounds_of
from support.sitering import KINDS, REAL, SIZES, frames, lose_file, one_frame_a_round
from support.sitework import PATH_OF_3, network
from taciturn.errors import ExitCode
from taciturn.sites.files.arrivals import _TOP, NAME, boot_id
from taciturn.sites.files.site import load_site
from taciturn.sites.rounds.evidence import cost_of
from taciturn.sites.rounds.prepare import make_ready
from taciturn.sites.rounds.results import verify_statement
from taciturn.sites.wire.form import HELLO
from taciturn.sites.wire.frame import decode
from taciturn.sites.wire.trust import load_trust

DAYS = 2 * 86_400.0


def stopped(site):
    """What a site has signed when it stopped."""
    trust = load_trust(site.path(site.file.keys.authority))
    return verify_statement(site.state / "stopped.json", trust)


# what is done to a state folder -> the rounds that its ledger has then
LOSSES = {"folder": [], "file": [], "empty": [], "yesterday": [1, 2], "another": [1, 2, 3, 4]}


def spoil(way, site, today, yesterday):
    """In the place of today's state: nothing, one without its file, yesterday's, one that differs."""
    if way != "folder":
        shutil.copytree(yesterday if way == "yesterday" else today, site.state)
    if way in ("file", "empty"):
        lose_file(site, empty=way == "empty")
    if way == "another":
        plant_another(site, 4)


def plant_another(site, t):
    """A frame of round t that this site signed too, in the place of the one that it sent."""
    frame = decode(frames(site)[t], largest=10**6)
    content = bytearray(frame.content)
    content[-1] ^= 1
    with closing(sqlite3.connect(site.database, isolation_level=None)) as db:
        db.execute("DROP TRIGGER outbox_keeps")
        db.execute(
            "UPDATE outbox SET frame = ? WHERE t = ?", (make_ready(site).identity.seal(bytes(content)), t)
        )


def check_stopped(ring, i, way):
    """The site has stopped, released nothing, and says what has left it before."""
    site = ring.sites[i]
    assert ring.running[i].wait() == ExitCode.STATE_LOST, ring.text(i)
    assert "holds a frame of this site, of round 4, that this site does not know of" in ring.text(i)
    assert charged_rounds(site) == list(frames(site)) == LOSSES[way]
    ready, released = make_ready(site), [1, 2, 3, 4] if way != "another" else [1, 1, 2, 2, 3, 3, 4, 4]
    said = stopped(site)
    assert f"What has left this site: at least {len(released)} releases" in ring.text(i) and said["at_least"]
    assert said["released"] == released and said["epsilon"] == cost_of(ready, released)
    assert cost_of(ready, released) > cost_of(ready, [1, 2, 3])
    assert not (site.state / "model.json").exists()


def lose_in_every_way(ring, i, yesterday, aside):
    """Stop a site, spoil its state, start it: it stops. Then the right one goes on."""
    site = ring.sites[i]
    ring.kill(i)
    site.state.rename(aside)
    for way in LOSSES:
        spoil(way, site, aside, yesterday)
        ring.start(i)
        check_stopped(ring, i, way)
        ring.running[i].log.unlink()
        shutil.rmtree(site.state)
    aside.rename(site.state)
    ring.start(i)
    until(lambda: "resumed after round" in ring.text(i))  # the neighbours see it: a copy comes second


def copy_stops(ring, i, folder):
    """The folder on a second machine, while the first goes on."""
    folder.mkdir()
    double = ring.start_copy(ring.copy(i, folder))
    assert double.wait() == ExitCode.STATE_LOST, double.text()
    assert "two processes with the name and key of this site" in double.text()
    assert frames(load_site(double.path)) == frames(ring.sites[i])


def ended(entry):
    return entry.process.exitcode is not None


def start_twins(ring, i, folder, **fault):
    """Two copies at the same moment, before a release: one goes on at most. The sites that have a frame."""
    folder.mkdir()
    copy = ring.copy(i, folder)
    ring.start(i, **fault)
    twins = [ring.running[i], ring.start_copy(copy, **fault)]
    held = [twin.path.parent / "held" for twin in twins]
    until(
        lambda: (
            any(twin.process.exitcode is not None for twin in twins)
            or all(file.exists() for file in held)
            or any("it sees two processes" in twin.text() for twin in twins)  # one stands and is silent
        )
    )
    for twin in twins:
        (twin.path.parent / "go").touch()
    return twins


def end_with_twins(ring, i, twins, **fault):
    """Whoever of the two is left goes on with everybody; where neither is, the right one does, alone."""
    codes = sorted(twin.wait() for twin in twins)
    assert codes in ([0, ExitCode.STATE_LOST], [ExitCode.STATE_LOST] * 2), [twin.text() for twin in twins]
    if 0 not in codes:
        ring.start(i, **fault)
        assert ring.running[i].wait() == 0, ring.text(i)
    left = [entry for k, entry in ring.running.items() if k != i]
    assert [entry.wait() for entry in left] == [0] * len(left), ring.logs()
    copy = load_site(twins[1].path)
    assert one_frame_a_round([*ring.sites, copy])
    models = {file.read_bytes() for site in (*ring.sites, copy) for file in site.state.glob("model.json")}
    assert len(models) == 1


@KINDS
@SIZES
def test_a_charged_round_is_released_once_whatever_becomes_of_the_state(tmp_path, ring_of, size, kind):
    """The last site, which calls both its neighbours, is robbed, put back and copied; the first holds back.

    Meanwhile the certificate of the second ends, with its frame of round 4 on the way to the first.
    """
    ring, last = ring_of(size, kind), size - 1
    ring.shorten_certificate(1)
    ring.start(*range(1, size))
    ring.start(0, hold=2)
    ring.await_round(last, 2)
    ring.kill(last, 0)
    shutil.copytree(ring.sites[last].state, tmp_path / "yesterday")
    ring.start(last)
    ring.start(0, hold=4)
    ring.await_round(last, 4)
    lose_in_every_way(ring, last, tmp_path / "yesterday", tmp_path / "today")
    copy_stops(ring, last, tmp_path / "copy")
    ring.kill(*range(size))
    waiting = decode(frames(ring.sites[1])[4], largest=10**6)
    ring.renew_certificate(1)
    later = {"jump": DAYS, "t": HELLO}
    ring.start(*range(last), **later)
    twins = start_twins(ring, last, tmp_path / "twins", hold=5, **later)
    end_with_twins(ring, last, twins, **later)
    arrived = decode(frames(ring.sites[0], "heard", 1)[4], largest=10**6)
    assert arrived.digest == waiting.digest and arrived.certificate != waiting.certificate
    assert ring.charged()[:last] == [[1, 2, 3, 4, 5]] * last


@pytest.mark.parametrize("second", ["the copy", "the original"])
def test_the_original_goes_on_and_its_copy_stops_whoever_asks_first(tmp_path, ring_of, second):
    """One is on the network, silent, so the other waits; then it asks, and each proves the other."""
    ring, last = ring_of(3, "penalty"), 2
    ring.start(1, last)
    ring.start(0, hold=3)
    ring.await_round(last, 3)
    ring.kill(last)
    (tmp_path / "copy").mkdir()
    places = [ring.paths[last], ring.copy(last, tmp_path / "copy")]
    sleeper, waiter = reversed(places) if second == "the copy" else places
    processes = {sleeper: ring.start_copy(sleeper, asleep=True)}
    until((sleeper.parent / "held").exists)
    processes[waiter] = ring.start_copy(waiter, says=0.5)
    until(lambda: "it sees two processes of this site" in processes[waiter].text())
    for place in (sleeper, ring.paths[0]):
        (place.parent / "go").touch()
    original, copy = (processes[place] for place in places)
    assert (original.wait(), copy.wait()) == (0, ExitCode.STATE_LOST), original.text() + copy.text()
    assert "the original is running" in copy.text() and "resumed after" not in copy.text()
    assert [ring.running[i].wait() for i in (0, 1)] == [0, 0], ring.logs()
    assert ring.charged() == [[1, 2, 3, 4, 5]] * 3 and len(frames(load_site(copy.path))) == 3
    assert one_frame_a_round([*ring.sites, load_site(copy.path)])


def stand_in_round(paths, started, t):
    """Run until all have released round t, where the last holds back its frame; then end all.

    Whoever can go on without it stands at the next round: all come as far as this, and no further.
    """
    running = [started(path, {"hold": t if path == paths[-1] else t + 1}) for path in paths]
    until((paths[-1].parent / "held").exists)
    until(lambda: all(rounds_of(load_site(path)) >= t for path in paths[:-1]))
    for entry in running:
        entry.kill()
    for path in paths:
        (path.parent / "held").unlink(missing_ok=True)


def test_a_neighbour_that_was_killed_knows_what_had_come_in_before(tmp_path, started):
    """It had not committed rounds 3 and 4 yet; of yesterday's folder they would be drawn anew."""
    paths = network(tmp_path, [(0, 1)], job={"seed": None}, site=REAL)
    site = load_site(paths[0])
    stand_in_round(paths, started, 2)
    shutil.copytree(site.state, site.folder / "yesterday")
    stand_in_round(paths, started, 4)
    shutil.rmtree(site.state)
    (site.folder / "yesterday").rename(site.state)
    before = frames(site)
    started(paths[1])
    robbed = started(paths[0])
    assert robbed.wait() == ExitCode.STATE_LOST, robbed.text()
    assert frames(site) == before


def lose_power(site):
    """What had come in and was not committed is gone, and the machine was started anew."""
    file = site.state / NAME
    file.write_bytes(file.read_bytes()[: _TOP.size].replace(boot_id(), b"7" * 36))


def test_a_neighbour_that_lost_power_vouches_for_nobody_and_without_a_move_all_go_on(tmp_path, started):
    """It has forgotten rounds 3 and 4; of yesterday's folder they would be drawn anew."""
    paths = network(tmp_path, [(0, 1)], job={"seed": None}, site=REAL)
    sites = [load_site(path) for path in paths]
    stand_in_round(paths, started, 2)
    shutil.copytree(sites[0].state, sites[0].folder / "yesterday")
    stand_in_round(paths, started, 4)
    for site in sites:
        lose_power(site)
    sites[0].state.rename(sites[0].folder / "today")
    (sites[0].folder / "yesterday").rename(sites[0].state)
    before = frames(sites[0])
    running = [started(path) for path in reversed(paths)]
    assert running[1].wait() == ExitCode.STATE_LOST, running[1].text()
    assert "or their machines lost power" in running[1].text()
    assert frames(sites[0]) == before
    shutil.rmtree(sites[0].state)
    (sites[0].folder / "today").rename(sites[0].state)
    running[1] = started(paths[0])
    assert [entry.wait() for entry in running] == [0, 0], running[0].text()
    assert one_frame_a_round(sites)


def write_over(site, yesterday):
    """Yesterday's database in the very files of today's."""
    for name in (site.database.name, f"{site.database.name}-wal"):
        (site.state / name).write_bytes((yesterday / name).read_bytes())
    site.database.with_name(f"{site.database.name}-shm").unlink(missing_ok=True)


def test_databases_that_were_all_written_over_in_place_release_nothing(tmp_path, started):
    """They are the same files, but frames came in that only follow from rounds they do not have."""
    paths = network(tmp_path, PATH_OF_3, job={"seed": None}, site=REAL)
    sites = [load_site(path) for path in paths]
    stand_in_round(paths, started, 2)
    for site in sites:
        shutil.copytree(site.state, site.folder / "yesterday")
    stand_in_round(paths, started, 5)
    for site in sites:
        write_over(site, site.folder / "yesterday")
    before = [frames(site) for site in sites]
    again = [started(path) for path in paths]
    assert [entry.wait() for entry in again] == [ExitCode.STATE_LOST] * 3, again[0].text()
    assert [frames(site) for site in sites] == before


def test_all_put_back_at_once_release_nothing_and_one_that_was_not_vouches(tmp_path, started):
    paths = network(tmp_path, PATH_OF_3, job={"seed": None}, site=REAL)
    sites = [load_site(path) for path in paths]
    stand_in_round(paths, started, 2)
    for site in sites:
        shutil.copytree(site.state, site.folder / "yesterday")
    stand_in_round(paths, started, 4)
    for site in sites:
        site.state.rename(site.folder / "today")
        shutil.copytree(site.folder / "yesterday", site.state)
    before = [frames(site) for site in sites]
    again = [started(path, {"drowsy": 2.0}) for path in paths]  # who is asked too early vouches for nobody
    assert [entry.wait() for entry in again] == [ExitCode.STATE_LOST] * 3, again[0].text()
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

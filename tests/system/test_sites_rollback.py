"""A state folder that is restored or copied, liars who vouch for it, and a new key, on real processes.

The noise is real: a round that is drawn again gives another frame. The cases of lost states, and of
states under masks, is in tests/sites/rounds/test_driver.py and in the simulation.
"""

import re
import shutil
from collections import defaultdict

from support.linkcut import until, wait_for
from support.siteend import charged_rounds, rounds_of
from support.sitemasked import masked_network
from support.sitering import KINDS, Ring
from support.sitework import PATH_OF_3
from taciturn.core.errors import ExitCode


def test_a_copy_stops_and_the_original_goes_on(ring_of, tmp_path):
    ring = ring_of(3, "penalty", rounds=4)
    ring.start(1, 2)
    ring.start(0, hold=3)
    until(lambda: rounds_of(ring.sites[2]) == 3)
    (tmp_path / "copy").mkdir()
    double = ring.start_copy(ring.copy(2, tmp_path / "copy"))
    assert double.wait() == ExitCode.STATE_LOST, double.text()
    assert "was moved, copied or restored" in double.text()
    ring.go(0)
    assert ring.codes() == [0] * 3, ring.logs()
    assert ring.charged() == [[1, 2, 3, 4]] * 3


def test_stale_state_releases_nothing_and_the_current_one_continues(ring_of, tmp_path):
    ring = ring_of(3, "penalty", rounds=5)
    state = ring.sites[2].state
    ring.start(1, 2)
    ring.start(0, holds=(2, 4))
    until(lambda: rounds_of(ring.sites[2]) == 2)
    ring.kill(2)
    shutil.copytree(state, tmp_path / "yesterday")
    ring.start(2)
    (ring.paths[0].parent / "go-2").touch()
    until(lambda: rounds_of(ring.sites[2]) == 4)
    ring.kill(2)
    state.rename(tmp_path / "today")
    shutil.copytree(tmp_path / "yesterday", state)
    ring.start(2)
    assert ring.running[2].wait() == ExitCode.STATE_LOST, ring.text(2)
    # round 3 if the kill came after round 4 was charged, and before it was marked as sent
    said = "it is at round 2 of attempt 1, but this site has already sent round [34] of attempt 1"
    assert re.search(said, ring.text(2)), ring.text(2)
    assert (state / "stopped.json").exists() and rounds_of(ring.sites[2]) == 2
    shutil.rmtree(state)
    (tmp_path / "today").rename(state)
    ring.start(2)
    (ring.paths[0].parent / "go-4").touch()
    assert ring.codes() == [0] * 3, ring.logs()
    assert ring.charged() == [[1, 2, 3, 4, 5]] * 3


@KINDS
def test_a_new_key_while_a_frame_waits_for_a_late_neighbour(ring_of, kind):
    """The same frame, under the certificate of the new key."""
    ring = ring_of(3, kind, rounds=4)
    ring.start(1, 2)
    ring.start(0, hold=3)
    until(lambda: rounds_of(ring.sites[2]) == 3)
    ring.kill(2)
    ring.renew_certificate(2)
    ring.start(2)
    ring.go(0)
    assert ring.codes() == [0] * 3, ring.logs()
    assert ring.charged() == [[1, 2, 3, 4]] * 3
    assert len({(site.state / "model.json").read_bytes() for site in ring.sites}) == 1


def restore(ring, place, sent, **fault):
    """Put the state of site 0 back to what it was after round 3, once it has sent round 8."""
    state, saved = ring.sites[0].state, place / "yesterday"
    until(lambda: rounds_of(ring.sites[0]) >= 3)
    ring.kill(0)
    shutil.copytree(state, saved)
    ring.start(0, **fault)
    until(lambda: "8" in messages(sent))
    ring.kill(0)
    shutil.rmtree(state)
    shutil.copytree(saved, state)


def messages(file):
    """By what covers a message, or by its round, the different messages that left the site."""
    found = defaultdict(set)
    for t, cover, message in (line.split() for line in file.read_text().splitlines()):
        found[t if bytes.fromhex(cover) == b"a round" else cover].add(message)
    return found


def test_under_masks_a_liar_who_vouches_for_a_backup_gets_no_second_message_under_a_mask(tmp_path):
    """The line site-0, site-1, site-2. Site 1 lies: it vouches for the backup of site 0.

    It hides what was charged, and keeps the message of round 8 of site 0 for itself. So site 0 must send this
    round again.
    """
    facts, sent = {"seed": None, "rounds": 12}, tmp_path / "messages"
    ring = Ring(masked_network(tmp_path / "net", PATH_OF_3, job=facts, site={"patience": 100.0}))
    try:
        ring.start(2)
        ring.start(1, lie="vouch", t=8)
        ring.start(0, record=str(sent))
        restore(ring, tmp_path, sent, record=str(sent))
        ring.start(0, record=str(sent))
        assert ring.codes() == [0] * 3, ring.logs()
    finally:
        ring.stop()
    found = messages(sent)
    rounds, pads = ({k: v for k, v in found.items() if (len(k) < 5) == short} for short in (True, False))
    assert {t for t, different in rounds.items() if len(different) > 1} == {"8"}
    assert all(len(covered) == 1 for covered in pads.values()), "a pad covers two messages"
    assert '"at_least": true' in (ring.sites[0].state / "statement.json").read_text()
    assert len(charged_rounds(ring.sites[0])) >= sum(map(len, rounds.values())) == 13


def test_without_masks_liars_who_vouch_for_a_backup_get_no_round_twice(ring_of, tmp_path):
    """Both neighbours of site 0 lie: they hide what was charged. Its owner confirms the backup in error."""
    ring, sent = ring_of(3, "penalty", rounds=60, site={"patience": 10.0}), tmp_path / "messages"
    honest = {"record": str(sent), "slow": 0.05}
    ring.start(1, 2, lie="vouch", t=8)
    ring.start(0, **honest)
    restore(ring, tmp_path, sent, **honest)
    ring.start(0, **honest)
    assert ring.running[0].wait() == ExitCode.STATE_LOST, ring.text(0)
    before = messages(sent)
    ring.start(0, newest=True, **honest)
    until(lambda: "this site asks for a new attempt" in ring.text(0))
    wait_for(lambda: len(messages(sent)) > len(before), 6.0)  # liars can stop a run, and these may
    ring.kill(0)
    found = messages(sent)
    assert found.keys() >= before.keys() and all(len(different) == 1 for different in found.values())
    assert set(charged_rounds(ring.sites[0])) >= {int(t) for t in found}

"""A state folder that is restored or copied, and a new key in the middle of a run, on real processes.

The noise is real: a round that is drawn again gives another frame. The cases of lost states, and of
states under masks, is in tests/sites/rounds/test_driver.py and in the simulation.
"""

import shutil

from support.linkcut import until
from support.siteend import rounds_of
from support.sitering import KINDS
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
    assert "it is at round 2 of attempt 1, but this site has already sent round 4" in ring.text(2)
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

"""Messages of a masked site: colluding sites learn no partial sum of the honest ones."""

import struct

import numpy as np
import pytest
from scipy import stats

from support.sitehub import start, use_hub
from support.sitemasked import bare_values, masked_network, totals
from taciturn.sites.files.site import load_site
from taciturn.sites.protocol.frames import Kind, decode
from taciturn.sites.protocol.pads import RoundKeys, mask, read_commit
from taciturn.sites.state.volatile_keys import VolatileMemory

ROUNDS = 6
LOST = 3  # the round in which site 1 must ask site 0 for its message
looked: list[int] = []
again: list[int] = []


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Five sites on a ring: the sites, all frames, and by (site, round) the keys that it had."""
    kept, now = {}, {}
    real = VolatileMemory.change

    def change(self, entries):
        name = self.state.parent.parent.name
        if entries.get("keys") is not None:
            keys = RoundKeys.unpack(entries["keys"])
            kept[name, keys.t] = keys
        real(self, entries)
        now[name] = self.read()

    def look(sender, to, data):
        """The key and the noise of a round are gone before its message leaves.

        A neighbour may ask for a message again; its sender may then hold noise of the next round.
        """
        frame = decode(data, largest=10**6)
        if frame.kind == Kind.MESSAGE and f"site-{frame.sender}" == sender:
            assert RoundKeys.unpack(now[sender]["keys"]).t > frame.t
            assert "y" not in now[sender] or round_of(now[sender]["y"]) > frame.t
            looked.append(frame.t)
            if (sender, to, frame.t) == ("site-0", "site-1", LOST):
                again.append(frame.t)
                return data if len(again) > 1 else None
        return data

    def round_of(y):
        return struct.unpack_from("<II", y)[1]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(VolatileMemory, "change", change)
        hub = use_hub(patched)
        hub.change = look
        paths = masked_network(tmp_path_factory.mktemp("masked"))
        assert [thread.code for thread in start(paths)] == [0] * 5
    return [load_site(path) for path in paths], hub, kept


def messages(hub, number):
    frames = sorted(hub.frames(number, Kind.MESSAGE), key=lambda frame: frame.t)
    assert [frame.t for frame in frames] == list(range(1, ROUNDS + 1))
    return frames


def opened(run, number, colluders):
    """A site's messages without the masks that it shares with the colluders, who show all they had."""
    _, hub, kept = run
    left = []
    for frame in messages(hub, number):
        commits = {
            i: read_commit(sent.payload)[0]
            for i in range(5)
            for sent in hub.frames(i, Kind.COMMIT)
            if sent.t == frame.t
        }
        theirs = {j: kept[f"site-{j}", frame.t].keys[number] for j in colluders}
        keys = RoundKeys(frame.attempt, frame.t, theirs)
        pads = mask(number, bytes(len(frame.payload)), keys, frame.scope, commits)
        left.append(np.frombuffer(frame.payload, "<u8") - np.frombuffer(pads, "<u8"))
    return left


def uniform(values):
    """Whether the bytes of some messages look as if every value were as likely, at p = 1e-9."""
    data = np.frombuffer(b"".join(one.tobytes() for one in values), dtype=np.uint8)
    return stats.chisquare(np.bincount(data, minlength=256)).pvalue > 1e-9


def test_the_key_of_a_round_is_gone_before_its_message_leaves_and_never_on_disk(run):
    sites, _, kept = run
    assert set(looked) == set(range(1, ROUNDS + 1)) and len(again) > 1
    secrets = {key for keys in kept.values() for key in keys.keys.values()}
    assert len(secrets) > 5 * ROUNDS
    for site in sites:
        written = b"".join(path.read_bytes() for path in site.state.iterdir())
        assert not any(secret in written for secret in secrets)


def test_all_other_keys_reveal_only_the_sum_of_two_honest_sites(run):
    """Everything that was sent, opened with all keys but those of sites 0 and 1."""
    left = [opened(run, site, colluders=(2, 3, 4)) for site in (0, 1)]
    assert uniform(left[0]) and uniform(left[1])
    both = [first + second for first, second in zip(*left, strict=True)]
    assert not uniform(both)
    bare = zip(bare_values(run[0], 0), bare_values(run[0], 1), strict=True)
    assert [one.tobytes() for one in both] == [(first + second).tobytes() for first, second in bare]


def test_with_all_other_keys_a_single_site_is_revealed(run):
    """A control for the test above: four colluders see the message of one site with its noise."""
    left = opened(run, 0, colluders=(1, 2, 3, 4))
    assert not uniform(left)
    assert [one.tobytes() for one in left] == [one.tobytes() for one in bare_values(run[0], 0)]


def test_single_messages_are_spread_over_all_numbers_and_their_sum_is_not(run):
    sites, hub, _ = run
    last = [np.frombuffer(messages(hub, i)[-1].payload, "<i8").astype(float) for i in range(5)]
    assert all(np.abs(one).max() > 2.0**59 for one in last)
    assert np.abs(totals(sites[0])[-1].view(np.int64).astype(float)).max() < 2.0**50

"""An attempt without masks needs members whose graph is connected."""

import pytest

from taciturn.methods.admm.attempt import _connected

RING = ((1, 4), (0, 2), (1, 3), (2, 4), (3, 0))


@pytest.mark.parametrize(
    ("members", "connected"),
    [((0, 1, 2, 3, 4), True), ((0, 1, 2, 3), True), ((0, 2), False), ((1, 2, 4), False), ((3,), True)],
)
def test_members_are_connected_by_links_among_themselves(members, connected):

    assert _connected(members, RING) is connected

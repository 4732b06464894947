"""What a site makes of its neighbours' frames."""

import numpy as np

from tacit.engines.zenoh.driver import summed
from tacit.engines.zenoh.mailbox import Letter


def letters(*values):
    return {j: Letter(b"", np.array([value])) for j, value in enumerate(values)}


def test_vectors_are_added_in_the_order_of_the_sites():
    assert summed(letters(1.0, 1e16, -1e16), 1, clip=1e17).tolist() == [[0.0]]
    assert summed(letters(1e16, -1e16, 1.0), 1, clip=1e17).tolist() == [[1.0]]


def test_incoming_vectors_are_clipped_to_the_public_range():
    assert summed(letters(100.0, -0.5), 1, clip=64.0).tolist() == [[63.5]]

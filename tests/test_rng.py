"""Random streams: keyed and unrepeatable for real runs, replayable and marked for simulations."""

from __future__ import annotations

import copy
import inspect
import itertools
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from taciturn import rng
from taciturn.core.errors import ParameterError
from taciturn.rng import SecureStreams, SeededStreams

NAME = {"repeat": 0, "site": 1, "purpose": "noise", "t": 1}


def numbers(streams, n=4, **changes):
    return streams.generator(**{**NAME, **changes}).standard_normal(n).tolist()


# -- secure -----------------------------------------------------------------------------------------


def test_secure_streams_take_no_seed():
    assert not inspect.signature(SecureStreams).parameters
    with pytest.raises(TypeError):
        SecureStreams(0)
    names = set(inspect.signature(SecureStreams.generator).parameters) - {"self"}
    assert names == {"repeat", "site", "purpose", "t"}
    assert SecureStreams.simulated is False and SeededStreams.simulated is True


def test_secure_streams_never_repeat_not_even_for_the_same_name():
    streams = SecureStreams()
    draws = [tuple(numbers(s)) for s in (streams, streams, SecureStreams())] + [
        tuple(numbers(streams, site=2))
    ]
    assert len(set(draws)) == 4


def test_secure_streams_are_chacha20_under_a_fresh_256_bit_key(monkeypatch):
    seen = []

    def recorded(*, key, rounds):
        seen.append((key, rounds))
        return np.random.PCG64(0)

    monkeypatch.setattr(rng, "ChaCha", recorded)
    for t in range(50):
        SecureStreams().generator(**{**NAME, "t": t})
    keys = {key for key, _ in seen}
    assert len(keys) == 50 and {rounds for _, rounds in seen} == {20}
    assert max(key.bit_length() for key in keys) > 240


def test_numpy_seeding_does_not_reach_secure_streams():
    draws = set()
    for _ in range(2):
        np.random.seed(0)
        draws.add(tuple(numbers(SecureStreams())))
    assert len(draws) == 2


def test_threads_get_different_keys():
    found, lock = [], threading.Lock()

    def work():
        mine = [tuple(numbers(SecureStreams())) for _ in range(50)]
        with lock:
            found.extend(mine)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 200


FORK = """
import os
from taciturn.rng import SecureStreams
def draw():
    generator = SecureStreams().generator(repeat=0, site=0, purpose="noise", t=1)
    return generator.standard_normal(4).tobytes().hex()
draw()
read, write = os.pipe()
child = os.fork()
if child == 0:
    os.write(write, draw().encode())
    os._exit(0)
mine = draw()
os.waitpid(child, 0)
print(mine, os.read(read, 1000).decode())
"""


RENEWED = """
import os, time
from taciturn import rng
rng._PROCESS_KEY.derive()
read, write = os.pipe()
child = os.fork()
os.urandom, time.time_ns = (lambda n: bytes(n)), (lambda: 0)
found = format(rng._PROCESS_KEY.derive(), "x")
if child == 0:
    os.write(write, found.encode())
    os._exit(0)
os.waitpid(child, 0)
print(found, os.read(read, 1000).decode())
"""


def run(code):
    """What a fresh Python prints."""
    path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | path)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
@pytest.mark.process
def test_a_fork_draws_a_fresh_key():
    """Without that, parent and child would broadcast under the same noise."""
    parent, child = run(FORK).split()
    assert parent != child


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
def test_a_fork_has_a_key_of_its_own_even_where_fresh_bytes_and_clock_repeat_themselves():
    parent, child = run(RENEWED).split()
    assert parent != child


def test_a_key_object_copied_with_all_its_state_does_not_repeat_a_key():
    """A resumed machine image has the same key and the same counter twice."""
    first, second = rng._ProcessKey(), rng._ProcessKey()
    second._key, second._counter = first._key, copy.copy(first._counter)
    assert first.derive() != second.derive()


def test_fresh_bytes_reach_every_key_even_where_the_clock_stands_still(monkeypatch):
    monkeypatch.setattr(rng.time, "time_ns", lambda: 0)
    key, seen = rng._ProcessKey(), set()
    for _ in range(20):
        key._counter = itertools.count()
        seen.add(key.derive())
    assert len(seen) == 20
    monkeypatch.setattr(rng.os, "urandom", lambda n: bytes(n))
    key._counter = itertools.count()
    frozen = key.derive()
    key._counter = itertools.count()
    assert key.derive() == frozen, "the bytes above came from somewhere else"


@pytest.mark.process
def test_two_processes_differ():
    code = FORK.split("read, write")[0] + "print(draw())"
    first, second = (run(code) for _ in range(2))
    assert first and first != second


# -- seeded -----------------------------------------------------------------------------------------


def test_seeded_streams_repeat():
    assert numbers(SeededStreams(5)) == numbers(SeededStreams(5))
    streams = SeededStreams(5)
    first = numbers(streams)
    numbers(streams, n=1000, t=9)
    assert numbers(streams) == first


@pytest.mark.parametrize("change", [{"repeat": 1}, {"site": 2}, {"purpose": "output"}, {"t": 2}])
def test_seeded_streams_differ_by_every_part_of_the_name(change):
    assert numbers(SeededStreams(5)) != numbers(SeededStreams(5), **change)
    assert numbers(SeededStreams(5)) != numbers(SeededStreams(6))


def test_seeded_streams_do_not_depend_on_who_else_draws():
    alone = [numbers(SeededStreams(3), site=4, t=t) for t in (1, 2, 3)]
    crowd = SeededStreams(3)
    seen = []
    for t in (1, 2, 3):
        for site in range(8):
            for purpose in ("noise", "output", "start", "deal", "proxy"):
                draw = numbers(crowd, site=site, t=t, purpose=purpose, n=4)
                if site == 4 and purpose == "noise":
                    seen.append(draw)
    assert seen == alone


def test_seeded_rounds_resume_anywhere_and_mixed_draws_leave_no_trace():
    streams = SeededStreams(8)
    streams.generator(**NAME).integers(0, 2**32, dtype=np.uint32)  # leaves half a word behind
    after = streams.generator(**{**NAME, "t": 5}).integers(0, 2**32, 3, dtype=np.uint32)
    fresh = SeededStreams(8).generator(**{**NAME, "t": 5}).integers(0, 2**32, 3, dtype=np.uint32)
    assert after.tolist() == fresh.tolist()


def test_seeded_streams_look_independent():
    streams = SeededStreams(1)
    table = np.array([[numbers(streams, n=50, site=s, t=t) for t in range(1, 11)] for s in range(10)])
    flat = table.reshape(100, 50)
    correlation = np.corrcoef(flat) - np.eye(100)
    assert np.abs(correlation).max() < 0.75
    assert abs(flat.mean()) < 5 / np.sqrt(flat.size)


@pytest.mark.parametrize("seed", [-1, 1.5, None, "0", True])
def test_bad_seeds(seed):
    with pytest.raises(ParameterError, match="`seed` must be"):
        SeededStreams(seed)

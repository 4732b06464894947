"""Which site delays the run, from reports of neighbours; false reports do little harm."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import taciturn.sites.wire.whereabouts as module
from taciturn.sites.wire.whereabouts import FADES, MOST, NetworkSeen, Whereabouts, read_seen, seen, write_seen

NAMES = ("alpha", "beta", "gamma", "delta")


def told(*sites: Whereabouts) -> None:
    """Each asks the one after it, from the last to the first."""
    for asks, answers in reversed(list(itertools.pairwise(sites))):
        asks.told(answers.pack())


@pytest.fixture
def line() -> list[Whereabouts]:
    return [Whereabouts(i, NAMES) for i in range(4)]


def test_last_site_of_a_waiting_chain_is_named(line):
    for i in range(3):
        line[i].be(7 - i, [NAMES[i + 1]])
    line[3].be(4, [])
    told(*line)
    assert line[0].blockers() == line[1].blockers() == line[2].blockers() == ("delta",)
    assert {j: p.t for j, p in line[0].known().items()} == {0: 7, 1: 6, 2: 5, 3: 4}


def test_silent_site_is_named(line):
    line[0].be(3, ["beta"])
    line[1].be(2, ["gamma"])
    told(line[0], line[1])
    assert line[0].blockers() == ("gamma",)


def test_two_sites_waiting_for_each_other_name_no_culprit(line):
    line[0].be(3, ["beta"])
    line[1].be(3, ["alpha"])
    told(line[0], line[1])
    assert line[0].blockers() == ()


def test_stale_reports_expire_and_the_latest_report_wins(line, monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    line[0].be(3, ["beta"])
    line[1].be(3, ["gamma"])
    before = line[1].pack()
    clock[0] += 2.0
    line[1].be(4, ["delta"])
    told(line[0], line[1])
    line[0].told(json.dumps([[*json.loads(before)[0][:2], 5.0, [2]]]).encode())
    assert line[0].blockers() == ("delta",)
    clock[0] += FADES
    assert line[0].blockers() == ("beta",)


def test_a_report_is_as_old_as_its_sender_says_in_tenths_of_a_second(line, monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    line[2].be(3, ["delta"])
    told(line[1], line[2])
    clock[0] += 7.0
    told(line[0], line[1])
    assert line[0].known()[2].at == 1000.0


def test_reports_about_this_site_are_ignored(line):
    line[0].be(3, ["beta"])
    line[0].told(b"[[0, 9, 0, []]]")
    assert line[0].known()[0].t == 3


NUMBERS = st.integers() | st.floats()
REPORTS = st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS, st.lists(NUMBERS, max_size=9)), max_size=4)


@given(st.binary(max_size=200) | REPORTS.map(lambda report: json.dumps(report).encode()))
def test_arbitrary_answers_are_accepted_or_ignored_without_error(data):
    site = Whereabouts(0, NAMES)
    site.be(1, ["beta"])
    site.told(data)
    assert all(j < 4 and max(p.waits_for, default=0) < 4 for j, p in site.known().items())
    assert set(site.blockers()) <= set(NAMES)


def test_an_answer_stays_small():
    names = [f"s{i}" for i in range(2000)]
    site = Whereabouts(0, names)
    for i in range(1, 2000):
        site.told(json.dumps([[i, 1, 0, []]]).encode())
    site.be(1, names[1:])
    assert len(site.pack()) <= 64 * MOST


def test_status_file_matches_and_garbage_is_ignored(line, tmp_path):
    line[0].be(3, ["beta"], since=5e8)
    write_seen(tmp_path, line[0], {"beta": (2, 4e8)})
    was = read_seen(tmp_path)
    assert was.blockers == ("beta",) and was.since == 5e8 and was.of("alpha").waits_for == ("beta",)
    assert was.heard == {"beta": (2, 4e8)}
    assert was.sites[0].at == pytest.approx(seen(line[0]).sites[0].at, abs=1.0)
    (tmp_path / "network.json").write_text('{"sites": [1]}')
    assert read_seen(tmp_path) == NetworkSeen()

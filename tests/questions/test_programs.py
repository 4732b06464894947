"""User programs: in a process without rows, hostile programs, and installed private halves."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import numpy as np
import pytest

import taciturn as tt
from taciturn import expressions as ex
from taciturn.core.errors import ParameterError
from taciturn.methods.programs import own_program
from taciturn.questions.question import PublicTable
from taciturn.questions.shipped import apart
from taciturn.questions.shipped.own import AskProgram
from taciturn.statistics.counting import CountWishes, ask_here

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
HOSTILE = """
import itertools, json, os, time
import numpy as np
import taciturn as tt
from taciturn import expressions as ex

class Usual(tt.Program):
    def steps(self, facts):
        return [tt.Step("a", 1, 1.0)]
    def start(self):
        return 0
    def query(self, state):
        return tt.Query(ex.columns(0))
    def advance(self, state, total):
        return state + 1
    def result(self, state):
        return state

class Endless(Usual):
    def steps(self, facts):
        return (tt.Step("a", 1, 1.0) for _ in itertools.count())

class Asleep(Usual):
    def query(self, state):
        time.sleep(3600)

class Wide(Usual):
    def query(self, state):
        part = ex.columns()
        for _ in range(6):
            part = ex.outer(part)
        return tt.Query(ex.norm(part))

class Greedy(Usual):
    def query(self, state):
        return np.zeros(10**12)

class Talks(Usual):
    def query(self, state):
        print("{}")
        return tt.Query(ex.columns(0))

class Gone(Usual):
    def query(self, state):
        import os
        os._exit(3)

class Code(Usual):
    def query(self, state):
        return tt.Query(ex.installed(1))

class Deep(Usual):
    def query(self, state):
        part = ex.columns(0)
        for _ in range(300):
            part = part + 1.0
        return tt.Query(part)

class Longer(Usual):
    def query(self, state):
        return tt.Query(ex.columns(0, 1))

class Heavy(Usual):
    def query(self, state):
        part = ex.affine(ex.columns(), "A")
        for _ in range(50):
            part = ex.affine(part, "A")
        return tt.Query(ex.norm(part), {"A": np.zeros((8, 8))})

class Raw(Usual):
    def __init__(self, answer):
        self.answer = answer
    def query(self, state):
        os.write(1, self.answer.encode() * (100_000 if self.answer == "[" else 1) + b"\\n")
        time.sleep(3600)

class Deaf(Usual):
    def steps(self, facts):
        return [tt.Step("a", 20_000, 1.0), tt.Step("b", 1, 1.0)]
    def query(self, state):
        if state == 0:
            return tt.Query(ex.Constant((0.0,) * 20_000))
        expression = {"form": "Constant", "numbers": [0.0]}
        os.write(1, json.dumps({"expression": expression, "parameters": {}}).encode() + b"\\n")
        time.sleep(3600)

class Drips(Usual):
    def query(self, state):
        while True:
            os.write(1, b" ")
            time.sleep(0.01)
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A module that every process of this test can import, and how a job names one of its classes."""
    (tmp_path / "hostile_programs.py").write_text(HOSTILE)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{EXAMPLES}")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(EXAMPLES))
    sha256 = hashlib.sha256(HOSTILE.encode()).hexdigest()
    yield lambda name, **keys: AskProgram(program=f"hostile_programs:{name}", sha256=sha256, **keys)
    sys.modules.pop("hostile_programs", None)


def example(name, **keys):
    sha256 = hashlib.sha256((EXAMPLES / "own_programs.py").read_bytes()).hexdigest()
    return AskProgram(program=f"own_programs:{name}", sha256=sha256, **keys)


def asked(question, rows, **wishes):
    usual = {"colluding": 1, "random_state": 0, "large_delta": True}
    (found,) = ask_here(
        [question],
        PublicTable(width=rows.shape[1]),
        rows,
        len(rows),
        CountWishes(2.0, **(usual | wishes)),
        "p",
    )
    return found


@pytest.mark.process
def test_program_in_a_separate_process_gives_the_same_result(installed):
    values = np.random.default_rng(0).beta(2, 5, (2000, 1))
    from own_programs import Median

    here = tt.run_program(Median(6), values, epsilon=2.0, colluding=1, random_state=0)
    there = asked(example("Median", settings={"rounds": 6}), values)
    assert there.value == here.value and len(there.totals) == 6
    np.testing.assert_array_equal(np.concatenate(there.totals), np.concatenate(here.totals))
    assert there.certificate.run.marks == ()


@pytest.mark.process
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Endless", "`steps` must be 1 to|failed|more than"),
        ("Asleep", "took more than 2 seconds"),
        ("Wide", "a part with .* numbers for a row; at most 10,000,000 are allowed"),
        ("Greedy", "failed: .*Error"),
        ("Gone", "its process ended without an answer"),
        ("Code", "must be the whole expression"),
        ("Deep", "not nested too deeply|RecursionError"),
        ("Longer", "`length` of step 'a' must be 2"),
        ("Heavy", "numbers for a row; a program of .* may compute at most 1,000"),
        ("Drips", "took more than 2 seconds"),
    ],
)
def test_a_hostile_program_is_refused_before_anything_is_drawn(name, words, installed, monkeypatch):
    from taciturn.methods.sums import sums

    monkeypatch.setattr(apart, "SECONDS", 2.0 if name in ("Asleep", "Drips") else 30.0)
    monkeypatch.setattr(own_program, "_MOST_WORK", 1e5 if name == "Heavy" else 1e13)
    monkeypatch.setattr(sums, "draw", lambda *_, **__: pytest.fail("drawn"))
    with pytest.raises(ParameterError, match=words) as refused:
        asked(installed(name), np.random.default_rng(0).uniform(-1, 1, (200, 8)))
    assert "\n" not in str(refused.value)


@pytest.mark.process
@pytest.mark.parametrize(
    "answer",
    [
        "[",
        "5",
        '{"expression": 1}',
        '{"expression": {"form": []}, "parameters": {}}',
        '{"expression": {"form": "Columns", "chosen": [[[0]]]}, "parameters": {}}',
        '{"expression": {"form": "Columns", "chosen": [0]}, "parameters": {"w": [[1], [2, 3]]}}',
        '{"error": "\\u001b[2Ja long story"}',
    ],
)
def test_an_answer_of_another_form_ends_the_run_with_one_line(answer, installed):
    with pytest.raises(ParameterError, match=r"cannot be read|`expression`|`chosen`|failed: .*story") as told:
        asked(installed("Raw", settings={"answer": answer}), np.zeros((200, 2)))
    assert str(told.value).isprintable()


@pytest.mark.process
def test_a_program_that_answers_and_reads_no_further_question_does_not_hold_up_a_site(installed, monkeypatch):
    monkeypatch.setattr(apart, "SECONDS", 5.0)
    with pytest.raises(ParameterError, match="took more than 5 seconds"):
        asked(installed("Deaf"), np.zeros((200, 2)))


@pytest.mark.process
def test_all_answers_of_a_program_share_a_limit(installed, monkeypatch):
    monkeypatch.setattr(apart, "IN_ALL", 0.0)
    with pytest.raises(ParameterError, match="or 0 seconds for all"):
        asked(installed("Usual"), np.zeros((200, 2)))


@pytest.mark.process
def test_printed_output_of_a_program_is_ignored(installed):
    assert asked(installed("Talks"), np.zeros((200, 2))).value == 1


@pytest.mark.process
def test_a_program_is_named_by_the_digest_of_its_file(installed):
    question = AskProgram(program="hostile_programs:Usual", sha256="0" * 64)
    with pytest.raises(ParameterError, match="must have the SHA-256"):
        asked(question, np.zeros((200, 2)))
    with pytest.raises(ParameterError, match="finds no module nowhere_at_all"):
        asked(AskProgram(program="nowhere_at_all:Usual", sha256="0" * 64, installed=True), np.zeros((200, 2)))


class First(tt.Program):
    """The mean of the first column."""

    def steps(self, facts):
        return [tt.Step("mean", 1, 1.0)]

    def start(self):
        return None

    def query(self, state):
        return tt.Query(ex.columns(0))

    def advance(self, state, total):
        return total.values[0]

    def result(self, state):
        return state


def test_rows_that_overflow_or_are_no_numbers_add_zeros():
    rows = np.full((400, 1), 0.5)
    rows[:5, 0] = [np.nan, np.inf, -np.inf, 1e308, -1e308]
    clean = rows.copy()
    clean[:3], clean[3:5] = 0.0, [[1.0], [-1.0]]
    usual = {"epsilon": 2.0, "colluding": 1, "random_state": 0, "large_delta": True}
    found, expected = (tt.run_program(First(), one, **usual).value for one in (rows, clean))
    assert found == pytest.approx(expected, abs=1e-9)


class Stateful(tt.Program):
    """Remembers rows: a thousand times what its clip suggests could leak."""

    steps = start = query = advance = result = None  # type: ignore[assignment]
    seen = np.zeros(2)

    @staticmethod
    def private(row, parameters):
        Stateful.seen = Stateful.seen + row
        return Stateful.seen


class Pure(Stateful):
    @staticmethod
    def private(row, parameters):
        return row * parameters["w"]


def test_the_purity_check_finds_accidents():
    rows = np.random.default_rng(0).uniform(-1, 1, (30, 2))
    assert tt.check_purity(Pure(), rows, length=2, parameters={"w": [1.0, 2.0]}) == []
    assert len(tt.check_purity(Stateful(), rows, length=2)) >= 3
    with pytest.raises(ParameterError, match="must have a function `private`"):
        tt.check_purity(object.__new__(type("None_", (Stateful,), {"private": None})), rows, length=2)


@pytest.mark.parametrize("fail", [lambda: 1 / 0, lambda: sys.exit("a row")])
def test_an_installed_private_half_is_marked_and_its_failures_are_zeros(installed, fail):
    class Fails(tt.Program):
        private = staticmethod(lambda row, parameters: fail() if row[0] > 0 else row)

        def steps(self, facts):
            return [tt.Step("rows", 2, 1.0)]

        def start(self):
            return None

        def query(self, state):
            return tt.Query(ex.installed(2))

        def advance(self, state, total):
            return total.values

        def result(self, state):
            return state

    rows = np.tile([[0.5, 0.5], [-0.5, 0.0]], (500, 1))
    found = tt.run_program(Fails(), rows, epsilon=50.0, colluding=1, random_state=0, large_delta=True)
    np.testing.assert_allclose(found.value, [-0.25, 0.0], atol=0.01)
    assert "purity not checked" in found.certificate.run.marks[0]
    assert "purity not checked" in found.certificate.statement() + found.certificate.to_json()

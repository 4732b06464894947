"""ProgramApart: runs the public half of a user's installed program in a separate process, which has no rows.

A job names the program (a subclass of `taciturn.Program`) and the SHA-256 of its file. A file with another
SHA-256 is refused, so that all sites run the same program.

The public half of a program looks at the noisy totals so far, and chooses the next sum over the rows of all
sites. The site sends all totals so far with each request, so the process can be restarted at any time. The
process answers with data: public numbers, and an expression that uses only a fixed set of functions. Its time
and memory are limited. If the process fails, the run ends at this site with a one-line error.

    site  ->  {"ask": "steps" | "query" | "result", "facts": [...], "totals": [[values, std], ...]}
    site  <-  {"steps": [...]} | {"expression": ..., "parameters": {...}} | {"value": ...} | {"error": "..."}
"""

from __future__ import annotations

import hashlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ...core.errors import ParameterError
from ...methods.programs.own_program import MOST_STEPS, Program, ProgramFacts, Query, Step, Total
from ...methods.sums.expression_json import expression_from, expression_to

SECONDS, IN_ALL = 60.0, 3600.0  # the time limits for one answer, and for all answers of a run
MEMORY, LONGEST = 2**31, 2**24  # the process may use 2 GiB of memory; an answer may have 16 MiB

T = TypeVar("T")


class ProgramApart(Program):
    """The public half of an installed program, run in another process. Its state is the tuple of totals."""

    def __init__(self, name: str, sha256: str, settings: Mapping[str, Any], private: Any = None) -> None:
        self.name, self._command = name, [sys.executable, "-m", __name__, name, sha256, json.dumps(settings)]
        self._process: subprocess.Popen[bytes] | None = None
        self.private, self._left = private, IN_ALL

    def steps(self, facts: ProgramFacts) -> Sequence[Step]:
        return self._ask({"ask": "steps", "facts": list(facts)}, _read_steps)

    def start(self) -> tuple[Total, ...]:
        return ()

    def query(self, state: tuple[Total, ...]) -> Query:
        return self._ask({"ask": "query"} | self._news(state), _read_query)

    def advance(self, state: tuple[Total, ...], total: Total) -> tuple[Total, ...]:
        return (*state, total)

    def result(self, state: tuple[Total, ...]) -> Any:
        return self._ask({"ask": "result"} | self._news(state), lambda answer: answer["value"])

    def _news(self, state: tuple[Total, ...]) -> dict[str, Any]:
        """All totals so far, for a request. The process itself keeps no state between two requests."""
        return {"totals": [[total.values.tolist(), total.std] for total in state]}

    def _ask(self, request: dict[str, Any], read: Callable[[Any], T]) -> T:
        """Send a request, and parse the answer with `read`. An answer that cannot be parsed ends the run."""
        start = time.monotonic()
        try:
            answer = json.loads(self._exchange(json.dumps(request).encode() + b"\n"))
            if "error" in answer:
                told = "".join(sign for sign in str(answer["error"])[:200] if sign.isprintable())
                raise ParameterError(f"`program` {self.name} failed: {told}.")
            return read(answer)
        except OSError as error:
            self.close()
            raise ParameterError(f"`program` {self.name}: its process ended without an answer.") from error
        except ParameterError:
            self.close()
            raise
        except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
            self.close()
            raise ParameterError(f"`program` {self.name} gave an answer that cannot be read.") from error
        finally:
            self._left -= time.monotonic() - start

    def _exchange(self, line: bytes) -> bytes:
        """Send one line and read one line. The time limit holds even if the process reads nothing."""
        process = self._started()
        if process.stdin is None or process.stdout is None:
            raise OSError("no pipe")  # `_ask` catches it
        asked, told = process.stdin.fileno(), process.stdout.fileno()
        os.set_blocking(asked, False)
        rest, found = memoryview(line), bytearray()
        until = time.monotonic() + min(SECONDS, self._left)
        while rest or not found.endswith(b"\n"):
            wait = max(until - time.monotonic(), 0.0)
            readable, writable, _ = select.select([told], [asked] if rest else [], [], wait)
            if wait == 0.0 or not readable + writable:
                raise ParameterError(
                    f"`program` {self.name} took more than {SECONDS:g} seconds for one answer, or "
                    f"{IN_ALL:g} seconds for all answers of the run."
                )
            if writable:
                rest = rest[os.write(asked, rest[: 2**16]) :]
            if readable:
                part = os.read(told, 2**16)
                if not part:
                    raise OSError("ended")  # `_ask` catches it
                found += part
            if len(found) > LONGEST:
                raise ParameterError(f"`program` {self.name} gave an answer of more than {LONGEST} bytes.")
        return bytes(found)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd="/",
            )
        return self._process

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
            self._process = None

    def __del__(self) -> None:
        self.close()


def _read_steps(answer: Any) -> list[Step]:
    return [
        Step(str(name)[:100], int(length), float(bound), float(share), aligned is True)
        for name, length, bound, share, aligned in answer["steps"]
    ]


def _read_query(answer: Any) -> Query:
    values = {str(name): np.array(value, dtype=np.float64) for name, value in answer["parameters"].items()}
    return Query(expression_from(answer["expression"]), values)


def serve(name: str, sha256: str, settings: str) -> None:
    """Answer requests to an installed program, line by line, until the pipe is closed."""
    _limit_memory()
    out, sys.stdout = sys.stdout, sys.stderr  # so that the program's own prints are not read as answers
    program: Program | None = None
    for line in sys.stdin:
        try:
            program = program or load_program(name, sha256, json.loads(settings))
            answer = _answer(program, json.loads(line))
            text = json.dumps(answer, allow_nan=True)
        except Exception as error:  # any failure of the program is reported in one line
            text = json.dumps({"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]})
        out.write(text + "\n")
        out.flush()


def _answer(program: Program, request: dict[str, Any]) -> dict[str, Any]:
    if request["ask"] == "steps":
        steps = islice(program.steps(ProgramFacts(*request["facts"])), MOST_STEPS + 1)
        return {"steps": [[one.name, one.length, one.bound, one.share, one.aligned] for one in steps]}
    state = program.start()
    for values, std in request["totals"]:
        state = program.advance(state, Total(np.array(values), std))
    if request["ask"] == "result":
        return {"value": plain_value(program.result(state))}
    query = program.query(state)
    values = {name: np.asarray(value, dtype=np.float64).tolist() for name, value in query.parameters.items()}
    return {"expression": expression_to(query.expression), "parameters": values}


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # this system cannot limit the memory
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def load_program(name: str, sha256: str, settings: Mapping[str, Any]) -> Program:
    """The installed program, if its file has the SHA-256 that the job names; else an error."""
    module, made = name.split(":")
    found = program_digest(name)
    if found != sha256:
        raise ParameterError(
            f"`program` {name} must have the SHA-256 that the job names; the installed file has {found}."
        )
    kind = getattr(import_module(module), made, None)
    if not (isinstance(kind, type) and issubclass(kind, Program)):
        raise ParameterError(f"`program` {name} must be a class derived from taciturn.Program.")
    return kind(**settings)


def program_digest(name: str) -> str:
    """SHA-256 of the file of an installed program."""
    module = name.split(":")[0]
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        raise ParameterError(f"`program` {name} must be installed here: Python finds no module {module}.")
    return hashlib.sha256(Path(spec.origin).read_bytes()).hexdigest()


def plain_value(value: Any) -> Any:
    """A result as JSON values; a value that JSON does not have becomes text."""
    if isinstance(value, Mapping):
        return {str(key): plain_value(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(one) for one in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain_value(value.tolist())
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


if __name__ == "__main__":
    serve(*sys.argv[1:4])

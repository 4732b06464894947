"""`taciturn plan`, `certify` and `verify`, with a change of each option that must matter or be refused."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from support.parameters import Change, Entry, Fresh
from taciturn.cli import main  # noqa: F401 - adds the commands
from taciturn.cli.app import app, run
from taciturn.core.errors import ParameterError

COMMANDS = ("plan", "certify", "verify")
PRINTED = "the same in another form"


def options(command: str) -> dict[str, str]:
    """Every parameter of a command, and how it is written; an argument is written without a name."""
    found = typer.main.get_command(app).commands[command].params
    return {p.name: p.opts[0] if p.param_type_name == "option" else "" for p in found}


def _call(command: str, **given: Any) -> Any:
    """The output, or what was complained of."""
    written, arguments = options(command), [command]
    for name, value in given.items():
        if value is not None and value is not False:
            arguments += [part for part in (written[name], "" if value is True else str(value)) if part]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(arguments)
    if code:
        raise ParameterError(" ".join(err.getvalue().split()))
    return out.getvalue()


def _entry(command: str, situation: str, base: dict[str, Any], changes: dict[str, Any]) -> Entry:
    def call(**given: Any) -> Any:
        folder = next((Path(v).parent for v in given.values() if isinstance(v, Path)), None)
        found = _call(command, **given)
        written = sorted(folder.rglob("*.*")) if folder is not None else []
        return [found, *(_content(path) for path in written if path.is_file())]

    return Entry(f"taciturn {command}", situation, call, base, changes, {"as_json": PRINTED})


def _content(path: Path) -> Any:
    """What a file says; of a certificate the facts alone."""
    text = path.read_text()
    return [json.loads(text).get(name) for name in ("run", "sites")] if path.suffix == ".json" else text


def command_entries() -> Iterator[Entry]:
    """All of them."""
    yield from _plans()
    yield from _certificates()
    yield from _verified()


def _plans() -> Iterator[Entry]:
    base = {"epsilon": 1, "samples": 300, "sites": 4, "dimension": 2, "graph": "ring", "as_json": True}
    changes = {
        "epsilon": 2,
        "samples": "200,300,300,300",
        "sites": 5,
        "dimension": 3,
        "delta": 1e-6,
        "large_delta": Change(True, {"delta": 0.1}),
        "graph": "complete",
        "C": Change(2.0, {"regularization": 0.5}),
        "regularization": 0.5,
        "rounds": 3,
        "max_rounds": 3,
        "noise": "gaussian",
        "loss": "smooth-hinge",
        "unit": "person",
        "outputs": 3,
        "schema": Change(Fresh("none.json"), stops=ParameterError),
        "effort": "full",
        "seed": 1,
        "toml": Fresh("begin"),
    }
    quick = base | {"effort": "quick", "rounds": 2, "noise": "gaussian"}
    more = {"colluding": 1, "noise": "norm", "whiten": Change(True, {"rounds": 3})}
    yield _entry("plan", "trusting nobody", quick, changes | more)
    given = changes | {
        "whiten": True,
        "colluding": 0,
        "graph": Change("complete", {"toml": Fresh("begin"), "as_json": False}),
    }
    yield _entry("plan", "colluding", base | {"colluding": 1}, given)


def _certificates() -> Iterator[Entry]:
    base = {"noise": "norm", "rate": 3, "C": 5, "samples": 100, "degree": 2, "penalty": 0.5}
    base |= {"dimension": 2, "rounds": 2, "out": Fresh("certificate.json")}
    changes = {
        "file": Change(Fresh("none.json"), stops=ParameterError),
        "method": "primal",
        "noise": Change("gaussian", {"rate": None, "std": 3, "noise": None}, stops=ParameterError),
        "C": 6,
        "samples": 200,
        "degree": 3,
        "penalty": 0.6,
        "penalty_ratio": 1.5,
        "rate": 4,
        "rate_ratio": 1.5,
        "std": 3,
        "std_ratio": 1.5,
        "dimension": 3,
        "rounds": 3,
        "delta": 1e-6,
        "epsilon": 2,
        "colluding": 2,
        "dual_step": 0.4,
        "loss": "smooth-hinge",
        "regularization": 0.5,
        "sites": 6,
        "outputs": 2,
        "tol": 1e-6,
        "output_rate": 1e3,
        "output_std": 1e-3,
        "out": None,
        "registry": Fresh("entry.yaml"),
        "card": Fresh("card.md"),
    }
    yield _entry("certify", "norm noise", base, changes)
    gaussian = {"noise": "gaussian", "rate": None, "std": 3}
    some = ("std", "std_ratio", "rate", "rate_ratio", "output_rate", "output_std", "epsilon")
    yield _entry("certify", "gaussian", base | gaussian, {n: changes[n] if n != "std" else 4 for n in some})
    none = {"noise": "none", "rate": None}
    some = ("method", "std", "std_ratio", "rate", "rate_ratio", "output_rate", "output_std", "colluding")
    yield _entry("certify", "no noise", base | none, {name: changes[name] for name in some})
    yield _entry(
        "certify",
        "dual",
        base | {"method": "dual"},
        {name: changes[name] for name in ("penalty_ratio", "dual_step")},
    )
    masked = {"method": "masked", "sites": 5, "samples": 100, "dimension": 2, "epsilon": 1, "colluding": 1}
    given = changes | {"method": Change(None, stops=ParameterError)}
    yield _entry("certify", "masked", masked | {"out": Fresh("certificate.json")}, given)


def _verified() -> Iterator[Entry]:
    """Files are read, so that every call makes its own first."""
    settings = "--noise norm --rate 3 --C 5 --samples 100 --degree 2 --penalty 0.5 --dimension 2 --rounds 2"

    def verified(file: Path, **given: Any) -> Any:
        if file.name == "certificate.json":
            run(["certify", *settings.split(), "--out", str(file)])
        return _call("verify", file=file, **given)

    yield Entry(
        "taciturn verify",
        "a certificate",
        verified,
        {"file": Fresh("certificate.json")},
        {
            "file": Change(Fresh("none.json"), stops=ParameterError),
            "delta": 1e-3,
            "authority": Fresh("authority.pem"),
            "out": Fresh("copy.json"),
            "registry": Fresh("entry.yaml"),
            "card": Fresh("card.md"),
        },
        {"as_json": PRINTED},
    )

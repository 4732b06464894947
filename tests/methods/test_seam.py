"""The method interface: few places charge, and what branches on the method outside of it is listed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import taciturn

SRC = Path(taciturn.__file__).parent
CHARGING = ("charge", "charge_round", "charge_all")
ON_THE_WAY_OUT = {
    "methods/loop.py: charged": "a message that leaves its node in one process or on a cluster",
    "methods/loop.py: charge_again": "rounds before a checkpoint, on the new ledger of a simulation",
    "sites/protocol/catching_up.py: release": "the protocol's effect: what a round of an attempt costs",
}
"""What pays for a release."""
PRICED = {
    "methods/base.py: price": "what a run will cost",
    "methods/admm/tables.py: price_run": "what a run will cost, from its tables",
    "sites/rounds/store.py: charged_ledger": "a ledger made of the charges that are stored",
    "sites/rounds/evidence.py: cost_of": "what another site's frames have cost it",
}
"""What fills a ledger of its own with charges that nobody released."""
PASSED_ON = {
    "privacy/ledger/memory.py: charge": "one charge is a round of one site",
    "privacy/ledger/memory.py: charge_round": "a round, one charge after the other",
    "privacy/ledger/shared.py: charge": "several outputs, one charge",
    "privacy/ledger/shared.py: charge_round": "several outputs, one charge",
    "auditing/observer.py: charge_later": "an audit drives the loop itself",
    "auditing/observer.py: earlier_rounds": "an audit draws the moments itself",
    "auditing/masked_audit.py: charge": "an audit drives the loop itself",
}
"""Ledgers among each other, and audits."""

NODES = {
    "methods/admm/node.py: Node": "the paper's methods",
    "methods/sums/node.py: SumsNode": "programs of sums",
    "methods/own_method.py: OwnNode": "a user's own method",
    "methods/whitened_penalty.py: WhitenedNode": "both of the first two, one after the other",
    "runtime/ray/driver.py: Driver": "the loop of a cluster: it asks shards, which hold nodes of the others",
}
"""The classes that the loop can drive: one for each family of methods, whatever machine it runs on."""

KINDS = {"masked", "penalty", "dual", "primal", "admm", "madmm", "own", "OWN", "none"}
CLASSES = {
    "ADMM",
    "ADMMMethod",
    "ADMMSite",
    "Counts",
    "DualPerturbation",
    "MADMM",
    "MaskedDescent",
    "PenaltyPerturbation",
    "PreparedADMM",
    "PreparedOwn",
    "PreparedSums",
    "PreparedWhitened",
    "PrimalPerturbation",
    "SumTables",
    "SumsSite",
    "Tables",
    "WhitenedSite",
}
MAY_ASK = "methods"
TEXTS = {
    "privacy/certificate/assumptions.py: _accountant": "theorems",
    "privacy/certificate/assumptions.py: _last": "status and conditions",
    "privacy/certificate/assumptions.py: conditions": "conditions",
    "privacy/certificate/assumptions.py: status": "status",
    "privacy/certificate/assumptions.py: theorems": "theorems",
    "privacy/certificate/masked_words.py: observer": "whom a figure assumes as the observer",
    "privacy/certificate/statement.py: _cost": "statement",
    "privacy/certificate/statement.py: _messages": "statement",
    "privacy/certificate/statement.py: _reality": "statement",
    "privacy/ledger/budget.py: _against": "against whom the entry of a budget holds",
    "report/brief.py: marks": "words about a certificate",
    "report/card.py: _floats": "words about a certificate",
}
"""Functions that word a certificate or its figures: a text may say which method it is about.

No other function outside of the room of methods asks which method it is: it answers through the method.
Asking what a method can do is another question (`mechanism.inside` of a run's facts, `padded` of a prepared
method, `own` of a job's settings): a new method answers it in one place, and these functions do not change.
"""


def functions(path: Path) -> Iterator[tuple[str, ast.AST]]:
    """Every node of a module with the name of the innermost function around it."""

    def walk(node: ast.AST, name: str) -> Iterator[tuple[str, ast.AST]]:
        for child in ast.iter_child_nodes(node):
            inner = child.name if isinstance(child, ast.FunctionDef) else name
            yield inner, child
            yield from walk(child, inner)

    place = path.relative_to(SRC).as_posix()
    for name, node in walk(ast.parse(path.read_text(encoding="utf-8")), "module"):
        yield f"{place}: {name}", node


def found(wanted: object) -> set[str]:
    """The places in src whose code `wanted` picks."""
    every = (entry for path in sorted(SRC.rglob("*.py")) for entry in functions(path))
    return {place for place, node in every if wanted(place, node)}  # type: ignore[operator]


def charges(place: str, node: ast.AST) -> bool:
    """Whether this is a call that charges a ledger."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHARGING


def asks(place: str, node: ast.AST) -> bool:
    """Whether this asks which method it is, outside of the room of methods."""
    if place.split("/")[0] == MAY_ASK:
        return False
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        return node.attr == "masked"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
        return bool(names_in(node.args[1]) & CLASSES)
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        if any(texts_in(side) & CLASSES for side in sides):  # type(method).__name__ == "ADMM"
            return True
        if any("discrete" in texts_in(side) for side in sides):  # the noise of masked sums alone
            return True
        told = [texts_in(side) | names_in(side) for side in sides]
        return any(of_method(side) for side in sides) and any(words & KINDS for words in told)
    if isinstance(node, ast.Match):
        return of_method(node.subject)
    return False


def names_in(node: ast.AST) -> set[str]:
    """The names in an expression, with or without their module."""
    inner = list(ast.walk(node))
    return {n.id for n in inner if isinstance(n, ast.Name)} | {
        n.attr for n in inner if isinstance(n, ast.Attribute)
    }


def texts_in(node: ast.AST) -> set[str]:
    return {n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def of_method(node: ast.AST) -> bool:
    """Whether this is a `method`: a name, an attribute or an entry."""
    if isinstance(node, ast.Subscript):
        return texts_in(node.slice) == {"method"}
    return isinstance(node, ast.Name | ast.Attribute) and (getattr(node, "id", "") or node.attr) == "method"


def test_only_the_loop_and_the_store_of_a_site_pay_for_a_release() -> None:
    assert found(charges) == {*ON_THE_WAY_OUT, *PRICED, *PASSED_ON}


def test_a_family_of_methods_has_one_node() -> None:
    """One process, a cluster and a real site use the same node, with a leading axis of sites."""
    nodes = set()
    for path in sorted(SRC.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            body = node.body if isinstance(node, ast.ClassDef) else []
            methods = {n.name: n for n in body if isinstance(n, ast.FunctionDef)}
            if {"message", "charges", "after"} <= set(methods):
                if not isinstance(methods["message"].body[-1], ast.Expr):  # a protocol has no body
                    nodes.add(f"{path.relative_to(SRC).as_posix()}: {node.name}")  # type: ignore[attr-defined]
    assert nodes == set(NODES)


def test_no_other_room_branches_on_the_method() -> None:
    """A new method must not need a change in an engine, an estimator, a site or a command."""
    assert found(asks) <= set(TEXTS), "answer through the method"
    assert set(TEXTS) <= found(asks), "drop the texts that ask no more"


def test_source_search_detects_planted_branches() -> None:
    seen = """
run.masked
isinstance(method, tt.MaskedDescent)
isinstance(x, (int, PreparedSums))
run.method == "masked"
given["method"] in ("dual", "penalty")
"masked" != method
self.method in ("primal", OWN)
isinstance(site.method, SumsSite)
run.noise == "discrete"
type(method).__name__ == "MaskedDescent"
"""
    assert [asks("cli/a.py", node.value) for node in ast.parse(seen).body] == [True] * 10  # type: ignore[attr-defined]
    for room in ("privacy", "sites/rounds", "report"):
        assert asks(f"{room}/a.py", ast.parse("run.masked").body[0].value)  # type: ignore[attr-defined]
    assert not asks("methods/a.py", ast.parse("run.masked").body[0].value)  # type: ignore[attr-defined]
    unseen = 'masked.plan()\nisinstance(x, Problem)\nnoise == "none"\nrun.method\nmethod == chosen'
    assert not any(asks("cli/a.py", node) for node in ast.walk(ast.parse(unseen)))
    assert charges("a", ast.parse("ledger.charge_round(c)").body[0].value)  # type: ignore[attr-defined]

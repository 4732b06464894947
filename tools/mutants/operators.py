"""The faults that can be planted in a source text. Each fault replaces one small piece of the text.

Every operator is a row of a table. Docstrings, annotations, decorators, error messages and `repr` get no
faults, because no guarantee depends on them.
"""

from __future__ import annotations

import ast
import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

COMPARE = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
ARITHMETIC = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.Pow: ("**", "*"),
    ast.FloorDiv: ("//", "*"),
}
LOGIC = {ast.And: ("and", "or"), ast.Or: ("or", "and")}
CALLS = {
    "up": "down",
    "down": "up",
    "max": "min",
    "min": "max",
    "maximum": "minimum",
    "minimum": "maximum",
    "ceil": "floor",
    "floor": "ceil",
    "all": "any",
    "any": "all",
}
_WORDS = ("__repr__", "_repr_html_", "__str__", "plot")


@dataclass(frozen=True)
class Mutant:
    """One fault: at this place of the file, `new` replaces `old`."""

    path: str
    line: int
    start: int
    old: str
    new: str

    def planted(self, text: str) -> str:
        """The text with the fault planted."""
        stop = self.start + len(self.old)
        if text[self.start : stop] != self.old:
            raise ValueError(f"{self.path} has changed since its mutants were listed.")
        return text[: self.start] + self.new + text[stop:]

    @property
    def name(self) -> str:
        return f"{self.path}:{self.line}: {_short(self.old)} -> {_short(self.new)}"


def mutants(path: str, text: str) -> list[Mutant]:
    """All faults that can be planted in a file. `is_python` checks later which of the chosen ones compile."""
    found = {}
    for node, old, new in _swaps(text):
        start = _offset(text, node.lineno, node.col_offset)
        found[start, old, new] = Mutant(path, node.lineno, start, old, new)
    return list(found.values())


@dataclass(frozen=True)
class _Place:
    """The start of a token without a node in the syntax tree, such as an operator."""

    lineno: int
    col_offset: int


def _swaps(text: str) -> Iterator[tuple[ast.AST | _Place, str, str]]:
    for node in _judged(ast.parse(text)):
        segment = _segment(text, node)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            yield from _between(text, node.left, node.comparators[0], COMPARE[type(node.ops[0])])
        elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
            yield from _between(text, node.left, node.right, ARITHMETIC[type(node.op)])
        elif isinstance(node, ast.BoolOp):
            yield from _between(text, node.values[0], node.values[1], LOGIC[type(node.op)])
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield node, segment, f"({_segment(text, node.operand)})"
        elif isinstance(node, ast.Constant) and type(node.value) in (bool, int, float):
            yield node, segment, _other_constant(node.value)
        elif isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            called = _segment(text, node.func)
            if name in CALLS:
                yield node.func, called, called.removesuffix(name) + CALLS[name]
            if name in ("up", "down"):
                yield node.func, called, ""
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield node, segment, "pass"


def _judged(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes on which a guarantee may depend."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom):
            continue
        if isinstance(child, ast.FunctionDef) and child.name in _WORDS:
            continue
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            child.decorator_list = []
        if isinstance(child, ast.arg | ast.AnnAssign):
            child.annotation = ast.Constant(None)
        if isinstance(child, ast.FunctionDef):
            child.returns = None
        yield child
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Call):
            yield from _judged(child.value)
        else:
            yield from _judged(child)


def _between(
    text: str, left: ast.expr, right: ast.expr, swap: tuple[str, str]
) -> Iterator[tuple[_Place, str, str]]:
    """Find the operator between its operands; only spaces and brackets are around it."""
    first = _offset(text, left.end_lineno or 0, left.end_col_offset or 0)
    last = _offset(text, right.lineno, right.col_offset)
    gap = text[first:last]
    at = gap.find(swap[0])
    if at >= 0:
        line = text.count("\n", 0, first + at) + 1
        begin = text.rfind("\n", 0, first + at) + 1
        yield _Place(line, len(text[begin : first + at].encode())), swap[0], swap[1]


def _other_constant(value: bool | int | float) -> str:
    if isinstance(value, bool):
        return str(not value)
    if isinstance(value, int):
        return str(value + 1)
    return "1.0" if value == 0 else repr(2 * value)


def _segment(text: str, node: Any) -> str:
    """The text of a node; empty if it has none, such as an empty list of arguments."""
    if getattr(node, "end_lineno", None) is None:
        return ""
    first = _offset(text, node.lineno, node.col_offset)
    return text[first : _offset(text, node.end_lineno, node.end_col_offset)]


def _offset(text: str, line: int, column: int) -> int:
    """The index in the text of a position in the syntax tree, whose columns count bytes."""
    lines, starts = _lines(text)
    return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())


@functools.lru_cache(maxsize=4)
def _lines(text: str) -> tuple[list[str], list[int]]:
    """The lines of the text, and the index at which each line begins."""
    lines = text.splitlines(keepends=True)
    return lines, list(itertools.accumulate(map(len, lines), initial=0))


def is_python(text: str) -> bool:
    """Whether a text with a planted fault compiles."""
    try:
        compile(text, "mutant", "exec")
    except SyntaxError:
        return False
    return True


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 50 else line[:47] + "..."

"""Expressions: the part of a user's program that sees rows, as a fixed set of functions of one row.

Clipping bounds a row's effect on a sum only if each row's vector depends on that row alone. A function that
keeps state, or looks at other rows, breaks this bound. So a program contains no code that sees rows: it
describes the vector of a row by an expression and public parameters, and taciturn computes the vectors. The
exception is `installed`, for code that the owner of the rows trusts.

>>> from taciturn import expressions as ex
>>> distance = ex.norm(ex.columns() - ex.parameter("centre"))
>>> distance.width(3, {"centre": (3,)})
1
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core import checks
from ...core.errors import ParameterError
from ...core.types import Array
from ...kernels import row_functions as rows

Shapes = Mapping[str, tuple[int, ...]]
Values = Mapping[str, Array]


class Expression(ABC):
    """A function of one row, whose value is a vector of `width` numbers."""

    def __post_init__(self) -> None:
        """Check the fields, because compiled loops would read past the end of a vector that is too short."""
        for name, value in vars(self).items():
            if not _FIELDS.get(name, lambda _: True)(value):
                wrong = f"`{name}` in an expression must not be empty or of a wrong type"
                raise ParameterError(f"{wrong}; got {value!r:.60}.")

    @property
    def aligned(self) -> bool:
        """Whether the inner product of the vectors of any two rows is at least 0."""
        return False

    @abstractmethod
    def width(self, columns: int, shapes: Shapes) -> int:
        """The length of the vector of a row with this many columns; raises if the parts do not fit."""

    @abstractmethod
    def of(self, X: Array, values: Values) -> Array:
        """The vectors (n, width) of rows (n, columns), each computed from its own row alone."""

    def of_units(self, X: Array, starts: NDArray[np.int64], values: Values) -> Array | None:
        """The vectors of persons. The rows of person u are X[starts[u] : starts[u + 1]].

        None means that a person's vector is the average of the vectors of the person's rows.
        """
        return None

    def __add__(self, other: Operand) -> Expression:
        return Elementwise("add", (self, as_expression(other)))

    def __sub__(self, other: Operand) -> Expression:
        return Elementwise("subtract", (self, as_expression(other)))

    def __mul__(self, other: Operand) -> Expression:
        return Elementwise("multiply", (self, as_expression(other)))

    def __truediv__(self, other: Operand) -> Expression:
        return Elementwise("divide", (self, as_expression(other)))

    def __gt__(self, other: Operand) -> Expression:
        return Elementwise("greater", (self, as_expression(other)))

    def __lt__(self, other: Operand) -> Expression:
        return Elementwise("less", (self, as_expression(other)))

    def __rsub__(self, other: Operand) -> Expression:
        return as_expression(other) - self

    def __neg__(self) -> Expression:
        return as_expression(0.0) - self

    __radd__, __rmul__ = __add__, __mul__


Operand = Expression | float | Sequence[float]

_ELEMENTWISE: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "greater": np.greater,
    "less": np.less,
}


@dataclass(frozen=True)
class Columns(Expression):
    """The row itself, or some of its columns."""

    chosen: tuple[int, ...] | None = None

    def width(self, columns: int, shapes: Shapes) -> int:
        if self.chosen is None:
            return columns
        wrong = [number for number in self.chosen if not 0 <= number < columns]
        if wrong:
            raise ParameterError(f"`columns` must be below {columns}, the row's width; got {wrong[0]}.")
        return len(self.chosen)

    def of(self, X: Array, values: Values) -> Array:
        return X if self.chosen is None else np.ascontiguousarray(X[:, list(self.chosen)])


@dataclass(frozen=True)
class Constant(Expression):
    """The same public numbers for every row."""

    numbers: tuple[float, ...]

    def width(self, columns: int, shapes: Shapes) -> int:
        return len(self.numbers)

    def of(self, X: Array, values: Values) -> Array:
        return np.broadcast_to(np.array(self.numbers), (len(X), len(self.numbers)))


@dataclass(frozen=True)
class Parameter(Expression):
    """A vector of public numbers, which the program sets at each step."""

    name: str

    def width(self, columns: int, shapes: Shapes) -> int:
        shape = _shape(shapes, self.name)
        if len(shape) != 1:
            raise ParameterError(f"`{self.name}` must be a vector in this expression; got shape {shape}.")
        return shape[0]

    def of(self, X: Array, values: Values) -> Array:
        return np.broadcast_to(values[self.name], (len(X), len(values[self.name])))


@dataclass(frozen=True)
class Elementwise(Expression):
    """An operator on two vectors of the same width, entry by entry; a width of 1 fits every width."""

    name: str
    parts: tuple[Expression, Expression]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.name not in _ELEMENTWISE or len(self.parts) != 2:
            raise ParameterError(
                f"`expression` must apply a known operator to two parts; got the operator {self.name!r}."
            )

    def width(self, columns: int, shapes: Shapes) -> int:
        first, second = (part.width(columns, shapes) for part in self.parts)
        if first != second and 1 not in (first, second):
            raise ParameterError(
                f"`{self.name}` must join vectors of the same width, or a number and a vector; "
                f"got the widths {first} and {second}."
            )
        return max(first, second)

    def of(self, X: Array, values: Values) -> Array:
        first, second = (part.of(X, values) for part in self.parts)
        with np.errstate(all="ignore"):
            return np.asarray(_ELEMENTWISE[self.name](first, second), dtype=np.float64)


@dataclass(frozen=True)
class Affine(Expression):
    """A x + b, for a public matrix A and a public vector b. `matrix` and `offset` name these parameters."""

    part: Expression
    matrix: str
    offset: str | None = None

    def width(self, columns: int, shapes: Shapes) -> int:
        inner, shape = self.part.width(columns, shapes), _shape(shapes, self.matrix)
        if len(shape) != 2 or shape[1] != inner:
            raise ParameterError(f"`{self.matrix}` must be a matrix of {inner} columns; got shape {shape}.")
        if self.offset is not None and _shape(shapes, self.offset) != shape[:1]:
            got = shapes[self.offset]
            raise ParameterError(f"`{self.offset}` must be a vector of {shape[0]} numbers; got shape {got}.")
        return shape[0]

    def of(self, X: Array, values: Values) -> Array:
        A = np.ascontiguousarray(values[self.matrix], dtype=np.float64)
        b = np.zeros(len(A)) if self.offset is None else np.asarray(values[self.offset], dtype=np.float64)
        return rows.affine(np.ascontiguousarray(self.part.of(X, values)), A, b)


_FUNCTIONS: dict[str, tuple[Callable[[Array], Array], Callable[[int], int]]] = {
    "sigmoid": (rows.sigmoid, lambda width: width),
    "exponential": (rows.exponential, lambda width: width),
    "cosine": (rows.cosine, lambda width: width),
    "norm": (rows.norms, lambda width: 1),
    "first_largest": (rows.first_largest, lambda width: width),
    "outer": (rows.outer_triangle, lambda width: width * (width + 1) // 2),
}


@dataclass(frozen=True)
class Function(Expression):
    """A function of a vector, given by its name in `_FUNCTIONS`."""

    name: str
    part: Expression

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.choice("name", self.name, tuple(_FUNCTIONS))

    @property
    def aligned(self) -> bool:
        return self.name in ("outer", "first_largest")

    def width(self, columns: int, shapes: Shapes) -> int:
        return _FUNCTIONS[self.name][1](self.part.width(columns, shapes))

    def of(self, X: Array, values: Values) -> Array:
        return _FUNCTIONS[self.name][0](np.ascontiguousarray(self.part.of(X, values)))


@dataclass(frozen=True)
class Clipped(Expression):
    """A vector, shortened to a norm of at most `bound`; zeros if an entry is not finite."""

    part: Expression
    bound: float

    def width(self, columns: int, shapes: Shapes) -> int:
        return self.part.width(columns, shapes)

    def of(self, X: Array, values: Values) -> Array:
        return rows.clipped(np.ascontiguousarray(self.part.of(X, values)), self.bound)


@dataclass(frozen=True)
class Located(Expression):
    """The place of a number among public `marks`: the cell between edges, or the hat functions at knots."""

    kind: str
    part: Expression
    marks: tuple[float, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.choice("kind", self.kind, ("cells", "hats"))
        name = "edges" if self.kind == "cells" else "knots"
        if len(self.marks) < 2 or not all(a < b for a, b in pairwise(self.marks)):
            raise ParameterError(f"`{name}` must be two or more increasing numbers; got {self.marks[:10]}.")

    @property
    def aligned(self) -> bool:
        return True

    def width(self, columns: int, shapes: Shapes) -> int:
        if (wide := self.part.width(columns, shapes)) != 1:
            raise ParameterError(f"`{self.kind}` must get one number per row; got {wide}. Choose one column.")
        return len(self.marks) - (self.kind == "cells")

    def of(self, X: Array, values: Values) -> Array:
        place = rows.in_cells if self.kind == "cells" else rows.hats
        return place(np.ascontiguousarray(self.part.of(X, values)), np.array(self.marks))


@dataclass(frozen=True)
class Joined(Expression):
    """Vectors concatenated."""

    parts: tuple[Expression, ...]

    def width(self, columns: int, shapes: Shapes) -> int:
        return sum(part.width(columns, shapes) for part in self.parts)

    def of(self, X: Array, values: Values) -> Array:
        return np.concatenate([part.of(X, values) for part in self.parts], axis=1)


@dataclass(frozen=True)
class Installed(Expression):
    """The result of `Program.private`, Python code for one row. The owner of the rows installed it."""

    length: int

    def __post_init__(self) -> None:
        checks.whole("length", self.length, least=1)

    def width(self, columns: int, shapes: Shapes) -> int:
        return self.length

    def of(self, X: Array, values: Values) -> Array:
        raise ParameterError(
            "`expressions.installed` must be the whole expression, and the program must define `private`."
        )


installed, parameter, affine, clip = Installed, Parameter, Affine, Clipped
"""The names of these classes in a user's program."""


def columns(*numbers: int) -> Expression:
    """The row itself; with numbers, only these columns. The target of a row, if any, is the last column."""
    return Columns(tuple(checks.whole("columns", number) for number in numbers) or None)


def sigmoid(part: Expression) -> Expression:
    """1 / (1 + exp(-x)), entry by entry."""
    return Function("sigmoid", part)


def exponential(part: Expression) -> Expression:
    """exp(x), entry by entry, with x clipped to [-700, 700]."""
    return Function("exponential", part)


def cosine(part: Expression) -> Expression:
    """cos(x), entry by entry."""
    return Function("cosine", part)


def norm(part: Expression) -> Expression:
    """||x||, one number."""
    return Function("norm", part)


def first_largest(part: Expression) -> Expression:
    """1 at the position of the largest entry (of the first such entry, if there are ties), 0 elsewhere."""
    return Function("first_largest", part)


def outer(part: Expression) -> Expression:
    """The upper triangle of x x', off-diagonal entries times sqrt 2; its norm is ||x||^2."""
    return Function("outer", part)


def cells(part: Expression, edges: Sequence[float]) -> Expression:
    """One-hot vector of the cell that contains a number; zeros for a number outside the edges."""
    return Located("cells", part, tuple(float(edge) for edge in edges))


def hats(part: Expression, knots: Sequence[float]) -> Expression:
    """Hat functions of a number at these knots: the basis of piecewise linear curves."""
    return Located("hats", part, tuple(float(knot) for knot in knots))


def join(*parts: Expression) -> Expression:
    """Vectors concatenated."""
    return Joined(parts)


def as_expression(operand: Operand) -> Expression:
    """An expression unchanged; numbers become public constants."""
    if isinstance(operand, Expression):
        return operand
    return Constant(tuple(float(number) for number in np.atleast_1d(operand).tolist()))


def _shape(shapes: Shapes, name: str) -> tuple[int, ...]:
    if name not in shapes:
        raise ParameterError(f"`{name}` must be among the query's parameters: {', '.join(sorted(shapes))}.")
    if 0 in shapes[name]:
        raise ParameterError(f"`{name}` must not be empty; got shape {tuple(shapes[name])}.")
    return tuple(shapes[name])


def _some(kind: type) -> Callable[[Any], bool]:
    return lambda values: (
        isinstance(values, tuple) and len(values) > 0 and all(type(v) is kind for v in values)
    )


_FIELDS: dict[str, Callable[[Any], bool]] = {
    "chosen": lambda value: value is None or _some(int)(value),
    "numbers": _some(float),
    "marks": _some(float),
    "bound": lambda value: checks.positive("bound", value) > 0,
    "part": lambda value: isinstance(value, Expression),
    "parts": lambda value: len(value) > 0 and all(isinstance(one, Expression) for one in value),
    "offset": lambda value: isinstance(value, str | None),
    **dict.fromkeys(("name", "matrix", "kind", "family"), lambda value: isinstance(value, str)),
}

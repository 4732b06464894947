"""LossFacts: the facts about a loss from which the privacy accountant computes costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from ..core import checks
from ..core.errors import ParameterError

CUSTOM = "custom"
PROGRAM = "program"
KINDS = ("classification", "regression", "classes")


@dataclass(frozen=True)
class LossFacts:
    """The facts about a loss L, with |L'| <= slope_bound and L'' <= curvature_bound; `kind` is in `KINDS`.

    `name` decides which bound on the privacy cost applies: "logistic", "log-cosh" and "smooth-hinge" have
    tighter bounds than other losses. The name and the parameters of a shipped loss (a loss that is part of
    taciturn) determine its slope and curvature bounds. The name of any other loss begins with "custom".
    """

    name: str
    slope_bound: float
    curvature_bound: float
    kind: str = ""
    parameters: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key, value in (("name", self.name), ("kind", self.kind)):
            if not isinstance(value, str):
                raise ParameterError(f"`{key}` must be a text; got {type(value).__name__}.")
        if not isinstance(self.parameters, Mapping):
            raise ParameterError(f"`parameters` must be a mapping; got {type(self.parameters).__name__}.")
        named = {str(k): checks.real(str(k), v) for k, v in sorted(self.parameters.items())}
        slope = checks.magnitude("slope_bound", self.slope_bound)
        bend = checks.nonnegative("curvature_bound", self.curvature_bound)
        object.__setattr__(self, "slope_bound", slope)
        object.__setattr__(self, "curvature_bound", bend and checks.magnitude("curvature_bound", bend))
        object.__setattr__(self, "parameters", named)
        if self.name in _SHIPPED:
            self._check_shipped(*_SHIPPED[self.name])
        elif not self.name.startswith(CUSTOM):
            known = ", ".join(_SHIPPED)
            raise ParameterError(
                f"`loss` must be one of {known}, or a name that begins with {CUSTOM!r}; got {self.name!r}."
            )
        object.__setattr__(self, "kind", checks.choice("kind", self.kind or KINDS[0], KINDS))

    @property
    def shipped(self) -> bool:
        """Whether the loss is part of taciturn. The author of any other (custom) loss states its bounds."""
        return self.name in _SHIPPED

    def check_private(self, noise: str) -> None:
        """Raise if the slope of the loss is unbounded: then no noise can protect a record."""
        if noise != "none" and self.name == "squared" and self.slope_bound == checks.MOST:
            raise ParameterError(
                "`loss`: the slope of the squared loss is unbounded. Give `target_bound`, a public bound on "
                "|y|, or use LogCosh."
            )

    @property
    def counting(self) -> bool:
        """Whether the run only counted records and trained no model."""
        return self.name == "counts"

    @property
    def programmed(self) -> bool:
        """Whether the run trained no model: a program (a sequence of sums) added up clipped vectors."""
        return self.name == PROGRAM

    @property
    def classes(self) -> int:
        """The number of models trained at once: for softmax the number of classes, else 1."""
        return int(self.parameters["classes"]) if self.name == "softmax" else 1

    @property
    def slope_at_zero(self) -> float:
        """sup |L'| at the model f = 0. At this model all margins y f.x are 0, but residuals y - f.x are not.

        >>> LossFacts("logistic", 1.0, 0.25).slope_at_zero
        0.5
        """
        if self.name in ("logistic", "bounded-logistic"):
            return 0.5
        if self.name == "softmax":
            return math.sqrt(1.0 - 1.0 / self.classes)
        if self.name == "smooth-hinge":
            h = self.parameters["h"]
            return min(1.0, (1.0 + h) / (2.0 * h))
        return self.slope_bound

    def _check_shipped(self, kind: str, names: tuple[str, ...], bounds: Bounds) -> None:
        """Raise unless the parameters, kind and bounds are those of the shipped loss. Sets the kind."""
        if set(self.parameters) != set(names):
            held = f"contain {' and '.join(names)}, and nothing else" if names else "be empty"
            raise ParameterError(f"`parameters` of the loss {self.name} must {held}; got {self.parameters}.")
        numbers = [checks.nonnegative(name, self.parameters[name]) for name in names]
        expected = bounds(*(number and checks.magnitude(self.name, number) for number in numbers))
        stated = self.slope_bound, self.curvature_bound
        if any(not math.isclose(a, b, rel_tol=1e-12) for a, b in zip(stated, expected, strict=True)):
            raise ParameterError(
                f"`slope_bound` and `curvature_bound` of the loss {self.name} must be {expected[0]:g} and "
                f"{expected[1]:g}; got {stated[0]:g} and {stated[1]:g}."
            )
        if self.kind not in ("", kind):
            raise ParameterError(f"`kind` of the loss {self.name} must be {kind}; got {self.kind!r}.")
        object.__setattr__(self, "kind", kind)


def _softmax(bounded: float, classes: float) -> tuple[float, float]:
    return (math.sqrt(1.0 - 1.0 / max(2.0, classes)) if bounded else math.sqrt(2.0)), 0.5


def _inverse(numerator: float, width: float) -> tuple[float, float]:
    return 1.0, numerator / checks.magnitude("width", width)


Bounds = Callable[..., tuple[float, float]]

_SHIPPED: dict[str, tuple[str, tuple[str, ...], Bounds]] = {
    "logistic": ("classification", (), lambda: (1.0, 0.25)),
    "smooth-hinge": ("classification", ("h",), partial(_inverse, 0.5)),
    "log-cosh": ("regression", ("scale",), partial(_inverse, 1.0)),
    "squared": ("regression", ("reach",), lambda reach: (reach, 1.0)),
    "bounded-logistic": ("classification", (), lambda: (0.5, 0.5)),
    "softmax": ("classes", ("bounded", "classes"), _softmax),
    "counts": ("classification", (), lambda: (1.0, 0.0)),  # not a loss: the run counts records
    PROGRAM: ("classification", (), lambda: (1.0, 0.0)),  # not a loss: the run adds clipped vectors
}

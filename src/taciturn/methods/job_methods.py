"""The methods that a job may name: which keys each method needs, and whether it answers questions.

A job is what several sites agree to run: it trains a model or asks questions about their records. Reading a
job needs only these facts about a method, so this file does not import the methods themselves.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True)
class JobMethod:
    """Which keys a job of this method has, and whether the method can answer questions.

    needs : the keys that a job of this method must have. A training job of another method must not have them.
    takes : the keys that a training job may have only with this method.
    answers : whether the method can answer questions, which are sums over the records of all sites.
    """

    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    answers: bool = False


JOB_METHODS = {
    "penalty": JobMethod(takes=("whiten", "noise", "effort")),
    "masked": JobMethod(needs=("colluding",), answers=True),
}


def usual_method(keys: Collection[str], *, asked: bool) -> str:
    """The default method of a job with these keys. `asked` : whether the job asks questions.

    >>> usual_method(["epsilon", "colluding"], asked=False), usual_method(["epsilon"], asked=False)
    ('masked', 'penalty')
    """
    if asked:
        return next(name for name, kind in JOB_METHODS.items() if kind.answers)
    fitting = [name for name, kind in JOB_METHODS.items() if set(kind.needs) <= set(keys)]
    return max(fitting, key=lambda name: len(JOB_METHODS[name].needs))


def misplaced_key(method: str, keys: Collection[str]) -> str | None:
    """An error text if a training job of this method has a wrong key or lacks a key; else None."""
    for name, kind in JOB_METHODS.items():
        for key in (*kind.needs, *kind.takes):
            if name != method and key in keys:
                wrong = f"`{key}` belongs to method {name!r}, but the method of this job is {method!r}"
                return f"{wrong}; remove `{key}`, or change `method`"
            if name == method and key in kind.needs and key not in keys:
                return f"`{key}` must be given: the method of this job is {method!r}"
    return None

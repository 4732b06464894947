"""PrivateGLM: a change of each parameter that must matter, or be refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np

import taciturn as tt
from support.parameters import Change, Entry, Fresh


def glm_entry() -> Entry:
    """PrivateGLM, with a change of each of its parameters."""
    rows = np.tile(np.linspace(-1, 1, 61)[:, None], (40, 1))
    table = {"a": rows[:, 0], "y": np.tile(np.sin(np.arange(61.0)) + np.linspace(-1, 1, 61) > 0, 40)}

    def fitted(**k: Any) -> Any:
        model = tt.PrivateGLM(**k).fit(*((table,) if "formula" in k else (rows, table["y"] * 1.0)))
        seeded = [model.coef_] if k.get("random_state") is not None else []
        return [repr(model.certificate_.run), model.result_.all_names, *seeded]

    schema = tt.data.Schema((tt.data.Number("a", -1, 1), tt.data.Boolean("y")))
    base = {"epsilon": 5.0, "bounds": [(-1, 1)], "random_state": 0}
    numbers = {"epsilon": 6.0, "delta": 1e-6, "sites": 4, "colluding": 2, "bounds": [(-2, 2)]}
    changes = {
        "family": Change("poisson", {"outcome": (0, 3)}),
        "outcome": (0, 2),
        "periods": [1.0, 2.0],
        "link": "cloglog",
        "names": ["first"],
        "formula": Change("y ~ a", {"schema": schema, "bounds": None}),
        "schema": schema,
        "indicators": ["a"],
        "large_delta": Change(True, {"delta": 0.01}),
        "ledger": Change(Fresh("ledger.sqlite"), {"random_state": None}),
        "random_state": 1,
        "engine": "mars",
    }
    return Entry("PrivateGLM", "binomial", fitted, base, numbers | changes)

"""Four large and two small banks learn who will miss a payment. A small bank needs the most noise.

The privacy cost of a site grows with the weight of one row, C / (2 eta V B). So a bank with few clients, or
few links, needs more noise.
"""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import taciturn as tt
from taciturn.data.tables.dealing import assign_unevenly

_CHANGES = {"as it is": "epsilon", "one more link": "edge", "twice the rows": "rows"}


def load_clients(rows: int | None) -> tuple[np.ndarray, np.ndarray]:
    """The credit data of UCI; or this many made-up clients, without a download."""
    if rows is None:
        data = tt.data.load_credit()
        return data.X, data.y
    rng = np.random.default_rng(7)
    X = rng.normal(size=(rows, 8))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    return X, np.where(4 * X[:, 0] - 3 * X[:, 1] - 1.5 + rng.logistic(size=rows) > 0, 1.0, -1.0)


def main(
    folder: Path = Path("taciturn-gallery"), rows: int | None = None, effort: str = "full"
) -> dict[str, float]:
    """Train on a star, a ring and a complete graph; return the held-out accuracy of each."""
    X, y = load_clients(rows)
    test = np.random.default_rng(0).random(len(y)) < 0.2
    bank = assign_unevenly(int((~test).sum()), 6, seed=1, concentration=0.5, least=len(y) // 75)
    sizes = np.bincount(bank)
    print("clients:", ", ".join(f"bank {i} {size:,}" for i, size in enumerate(sizes)))

    found, prices = {}, {}
    for name, graph in {
        "star around bank 0": tt.Graph.star(6),
        "ring": tt.Graph.ring(6),
        "complete graph": tt.Graph.complete(6),
    }.items():
        model = tt.PrivateLogisticRegression(epsilon=1.0, graph=graph, classes=[-1.0, 1.0], effort=effort)
        model.fit(X[~test], y[~test], site=bank)
        found[name] = float(model.score(X[test], y[test]))
        prices[name] = price = model.plan_.price
        print(f"\n{name}: test accuracy {found[name]:.3f}, epsilon {model.certificate_.epsilon:.3f}")
        print(price.sentence())
    draw(sizes, found, prices, folder)
    return found


def draw(sizes: np.ndarray, found: dict[str, float], prices: dict[str, Any], folder: Path) -> None:
    """Plot the clients of each bank, and the epsilon of the bank with the most noise after each change."""
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.bar([f"bank {i}" for i in range(len(sizes))], sizes, color="#0072b2")
    left.set_ylabel("clients")
    left.tick_params(axis="x", rotation=45)
    places = np.arange(len(found))
    for shift, (name, key) in zip((-0.27, 0.0, 0.27), _CHANGES.items(), strict=True):
        costs = [getattr(price, key) or np.nan for price in prices.values()]
        right.bar(places + shift, costs, width=0.25, label=name)
    right.set_xticks(places, [f"{name}\naccuracy {share:.1%}" for name, share in found.items()])
    right.set_ylabel("epsilon of the smallest bank")
    right.set_ylim(0, 1.5)
    right.legend(ncols=3, fontsize="small")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "uneven_banks.png", dpi=120)


if __name__ == "__main__":
    main()

"""Four large banks and two small ones learn who will miss a payment; a small one sets the price of the run.

Privacy costs a site what one of its rows weighs, C / (2 eta V B): a bank with few clients, or few links,
needs more noise.
"""

import numpy as np

import taciturn as tt
from taciturn.data.tables.dealing import assign_unevenly


def main() -> dict[str, float]:
    """Train on a star, on a ring and with every link; the held-out accuracy of each."""
    data = tt.data.load_credit()
    rng = np.random.default_rng(0)
    test = rng.random(len(data)) < 0.2
    X, y = data.X[~test], data.y[~test]
    bank = assign_unevenly(len(y), 6, seed=1, concentration=0.5, least=400)
    sizes = np.bincount(bank)
    print("clients:", ", ".join(f"bank {i} {size:,}" for i, size in enumerate(sizes)))

    found = {}
    for name, graph in {
        "star around bank 0": tt.Graph.star(6),
        "ring": tt.Graph.ring(6),
        "every link": tt.Graph.complete(6),
    }.items():
        model = tt.PrivateLogisticRegression(epsilon=1.0, graph=graph, classes=[-1.0, 1.0]).fit(
            X, y, site=bank
        )
        found[name] = float(model.score(data.X[test], data.y[test]))
        print(
            f"\n{name}: {found[name]:.3f} of the test clients right, epsilon {model.certificate_.epsilon:.3f}"
        )
        print(model.plan_.price.sentence())
    return found


if __name__ == "__main__":
    main()

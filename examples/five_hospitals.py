"""Five hospitals learn together which patients die within 180 days, without sharing their records.

The data are SUPPORT2: 9,105 seriously ill patients, with measurements up to the third day. The certificate
covers the whole run, against an observer who reads every message and controls four of the hospitals.
"""

from pathlib import Path

import numpy as np

import taciturn as tt


def main(folder: Path = Path("taciturn-hospitals")) -> float:
    """Train at several budgets, write a certificate and a report, and return the held-out accuracy."""
    data = tt.data.load_support()
    rng = np.random.default_rng(0)
    hospital = np.array(["Beth", "Cleveland", "Durham", "Marshfield", "Ronald"])[
        rng.integers(0, 5, len(data))
    ]
    test = rng.random(len(data)) < 0.2
    X, y = data.X, data.y

    for epsilon in (0.5, 1.0, 3.0, float("inf")):
        model = tt.PrivateLogisticRegression(epsilon=epsilon, graph="ring", classes=[-1.0, 1.0])
        model.fit(X[~test], y[~test], site=hospital[~test])
        said = f"epsilon {model.certificate_.epsilon:5.3f} after {model.n_iter_} rounds"
        print(f"{said}: test accuracy {model.score(X[test], y[test]):.3f}")

    model = tt.PrivateLogisticRegression(epsilon=3.0, graph="ring", classes=[-1.0, 1.0])
    model.fit(X[~test], y[~test], site=hospital[~test])
    strongest = np.argsort(-np.abs(model.coef_[0]))[:5]
    print("what weighs most:", ", ".join(f"{data.names[k]} {model.coef_[0, k]:+.1f}" for k in strongest))
    folder.mkdir(exist_ok=True)
    (folder / "certificate.json").write_text(model.certificate_.to_json())
    page = tt.report.from_certificates(
        {"five hospitals": model.certificate_}, title="Five hospitals", graph=tt.Graph.ring(5)
    )
    print("report:", tt.report.write(page, folder / "report.html"))
    return float(model.score(X[test], y[test]))


if __name__ == "__main__":
    main()

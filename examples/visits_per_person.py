"""Patients of three hospitals come back: protect one visit, or one person with all visits.

With `person=ids`, all rows of a person together count as one row, and the certificate protects the person.
The picture shows how much accuracy this costs. The rows are made up and the noise comes from a seed, so this
is only a rehearsal. Leave out `random_state` for real patients.
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import taciturn as tt

SCHEMA = tt.data.Schema.of(age=(0, 110), stay=(0, 60), visits=(0, 12), smoker=bool)


def make_visits(
    persons: int, rng: np.random.Generator
) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """A table with one row per visit, whether the patient comes back within a month, and the person's id."""
    person = np.repeat(np.arange(persons), rng.integers(1, 7, persons))
    age = rng.uniform(18, 95, persons)[person]
    smoker = (rng.random(persons) < 0.3)[person]
    stay, visits = rng.exponential(6, len(person)), rng.poisson(2, len(person))
    risk = 0.05 * (age - 60) + 0.1 * (stay - 6) + 0.9 * smoker + 0.3 * (visits - 2)
    back = risk + rng.logistic(size=len(person)) > 0
    table = {"age": age, "stay": stay, "visits": visits, "smoker": smoker}
    return table, np.where(back, "yes", "no"), person


def main(folder: Path = Path("taciturn-gallery"), persons: int = 6000) -> dict[str, list[float]]:
    """Fit at several budgets, per visit and per person; return the shares of correct predictions."""
    rng = np.random.default_rng(0)
    table, y, person = make_visits(persons, rng)
    new, truth, _ = make_visits(persons, rng)
    hospital = np.array(["Beth", "Cleveland", "Durham"])[rng.integers(0, 3, persons)][person]
    encoder = tt.data.BoundedEncoder(SCHEMA)
    X, Z = encoder.transform(table), encoder.transform(new)
    budgets = [0.1, 0.3, 1.0, 3.0]
    found: dict[str, list[float]] = {}
    for name, ids in {"one visit": None, "one person": person}.items():
        found[name] = []
        for epsilon in budgets:
            model = tt.PrivateLogisticRegression(
                epsilon=epsilon,
                graph="ring",
                colluding=1,
                classes=["no", "yes"],
                random_state=0,
            )
            model.fit(X, y, site=hospital, person=ids)
            found[name].append(float(model.score(Z, truth)))
        print(f"{name}: {', '.join(f'{share:.3f}' for share in found[name])}")
        print("   ", model.certificate_.run.relation)
    free = tt.PrivateLogisticRegression(epsilon=float("inf"), graph="ring", classes=["no", "yes"])
    found["no privacy"] = [float(free.fit(X, y, site=hospital).score(Z, truth))]
    draw(budgets, found, folder)
    return found


def draw(budgets: list[float], found: dict[str, list[float]], folder: Path) -> None:
    """Plot accuracy against epsilon, with one line for each unit of privacy."""
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    for name, marker in (("one visit", "o"), ("one person", "s")):
        axes.semilogx(budgets, found[name], marker=marker, label=f"covers {name}")
    axes.axhline(found["no privacy"][0], color="#777777", linestyle="--", label="no privacy")
    axes.set_xticks(budgets, [f"{epsilon:g}" for epsilon in budgets])
    axes.set_xlabel("epsilon, at delta = 1e-5")
    axes.set_ylabel("new visits predicted correctly")
    axes.legend()
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "visits_per_person.png", dpi=120)


if __name__ == "__main__":
    main()

"""Four workshops learn how many hours a repair takes. One entry in fifty is wrong by a factor of a thousand.

The log-cosh loss bounds the effect of every row, so outliers do not spoil the model. The same bound makes
privacy possible: no row can have a large effect, whatever its values are.
"""

import numpy as np

import taciturn as tt
from taciturn.data import BoundedEncoder, Category, Number, Schema

SCHEMA = Schema(
    (
        Number("age of the machine, years", 0, 30),
        Number("parts", 0, 40, log=True),
        Category("kind", ("pump", "motor", "gearbox")),
        Category("urgent", ("no", "yes")),
    )
)
COLUMNS = SCHEMA.names


def repairs(rows: int, seed: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Made-up repairs."""
    rng = np.random.default_rng(seed)
    age, parts = rng.uniform(0, 25, rows), rng.poisson(6, rows)
    kind, urgent = rng.integers(0, 3, rows), rng.integers(0, 2, rows)
    hours = 4 + 0.3 * age + 2.5 * np.log1p(parts) + 2.0 * kind - 2.0 * urgent + rng.normal(0, 1.0, rows)
    table = {
        COLUMNS[0]: age,
        COLUMNS[1]: parts,
        COLUMNS[2]: np.array(["pump", "motor", "gearbox"])[kind],
        COLUMNS[3]: np.array(["no", "yes"])[urgent],
    }
    return table, hours


def main() -> float:
    """Train with and without privacy, and return the mean error of the private model in hours."""
    encoder = BoundedEncoder(SCHEMA, rows="scale")
    table, hours = repairs(12_000, seed=0)
    noted = np.where(np.random.default_rng(2).random(len(hours)) < 0.02, 1000 * hours, hours)
    workshop = np.arange(len(hours)) % 4
    unseen, truth = repairs(3_000, seed=1)
    X, X_test = encoder.fit_transform(table), encoder.transform(unseen)

    print(f"always the usual 15 hours: {np.abs(15 - truth).mean():.2f} hours off")
    squares = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), noted, rcond=None)[0]
    off = np.abs(X_test @ squares[:-1] + squares[-1] - truth).mean()
    print(f"least squares, not private: {off:.2f} hours off")
    error = np.inf
    for epsilon in (float("inf"), 3.0, 1.0):
        model = tt.PrivateHuberRegressor(epsilon=epsilon, target_scale=5.0).fit(X, noted, site=workshop)
        error = float(np.abs(model.predict(X_test) - truth).mean())
        print(f"taciturn, epsilon {model.certificate_.epsilon:.3f}: {error:.2f} hours off")
    return error


if __name__ == "__main__":
    main()

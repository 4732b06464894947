"""Three programs over masked sums: k-means and a median as expressions, and a neural network as Python code.

`python examples/own_programs.py` runs all three. Every site of a run must have this file installed. A job
names a program as "own_programs:KMeans", with the SHA-256 of this file.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline

import taciturn as tt
from taciturn import expressions as ex


class KMeans(tt.Program):
    """k-means of rows in the unit ball. Each round sums (x, 1) over the rows nearest to each centre."""

    def __init__(self, clusters=3, rounds=8, seed=0):
        self.clusters, self.rounds, self.seed = clusters, rounds, seed

    def steps(self, facts):
        self.width = facts.columns
        length = self.clusters * (facts.columns + 1)
        return [tt.Step("clusters", length, bound=np.sqrt(2.0)) for _ in range(self.rounds)]

    def start(self):
        return None

    def centres(self, state):
        if state is not None:
            return state
        return 0.5 * np.random.default_rng(self.seed).uniform(-1, 1, (self.clusters, self.width))

    def query(self, state):
        """The nearest centre c of a row x has the largest x.c - |c|^2 / 2 = -|x - c|^2 / 2 + const."""
        C = self.centres(state)
        near = ex.first_largest(ex.affine(ex.columns(), "C", "b"))
        # `each` repeats the flag of every cluster; `point` and `ones` map x to one (x, 1) for every cluster
        each = np.kron(np.eye(self.clusters), np.ones((self.width + 1, 1)))
        point = np.vstack([np.eye(self.width + 1, self.width)] * self.clusters)
        ones = np.tile(np.eye(self.width + 1)[-1], self.clusters)
        expression = ex.affine(near, "each") * ex.affine(ex.clip(ex.columns(), 1.0), "point", "ones")
        parameters = {"C": C, "b": -0.5 * (C * C).sum(axis=1), "each": each, "point": point, "ones": ones}
        return tt.Query(expression, parameters)

    def advance(self, state, total):
        sums = total.values.reshape(self.clusters, self.width + 1)
        shares = np.maximum(sums[:, -1:], 3 * total.std)
        return np.clip(sums[:, :-1] / shares, -1.0, 1.0)

    def result(self, state):
        return self.centres(state)


class Median(tt.Program):
    """The median of the first column, by bisection of [0, 1]: a round counts the values above the middle."""

    def __init__(self, rounds=12):
        self.rounds = rounds

    def steps(self, facts):
        return [tt.Step("above", 1, bound=0.5) for _ in range(self.rounds)]

    def start(self):
        return 0.0, 1.0

    def query(self, state):
        above = ex.columns(0) > ex.parameter("middle")
        return tt.Query(above - 0.5, {"middle": [(state[0] + state[1]) / 2]})

    def advance(self, state, total):
        low, high = state
        middle = (low + high) / 2
        return (middle, high) if total.values[0] > 0 else (low, middle)

    def result(self, state):
        return (state[0] + state[1]) / 2


HIDDEN, CLASSES = 24, 10


def unpack(w, inputs):
    """Split one vector into the weights and offsets of both layers."""
    first, second = inputs * HIDDEN, HIDDEN * CLASSES
    A, a = w[:first].reshape(HIDDEN, inputs), w[first : first + HIDDEN]
    B = w[first + HIDDEN : first + HIDDEN + second].reshape(CLASSES, HIDDEN)
    return A, a, B, w[first + HIDDEN + second :]


def row_gradient(row, parameters):
    """The gradient of the cross entropy of one row; the label is the last entry of the row."""
    x, label = row[:-1], int(row[-1])
    A, a, B, b = unpack(parameters["w"], len(x))
    hidden = np.tanh(A @ x + a)
    scores = B @ hidden + b
    p = np.exp(scores - scores.max())
    p /= p.sum()
    p[label] -= 1.0
    back = (B.T @ p) * (1 - hidden**2)
    return np.concatenate([np.outer(back, x).ravel(), back, np.outer(p, hidden).ravel(), p])


class SmallNetwork(tt.Program):
    """A network with one hidden layer. `private` computes the gradient of a row, which is then clipped."""

    private = staticmethod(row_gradient)

    def __init__(self, inputs=64, rounds=120, rate=4.0, bound=1.0, momentum=0.8):
        self.inputs, self.rounds, self.rate, self.bound, self.momentum = inputs, rounds, rate, bound, momentum
        self.length = HIDDEN * (inputs + 1) + CLASSES * (HIDDEN + 1)

    def steps(self, facts):
        return [tt.Step("gradient", self.length, self.bound) for _ in range(self.rounds)]

    def start(self):
        w = 0.3 * np.random.default_rng(0).standard_normal(self.length)
        return w, np.zeros(self.length)

    def query(self, state):
        return tt.Query(ex.installed(self.length), {"w": state[0]})

    def advance(self, state, total):
        w, speed = state
        speed = self.momentum * speed - self.rate * (1 - self.momentum) * total.values
        return w + speed, speed

    def result(self, state):
        return state[0]


def predicted(w, X):
    A, a, B, b = unpack(w, X.shape[1])
    return (np.tanh(X @ A.T + a) @ B.T + b).argmax(axis=1)


def digits(copies=1, seed=0):
    """scikit-learn's digits as rows of norm at most 1; every fifth row is held out."""
    found = load_digits()
    X = found.data / np.maximum(np.linalg.norm(found.data, axis=1, keepdims=True), 1e-9)
    test = np.arange(len(X)) % 5 == 0
    return (np.tile(X[~test], (copies, 1)), np.tile(found.target[~test], copies)), (
        X[test],
        found.target[test],
    )


def main(epsilon=8.0, rounds=120):
    """Run all programs; return the centres, the median, and the accuracy of three models of the digits."""
    rng = np.random.default_rng(0)
    truth = np.array([[0.6, 0.0], [-0.3, 0.5], [-0.3, -0.5]])
    rows = truth[rng.integers(0, 3, 9000)] + 0.1 * rng.standard_normal((9000, 2))
    centres = tt.run_program(KMeans(seed=2), rows, epsilon=1.0, colluding=1, random_state=0)
    print("centres of k-means\n", centres.value.round(2))
    values = rng.beta(2, 5, 9000)
    median = tt.run_program(Median(), values[:, None], epsilon=1.0, colluding=1, random_state=0)
    print(f"median {median.value:.3f}; without noise {np.median(values):.3f}")
    (X, y), (X_test, y_test) = digits()
    promise = {"epsilon": epsilon, "sites": 4, "colluding": 1, "random_state": 0}
    network = tt.run_program(SmallNetwork(rounds=rounds), X, y, **promise)
    accuracy = float(np.mean(predicted(network.value, X_test) == y_test))
    linear = tt.PrivateLogisticRegression(**promise).fit(X, y).score(X_test, y_test)
    surfaces = tt.data.FeatureMap(ranges={k: (0, 1) for k in range(64)}, curves=0, surfaces=200)
    mapped = make_pipeline(surfaces, tt.PrivateLogisticRegression(**promise)).fit(X, y).score(X_test, y_test)
    print(f"digits, epsilon {epsilon:g}: accuracy of the network {accuracy:.3f},")
    print(f"of a linear model of 200 surfaces {mapped:.3f}, of the pixels alone {linear:.3f}")
    print(network.certificate.run.marks[0])
    return centres.value, median.value, accuracy, mapped, linear


if __name__ == "__main__":
    main()

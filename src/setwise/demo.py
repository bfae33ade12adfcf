"""A first comparison on data whose truth is known: `python -m setwise.demo`.

Label sets are drawn from a known law p(y | x), so the best possible prediction for each target is
known too, and what is printed is exact regret: expected loss less that of the best label set,
averaged over test inputs. All models are linear in x and trained by L-BFGS on the same sample.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from setwise.consistency.known_truth import Problem
from setwise.spaces import Catalog, Cube, Space
from setwise.spaces.space import Array, all_sets
from setwise.surrogates import BinaryRelevance, CompSum, Logistic, MeanAbsoluteError, Surrogate

TARGETS = ("hamming", "f1", "jaccard", "subset")
N_LABELS, N_FEATURES, N_TRAIN, N_TEST = 6, 5, 2_000, 1_000
PENALTY = 1e-6


def fit(
    surrogate: Surrogate, x: Array, y: Array, start: Array, space: Space
) -> tuple[Array, Space]:
    """Weights of linear scores, and the space with its own parameters, that minimise the loss.

    The objective is the mean loss plus PENALTY / 2 times the squared weights; the last feature,
    which is 1, is free.
    """
    shape = (x.shape[1], space.n_scores)
    free = np.isfinite(space.parameters)

    def objective(flat: Array) -> tuple[float, Array]:
        weights = flat[: shape[0] * shape[1]].reshape(shape)
        loss = surrogate
        if isinstance(surrogate, CompSum) and free.any():
            loss = CompSum(surrogate.target, _with(space, flat, shape), surrogate.q)
        value, by_score, by_parameter = loss.value_and_gradients(x @ weights, y)
        penalised = weights * (np.arange(shape[0]) < shape[0] - 1)[:, None]
        gradient = x.T @ by_score / len(y) + PENALTY * penalised
        return (
            float(value.mean() + PENALTY / 2.0 * (penalised**2).sum()),
            np.concatenate([gradient.ravel(), by_parameter.mean(axis=0)[free]]),
        )

    first = np.concatenate([start.ravel(), space.parameters[free]])
    found = minimize(objective, first, jac=True, method="L-BFGS-B", options={"maxiter": 500}).x
    return found[: shape[0] * shape[1]].reshape(shape), _with(space, found, shape)


def main() -> None:
    """Train every method for every target and print the table of regrets."""
    generator = np.random.default_rng(7)
    every = all_sets(N_LABELS)
    sets = every[generator.choice(len(every), 12, replace=False)]
    weights = 1.5 * generator.normal(size=(N_FEATURES + 1, len(sets)))
    problem = Problem("twelve label sets", sets, weights[:-1].T, weights[-1])
    x, y = problem.sample(N_TRAIN, generator)
    fresh = problem.inputs(N_TEST, generator)
    train, test = (np.column_stack([part, np.ones(len(part))]) for part in (x, fresh))
    cube, seen = Cube(N_LABELS), Catalog(np.unique(y, axis=0))
    zeros = np.zeros((N_FEATURES + 1, N_LABELS))
    relevance, _ = fit(BinaryRelevance(), train, y, zeros, cube)
    likelihood, listed = fit(Logistic("subset", seen), train, y, zeros, seen)
    table: dict[str, list[float]] = {}
    for target in TARGETS:
        best = problem.least_loss(target, fresh)
        logistic, _ = fit(Logistic(target, cube), train, y, zeros, cube)
        # Not convex, so it starts where binary relevance ended (its scores are twice the cube's).
        absolute, _ = fit(MeanAbsoluteError(target, cube), train, y, relevance / 2.0, cube)
        predictions = {
            "binary relevance, cut at 0.5": cube.most_likely(test @ relevance),
            "logistic loss for the target, cube": cube.most_likely(test @ logistic),
            "mean absolute error for the target, cube": cube.most_likely(test @ absolute),
            "likelihood on the label sets seen": listed.most_likely(test @ likelihood),
        }
        for name, y_pred in predictions.items():
            excess = problem.expected_loss(target, fresh, y_pred) - best
            table.setdefault(name, []).append(float(excess.mean()))
    _show(table)


def _show(table: dict[str, list[float]]) -> None:
    width = max(map(len, table))
    print(f"Exact regret over the best label set, {N_TRAIN} rows to train on, {N_LABELS} labels.\n")
    print(" " * width, *(f"{target:>9}" for target in TARGETS))
    for name, values in table.items():
        print(f"{name:<{width}}", *(f"{value:9.4f}" for value in values))
    print(
        "\nEach row predicts its most likely label set. Of these targets, the logistic loss on\n"
        "the cube is consistent for Hamming only; the mean absolute error for every one."
    )


def _with(space: Space, flat: Array, shape: tuple[int, int]) -> Space:
    """The space with the parameters that follow the weights; excluded ones stay."""
    parameters = space.parameters
    parameters[np.isfinite(parameters)] = flat[shape[0] * shape[1] :]
    return space.with_parameters(parameters)


if __name__ == "__main__":
    main()

"""The way from training rows to a solution: by Newton steps, or by stages of L-BFGS."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise.estimators.design import Design
from setwise.estimators.newton import solve_binary_relevance
from setwise.estimators.solver import Problem, Solution, solve, steps_shown
from setwise.estimators.training import Training
from setwise.spaces.space import Space
from setwise.validation import score_matrix

# Rows whose log-loss is computed at once.
LOG_LOSS_ROWS = 4096


@dataclass(frozen=True)
class Fitting:
    """What is fitted, and how closely.

    Parameters
    ----------
    training : Training
        What is trained on.
    space : Space
        The label sets.
    alpha, fit_intercept, tol, max_iter, verbose, label_features
        As in `SetClassifier`.
    """

    training: Training
    space: Space
    alpha: float
    fit_intercept: bool
    tol: float
    max_iter: int
    verbose: bool
    label_features: Any

    def solve(self, design: Design, sets, weights, last: Solution | None) -> Solution:
        """The solution, from the last one if it is given and fits the space."""
        with steps_shown(self.verbose, self.tol) as shown:
            if self.training.is_separate and self.label_features is None:
                return self._by_label(design, sets, weights, last, shown)
            return self._by_stages(design, sets, weights, last, shown)

    def _by_label(self, design: Design, sets, weights, last, shown) -> Solution:
        """Each label by itself."""
        inputs, center = design.centred()
        start = _fitting(last, sets.shape[1], np.empty(0))
        if start is not None:
            start = replace(start, intercept=start.intercept + center @ start.weights)
        # So that the gradient is small by the plain features too, if they are near 0.
        nearer = self.tol / min(10.0, 1.0 + float(np.abs(center).max(initial=0.0)))
        found = solve_binary_relevance(
            inputs, sets, weights, self.alpha, self.fit_intercept, nearer, self.max_iter, start,
            progress=shown and (lambda i, n, g: shown(i, f"{n} labels left", g)),
        )  # fmt: skip
        return replace(found, intercept=found.intercept - center @ found.weights)

    def _by_stages(self, design: Design, sets, weights, last, shown) -> Solution:
        """By way of convex losses for one that is not."""
        training, mass, problems = self.training, float(weights.sum()), []
        for stage in training.stages():
            objective = training.objective(stage, self.space, sets, weights)
            features = self.features(objective.n_scores)
            problems.append(Problem(design, objective, self.alpha, mass, features))
        blank = problems[-1].start()
        found = _fitting(last, len(blank.intercept), blank.parameters)
        if found is None or not problems[0].value(found) <= problems[0].value(blank):
            found = blank
        told = shown and (lambda i, value, g: shown(i, f"objective {value:.6g}", g))
        begun = [found]
        for problem in problems[:-1]:
            found = solve(problem, found, self.tol, self.max_iter, warn=False, progress=told)
            begun.append(found)
        if len(begun) > 1:
            found = min(begun, key=problems[-1].value)
        return solve(problems[-1], found, self.tol, self.max_iter, warn=True, progress=told)

    def learnt(self, solution: Solution) -> Space:
        """The space with the parameters of the solution, where it has any."""
        parameters = solution.parameters
        return self.space.with_parameters(parameters) if len(parameters) else self.space

    def log_loss(self, design: Design, sets, weights, solution: Solution) -> float:
        """The mean log-loss of the training rows, of those in the space, in nats."""
        if self.training.is_likelihood or self.training.is_separate:
            return solution.value - self.alpha / 2.0 * float((solution.weights**2).sum())
        space, features = self.learnt(solution), self.features(self.space.n_scores)
        total = mass = 0.0
        for first in range(0, len(sets), LOG_LOSS_ROWS):
            rows = slice(first, first + LOG_LOSS_ROWS)
            held = space.contains(sets[rows])
            scores = np.asarray(design.inputs[rows] @ solution.weights) + solution.intercept
            if features is not None:
                scores = scores @ features.T
            losses = space.negative_log_likelihood(scores[held], sets[rows][held], False)[0]
            total += float(weights[rows][held] @ losses)
            mass += float(weights[rows][held].sum())
        return total / mass if mass else float("inf")

    def features(self, n_scores: int) -> NDArray[np.float64] | None:
        """The features of the labels, a row for each, or None."""
        if self.label_features is None:
            return None
        features = score_matrix(self.label_features, None, "label_features")
        if len(features) != n_scores or features.shape[1] == 0:
            raise ValueError(
                f"label_features must have shape ({n_scores}, m), a row for each label, "
                f"but its shape is {features.shape}"
            )
        return features.astype(np.float64)


def _fitting(last: Solution | None, n_scores: int, blank: NDArray[Any]) -> Solution | None:
    """The last solution with the parameters that are wanted, or None if it does not fit."""
    if last is None:
        return None
    parameters = last.parameters if len(blank) else np.empty(0)
    if last.weights.shape[1] != n_scores or not np.array_equal(
        np.isfinite(parameters), np.isfinite(blank)
    ):
        return None
    return replace(last, parameters=parameters)

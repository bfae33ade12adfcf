"""Minimising mean loss + alpha / 2 ||W||² over linear scores X W + b and the space's parameters."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from setwise.estimators.design import Conditioning, Design
from setwise.estimators.training import CHUNK_ENTRIES, Objective

Array = NDArray[Any]

# Pairs of vectors L-BFGS remembers, and numbers they may take (1 GiB); at least three pairs.
MEMORY, MEMORY_ENTRIES = 10, 2**27
ROUNDING = 1e-13
Progress = Callable[[int, float, float], None]


@dataclass(frozen=True)
class Solution:
    """Weights (d, n_scores), intercepts (n_scores,), parameters (p,), and how it ended."""

    weights: Array
    intercept: Array
    parameters: Array
    value: float
    gradient_norm: float
    n_iter: int


@dataclass(frozen=True)
class Problem:
    """A design and an objective; ``mass`` is the sum of the weights of the rows.

    With ``label_features`` V, a row for each score, the scores are (X W + b) V^T.
    """

    design: Design
    objective: Objective
    alpha: float
    mass: float
    label_features: Array | None = None

    def start(self) -> Solution:
        """All weights 0, intercepts and parameters as the objective has them to begin with."""
        space, intercept = self.objective.space, self.objective.start()
        if self.label_features is not None:
            intercept = np.linalg.lstsq(self.label_features, intercept)[0]
        if not self.design.fit_intercept:
            intercept = np.zeros_like(intercept)
        parameters = np.empty(0) if space is None else space.parameters
        weights = np.zeros((self.design.inputs.shape[1], len(intercept)))
        return Solution(weights, intercept, parameters, np.inf, np.inf, 0)

    def value_and_gradient(
        self, weights: Array, intercept: Array, parameters: Array
    ) -> tuple[float, Array, Array, Array]:
        """The objective and its gradients by weights, intercepts and parameters, in float64."""
        inputs = self.design.precise
        value, by_weight = 0.0, np.zeros_like(weights)
        by_intercept, by_parameter = np.zeros_like(intercept), np.zeros_like(parameters)
        for rows in self._ranges(len(parameters)):
            whole = rows.stop - rows.start == inputs.shape[0]
            part = (inputs if whole else inputs[rows]).astype(np.float64, copy=False)
            scores = part @ weights + intercept
            if self.label_features is not None:
                scores = scores @ self.label_features.T
            loss, gradient, by_part = self.objective.sums(rows, scores, parameters)
            if self.label_features is not None:
                gradient = gradient @ self.label_features
            value += loss
            by_weight += part.T @ gradient
            by_intercept += gradient.sum(axis=0)
            by_parameter += by_part
        value = value / self.mass + self.alpha / 2.0 * float((weights**2).sum())
        by_weight = by_weight / self.mass + self.alpha * weights
        if not self.design.fit_intercept:
            by_intercept[:] = 0.0
        return value, by_weight, by_intercept / self.mass, by_parameter / self.mass

    def value(self, at: Solution) -> float:
        """The objective at a point."""
        return self.value_and_gradient(at.weights, at.intercept, at.parameters)[0]

    def gradient_norm(self, by_weight: Array, by_intercept: Array, by_parameter: Array) -> float:
        """Infinity norm of the gradient after centring the features.

        Uncentred, a feature with mean m adds m times the intercept's gradient to its own, which
        would dominate the stopping test. The plain gradient counts up to ten times the other, so
        that it is small too where features are near 0.
        """
        shift = np.outer(self.design.center, by_intercept)
        plain = float(np.abs(by_weight).max(initial=0.0))
        centred = max(
            float(np.abs(part).max(initial=0.0))
            for part in (by_weight - shift, by_intercept, by_parameter)
        )
        return max(centred, min(plain, 10.0 * centred))

    def conditioning(self, free: Array) -> Conditioning:
        """The change of variables the solver works in; ``free`` are the finite parameters."""
        spread, parameters = self.objective.spread()
        if self.label_features is not None:
            spread = spread @ self.label_features**2
        return Conditioning.of(self.design, self.alpha, spread, parameters[free])

    def _ranges(self, n_parameters: int) -> Iterator[slice]:
        step = max(64, CHUNK_ENTRIES // max(self.objective.n_scores, n_parameters, 1))
        n_rows = self.design.inputs.shape[0]
        for first in range(0, n_rows, step):
            yield slice(first, min(first + step, n_rows))


def solve(
    problem: Problem,
    start: Solution,
    tol: float,
    max_iter: int,
    warn: bool,
    progress: Progress | None = None,
) -> Solution:
    """The minimiser by L-BFGS from ``start``, in variables of like curvature.

    Ends where no entry of the gradient exceeds ``tol``; else warns with the one that does. Never
    ends higher than it began. ``progress`` hears of each step: its number, the objective, the
    largest entry of the gradient.
    """
    search = _Search(problem, start, tol, progress)
    norm = np.inf
    # A line search that rounding ended begins anew, as long as that helps.
    while search.steps < max_iter and tol < search.best.gradient_norm < norm:
        norm = search.best.gradient_norm / 2.0
        flat = search.flat(search.best)
        memory = max(3, min(MEMORY, MEMORY_ENTRIES // (2 * len(flat))))
        minimize(
            search.evaluate, flat, jac=True, method="L-BFGS-B", callback=search.after_step,
            options={"maxiter": max_iter - search.steps, "maxcor": memory, "gtol": 0.0, "ftol": 0.0,
                     "maxfun": 10 * max_iter + 10},
        )  # fmt: skip
    if warn and not search.best.gradient_norm <= tol:
        warn_of(search.steps, search.best.gradient_norm, tol)
    return replace(search.best, n_iter=search.steps)


class _Search:
    """A problem as a function of flat variables, with the best point it was asked for."""

    def __init__(self, problem: Problem, start: Solution, tol: float, progress: Progress | None):
        self.problem, self.tol, self.progress = problem, tol, progress
        self.parameters, self.free = start.parameters, np.isfinite(start.parameters)
        self.conditioning = problem.conditioning(self.free)
        self.best, _ = self._at(self.flat(start))
        self.begun, self.steps = self.best.value, 0

    def flat(self, at: Solution) -> Array:
        """The variables of a point; parameters of -inf are none."""
        return self.conditioning.flat(at.weights, at.intercept, at.parameters[self.free])

    def evaluate(self, flat: Array) -> tuple[float, Array]:
        """The objective and its gradient by the variables."""
        here, gradient = self._at(flat)
        # Where rounding hides which value is the lower, the gradient tells which point is nearer.
        rounding = ROUNDING * abs(self.best.value)
        alike = here.value <= min(self.best.value + rounding, self.begun)
        nearer = alike and here.gradient_norm < self.best.gradient_norm
        if nearer or here.value < self.best.value - rounding:
            self.best = here
        return here.value, gradient

    def after_step(self, intermediate_result) -> None:
        """Counts a step; ends the search where the gradient is small enough."""
        self.steps += 1
        if self.progress is not None:
            self.progress(self.steps, self.best.value, self.best.gradient_norm)
        if self.best.gradient_norm <= self.tol:
            raise StopIteration

    def _at(self, flat: Array) -> tuple[Solution, Array]:
        weights, intercept, finite = self.conditioning.point(flat)
        parameters = self.parameters.copy()
        parameters[self.free] = finite
        value, *gradients = self.problem.value_and_gradient(weights, intercept, parameters)
        gradients[2] = gradients[2][self.free]
        norm = self.problem.gradient_norm(*gradients)
        here = Solution(weights, intercept, parameters, value, norm, 0)
        return here, self.conditioning.gradient(*gradients)


def warn_of(steps: int, norm: float, tol: float) -> None:
    """Say that a solver stopped early, and where."""
    from sklearn.exceptions import ConvergenceWarning

    warnings.warn(
        f"the solver stopped after {steps} iterations with a gradient of {norm:.2e}, above "
        f"tol = {tol:g}; raise max_iter or alpha, or scale the features",
        ConvergenceWarning,
        stacklevel=3,
    )


# --------------------------------------------------------------------------- progress on the screen


@contextmanager
def steps_shown(verbose: object, tol: float) -> Iterator[Callable[[int, str, float], None] | None]:
    """A bar that fills as the gradient falls to ``tol``: called with (step, words, gradient)."""
    if not verbose:
        yield None
        return
    with _bar("training", 1.0) as update:
        first: list[float] = []

        def step(number: int, words: str, gradient: float) -> None:
            first.append(max(gradient, tol))
            whole = max(log(first[0] / tol), 1e-9)
            done = max(1.0 - log(max(gradient, tol) / tol) / whole, 0.0)
            update(completed=done, words=f"step {number}, {words}, |g| {gradient:.1e}")

        yield step


@contextmanager
def trials_shown(verbose: object, total: int) -> Iterator[Callable[[str], None]]:
    """A bar over a known number of fits, with the time left: called once each fit."""
    if not verbose:
        yield lambda words: None
        return
    with _bar("choosing", total) as update:
        yield lambda words: update(advance=1, description=words)


@contextmanager
def _bar(description: str, total: float) -> Iterator[Callable[..., None]]:
    """A bar on the error stream, and what changes it; rich is imported only for those who ask."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    counted = (MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    told = (TextColumn("{task.fields[words]}"), TimeElapsedColumn())
    columns = (TextColumn("{task.description}"), BarColumn(), *(counted if total > 1 else told))
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(description, total=total, words="")
        yield lambda **changes: bar.update(task, **changes)

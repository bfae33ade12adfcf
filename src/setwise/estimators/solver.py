"""Minimising mean loss + alpha / 2 ||W||² over linear scores X W + b and the space's parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import Bounds, minimize

from setwise.estimators.checkpoint import Checkpoint
from setwise.estimators.design import Array, Solution, warn_of
from setwise.estimators.lbfgs import lbfgs
from setwise.estimators.newton import solve_binary_relevance
from setwise.estimators.problem import Problem
from setwise.estimators.running import Progress
from setwise.estimators.training import Training
from setwise.estimators.turned import LEAST_SINGLE, lighter
from setwise.spaces.space import Space
from setwise.validation import score_matrix

# Pairs of vectors L-BFGS remembers, and numbers they may take (1 GiB); at least three pairs.
MEMORY, MEMORY_ENTRIES = 10, 2**27
# Steps in the first variables; the next ones are for as many as there were before.
FIRST = 20
ROUNDING = 1e-13


def solve(
    problem: Problem,
    start: Solution,
    tol: float,
    max_iter: int,
    warn: bool,
    progress: Progress | None = None,
    checkpoint: Checkpoint | None = None,
    unless: Solution | None = None,
) -> Solution:
    """The minimiser by L-BFGS from ``start``, in variables of like curvature.

    Ends where no entry of the gradient exceeds ``tol``; else warns with the one that does. Never
    ends higher than it began; where ``unless`` is lower, it begins there. ``progress`` hears of
    each step, in words. What interrupts it leaves the best point in the ``checkpoint``.
    """
    search = _Search(problem, start, tol, progress, checkpoint)
    if unless is not None and not search.best.value <= problem.value(unless):
        search = _Search(problem, unless, tol, progress, checkpoint)
    try:
        return _solved(search, max_iter, warn)
    except BaseException:
        if checkpoint is not None:
            checkpoint.keep(search.best, at_once=True)
        raise


def _solved(search: _Search, max_iter: int, warn: bool) -> Solution:
    tol, problem = search.tol, search.problem
    norm = np.inf
    # From time to time, and where rounding ended a line search as long as that helps, it begins
    # anew in variables that suit the curvature there.
    while search.steps < max_iter and tol < search.best.gradient_norm < norm:
        search.conditioning = problem.conditioning(search.best)
        before, most = search.steps, min(max(FIRST, search.steps), max_iter - search.steps)
        norm, flat = search.best.gradient_norm / 2.0, search.flat(search.best)
        memory = remembered(len(flat))
        if search.bounds is None:
            told = search.after_step, search.at_best(), problem.design.precision
            lbfgs(search.evaluate, flat, memory, most, *told)
        else:
            _within_bounds(search, flat, memory, most)
        norm = np.inf if search.steps - before == most else norm
    if warn and not search.best.gradient_norm <= tol:
        warn_of(search.steps, search.best.gradient_norm, tol)
    return replace(search.best, n_iter=search.steps)


def remembered(size: int) -> int:
    """How many pairs of vectors of that size L-BFGS remembers."""
    return max(3, min(MEMORY, MEMORY_ENTRIES // (2 * max(size, 1))))


def _within_bounds(search: _Search, flat: Array, memory: int, steps: int) -> None:
    """The same where parameters have bounds, which scipy's method keeps."""

    def after_step(intermediate_result: Any) -> None:
        if search.after_step():
            raise StopIteration

    minimize(
        search.evaluate, flat, jac=True, method="L-BFGS-B", bounds=search.bounds,
        callback=after_step,
        options={"maxiter": steps, "maxcor": memory, "gtol": 0.0, "ftol": 0.0,
                 "maxfun": 10 * steps + 10},
    )  # fmt: skip


class _Search:
    """A problem as a function of flat variables, with the best point it was asked for."""

    def __init__(
        self,
        problem: Problem,
        start: Solution,
        tol: float,
        progress: Progress | None,
        checkpoint: Checkpoint | None = None,
    ):
        self.problem, self.tol = problem, tol
        self.progress, self.checkpoint = progress, checkpoint
        self.parameters, self.free = start.parameters, np.isfinite(start.parameters)
        self.least = problem.objective.lower_bounds[self.free]
        self.conditioning: Any = None
        self.best, self.slopes = self._at(
            start.weights, start.intercept, start.parameters[self.free]
        )
        self.begun, self.steps = self.best.value, start.n_iter

    def flat(self, at: Solution) -> Array:
        """The variables of a point; parameters of -inf are none."""
        return self.conditioning.flat(at.weights, at.intercept, at.parameters[self.free])

    @property
    def bounds(self) -> Bounds | None:
        """What the variables must not fall below, where a parameter has a bound."""
        if np.isneginf(self.least).all():
            return None
        least = self.least / self.conditioning.by_parameter
        n_others = self.conditioning.scale.size + len(self.conditioning.by_score)
        return Bounds(np.concatenate([np.full(n_others, -np.inf), least]))  # type: ignore

    def evaluate(self, flat: Array) -> tuple[float, Array]:
        """The objective and its gradient by the variables."""
        here, slopes = self._at(*self.conditioning.point(flat))
        # Where rounding hides which value is the lower, the gradient tells which point is nearer.
        rounding = ROUNDING * abs(self.best.value)
        alike = here.value <= min(self.best.value + rounding, self.begun)
        nearer = alike and here.gradient_norm < self.best.gradient_norm
        if nearer or here.value < self.best.value - rounding:
            self.best, self.slopes = here, slopes
        return here.value, self.conditioning.gradient(*slopes)

    def at_best(self) -> tuple[float, Array]:
        """The same at the best point, in the variables as they are now."""
        return self.best.value, self.conditioning.gradient(*self.slopes)

    def after_step(self) -> bool:
        """Count a step; whether the gradient is small enough to end."""
        self.steps += 1
        if self.checkpoint is not None:
            self.checkpoint.keep(self.best)
        if self.progress is not None:
            norm = f"objective {self.best.value:.6g}, |g| {self.best.gradient_norm:.1e}"
            self.progress(description=f"training, step {self.steps}, {norm}")
        return self.best.gradient_norm <= self.tol

    def _at(self, weights: Array, intercept: Array, finite: Array) -> tuple[Solution, list[Array]]:
        """A point, and the gradients there by weights, intercepts and finite parameters."""
        parameters = self.parameters.copy()
        parameters[self.free] = finite
        value, *gradients = self.problem.value_and_gradient(weights, intercept, parameters)
        gradients[2] = gradients[2][self.free]
        # A parameter at its bound that would fall stays.
        stays = (finite <= self.least) & (gradients[2] > 0.0)
        norm = self.problem.gradient_norm(
            gradients[0], gradients[1], np.where(stays, 0.0, gradients[2])
        )
        return Solution(weights, intercept, parameters, value, norm), gradients


# ------------------------------------------------------------------- from training rows to a model


@dataclass(frozen=True)
class Fitting:
    """What is fitted, to which rows, and how closely; settings are those of `SetClassifier`."""

    training: Training
    space: Space
    design: Any
    sets: Any
    weights: Array
    alpha: float
    tol: float
    max_iter: int
    label_features: Any = None
    checkpoint: Checkpoint | None = None

    def solve(self, last: Solution | None, progress: Progress | None = None) -> Solution:
        """The solution, from the last one if it is given and has as many scores.

        By Newton steps for labels that are each by themselves, in memory and without a checkpoint,
        else by L-BFGS, by way of convex losses for one that is not, and of `lighter` inputs.
        """
        in_memory = self.design.in_memory and self.checkpoint is None
        if self.training.is_separate and self.label_features is None and in_memory:
            return self._by_label(last, progress)
        objectives = (
            self.training.objective(stage, self.space, self.sets, self.weights)
            for stage in self.training.stages()
        )
        problems = [Problem(self.design, o, self.alpha, self.features()) for o in objectives]
        blank = problems[-1].start()
        begun = _fitting(last, blank, self.design.center)
        light = None
        if begun is None and in_memory:
            light = lighter(self.design, len(blank.intercept))
        if light is not None:
            # Most of the way with products that are less exact, and the rest from there.
            loose = [replace(problem, design=light) for problem in problems]
            near = self._walk(loose, blank, None, max(self.tol, LEAST_SINGLE), progress, False)
            if problems[-1].value(near) <= problems[-1].value(blank):
                return solve(problems[-1], near, self.tol, self.max_iter, True, progress)
        return self._walk(problems, blank, begun, self.tol, progress)

    def _walk(
        self,
        problems: list[Problem],
        blank: Solution,
        begun: Solution | None,
        tol: float,
        progress: Progress | None,
        warn: bool = True,
    ) -> Solution:
        """From problem to problem, from the blank solution or one that is lower."""
        unless = None if begun is None else blank
        ends, told = [blank if begun is None else begun], (progress, self.checkpoint)
        for problem in problems[:-1]:
            ended = solve(problem, ends[-1], tol, self.max_iter, False, *told, unless)
            ends, unless = [*ends, replace(ended, n_iter=0)], None
        if len(ends) > 1:
            ends = [min(ends, key=problems[-1].value)]
        return solve(problems[-1], ends[0], tol, self.max_iter, warn, *told, unless)

    def _by_label(self, last: Solution | None, progress: Progress | None) -> Solution:
        inputs, center = self.design.centred()
        n_labels = self.sets.shape[1]
        blank = Solution(np.empty((0, n_labels)), np.zeros(n_labels), np.empty(0))
        start = _fitting(last, blank, self.design.center)
        if start is not None:
            start = replace(start, intercept=start.intercept + center @ start.weights)

        def told(step: int, n_left: int, norm: float) -> None:
            if progress is not None:
                words = f"training, step {step}, {n_left} labels left, |g| {norm:.1e}"
                progress(description=words)

        loss = self.training.loss(self.space)
        # So that the gradient is small by the plain features too, if they are near 0.
        nearer = self.tol / min(10.0, 1.0 + float(np.abs(center).max(initial=0.0)))
        found = solve_binary_relevance(
            inputs, self.sets, self.weights, self.alpha, self.design.fit_intercept, nearer,
            self.max_iter, start, progress=told, costs=loss.by_truth(self.sets.shape[1]),
        )  # fmt: skip
        return replace(found, intercept=found.intercept - center @ found.weights)

    def learnt(self, solution: Solution) -> Space:
        """The space with the parameters of the solution, where it has any."""
        parameters = solution.parameters
        return self.space.with_parameters(parameters) if len(parameters) else self.space

    def features(self) -> Array | None:
        """The features of the labels, a row for each score, or None."""
        if self.label_features is None:
            return None
        features = score_matrix(self.label_features, None, "label_features")
        n_scores = self.space.n_scores
        if len(features) != n_scores or features.shape[1] == 0:
            raise ValueError(
                f"label_features must have shape ({n_scores}, m), a row for each label, "
                f"but its shape is {features.shape}"
            )
        return features.astype(np.float64)


def _fitting(last: Solution | None, blank: Solution, center: Array) -> Solution | None:
    """The last solution where it has the scores that are wanted, else None; no step is taken yet.

    Parameters of another space are as in the ``blank`` one, and so are the scores at the center.
    """
    if last is None or last.weights.shape[1] != len(blank.intercept):
        return None
    last = replace(last, n_iter=0)
    if len(blank.parameters) == 0:
        return replace(last, parameters=blank.parameters)
    if np.array_equal(np.isfinite(last.parameters), np.isfinite(blank.parameters)):
        return last
    shift = center @ last.weights
    return replace(last, intercept=blank.intercept - shift, parameters=blank.parameters)

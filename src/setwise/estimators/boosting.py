"""Trees with a vector in each leaf, grown by the exact gradients of a loss over label sets.

Scores of a space come in halves of logits: score = (offset + margin) / 2, the margin the sum of the
leaves that a row falls into. A round adds a tree for all labels, by the gradient and the diagonal
of the Hessian; the parameters of the space (biases of sets or sizes) take a step of their own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils import _safe_indexing

from setwise.estimators.design import Rows
from setwise.estimators.folds import StratifiedLabelSets
from setwise.estimators.training import Objective, penalty
from setwise.spaces.space import Space

Array = NDArray[Any]
# Of scores of held-out rows on a space: two sums, of which the quotient is the loss, and two more.
Judge = Callable[[Array, Space, Rows], Array]

# A row whose gradient has settled still counts a little, so that no leaf is divided by nothing.
LEAST_HESSIAN = 1e-6
# The furthest that a parameter of the space moves in a round, before the learning rate.
FURTHEST = 1.0
# A share of rows above one in so many is made of at most so many folds.
MOST_FOLDS = 20
MISSING = "boosted trees are those of XGBoost, which is not installed: pip install 'setwise[boost]'"


def xgboost() -> Any:
    """The module, or one sentence that says how to get it."""
    try:
        import xgboost
    except ImportError as error:
        raise ImportError(MISSING) from error
    return xgboost


def matrix(X: Any, kinds: list[str] | None = None) -> Any:
    """Inputs as XGBoost takes them: NaN and what a sparse matrix does not store are missing.

    ``kinds`` are those of the columns, as XGBoost names them.
    """
    return xgboost().DMatrix(X, enable_categorical=True, feature_types=kinds)


def kinds_of(categorical: list[int], n_features: int) -> list[str] | None:
    """What XGBoost calls the columns, of which some are codes of categories; None if none are."""
    kinds = np.full(n_features, "float", object)
    kinds[categorical] = "c"
    return kinds.tolist() if len(categorical) else None


@dataclass(frozen=True, eq=False)
class Trees:
    """A grown model in XGBoost's own JSON, which is data and runs nothing."""

    json: bytes
    offset: Array

    @cached_property
    def booster(self) -> Any:
        """XGBoost's object, made when it is first asked."""
        booster = xgboost().Booster()
        try:
            booster.load_model(bytearray(self.json))
        except xgboost().core.XGBoostError as error:
            raise ValueError(f"these are no trees of XGBoost: {error}") from None
        return booster

    @cached_property
    def booster_by_score(self) -> Any:
        """The same with a tree for each score, which tells what features contribute."""
        return one_score_a_tree(self.booster)

    def scores(self, X: Any) -> Array:
        """Half of the offset and of the leaves that each row falls into, (n, n_scores)."""
        return scores_of(self._said(self.booster, X, output_margin=True), self.offset)

    def contributions(self, X: Any) -> Array:
        """What each feature adds to each score, (n, n_scores, n_features), by XGBoost.

        Those of a row add up to its scores less the mean ones (TreeSHAP).
        """
        found = self._said(self.booster_by_score, X, pred_contribs=True)
        return found.reshape(len(found), len(self.offset), -1)[..., :-1] / 2.0

    def _said(self, booster: Any, X: Any, **asked: Any) -> Array:
        # (Names of columns were compared before, by scikit-learn.)
        inputs = matrix(X, self.booster.feature_types)
        return booster.predict(inputs, validate_features=False, **asked)

    def gains(self, n_features: int) -> Array:
        """The mean gain of the splits by each feature, with a sum of 1, (n_features,)."""
        scores = self.booster.get_score(importance_type="gain")
        names = self.booster.feature_names or [f"f{i}" for i in range(n_features)]
        gain = np.array([np.mean(scores.get(name, 0.0)) for name in names])
        return gain / gain.sum() if gain.any() else gain

    def __getstate__(self) -> dict:
        return {"json": self.json, "offset": self.offset}


def one_score_a_tree(booster: Any) -> Any:
    """The same model with each tree once for every score, and leaves of one number.

    XGBoost tells what features contribute for such trees only.
    """
    model = json.loads(bytes(booster.save_raw("json")))
    learner = model["learner"]
    inner = learner["gradient_booster"]["model"]
    width = max(int(tree["tree_param"]["size_leaf_vector"]) for tree in inner["trees"])
    if width <= 1:
        return booster
    inner["trees"] = [_of_score(tree, k, width) for tree in inner["trees"] for k in range(width)]
    for number, tree in enumerate(inner["trees"]):
        tree["id"] = number
    inner["tree_info"] = [k for _ in inner["tree_info"] for k in range(width)]
    inner["iteration_indptr"] = [width * end for end in inner["iteration_indptr"]]
    inner["gbtree_model_param"]["num_trees"] = str(len(inner["trees"]))
    single = xgboost().Booster()
    single.load_model(bytearray(json.dumps(model).encode()))
    return single


def _of_score(tree: dict[str, Any], score: int, width: int) -> dict[str, Any]:
    """A tree with the numbers of one score in its leaves."""
    left, right = np.array(tree["left_children"]), np.array(tree["right_children"])
    weights = np.reshape(tree["base_weights"], (-1, width))[:, score].copy()
    is_leaf = left == -1
    if "leaf_weights" in tree:
        # Leaves have their numbers apart, at the place that stands for their right child.
        leaves = np.reshape(tree["leaf_weights"], (-1, width))[:, score]
        weights[is_leaf] = leaves[right[is_leaf]]
    conditions = np.where(is_leaf, weights, tree["split_conditions"])
    parents = [2**31 - 1, *tree["parents"][1:]]
    changed = {name: part for name, part in tree.items() if name != "leaf_weights"}
    return changed | {
        "base_weights": weights.tolist(), "split_conditions": conditions.tolist(),
        "right_children": np.where(is_leaf, -1, right).tolist(), "parents": parents,
        "tree_param": {**tree["tree_param"], "size_leaf_vector": "1"},
    }  # fmt: skip


@dataclass(eq=False)
class Descent:
    """What a round goes by: derivatives by logits, then a step of the parameters of the space.

    ``objective`` is that of all rows: its start, counts and steepness are what rounds begin with.
    """

    objective: Objective
    learning_rate: float

    def __post_init__(self):
        # Scores that every row begins with.
        self.offset, self.parameters = self.objective.start(), self.objective.parameters
        self.counts, self.mass = self.objective.counts, self.objective.mass
        self.steepness = self.objective.steepness

    @property
    def space(self) -> Space:
        """The space with the parameters as they are now."""
        return with_parameters(self.objective, self.parameters)

    def round(
        self, margins: Array, objective: Objective, added: Callable[[Array], Array] = np.asarray
    ) -> tuple[Array, Array]:
        """The gradient and the diagonal of the Hessian by logits, of which scores are half.

        Of a loss as steep as a likelihood, so that penalties of leaves mean the same for all.
        ``objective`` has the rows of the margins; ``added`` gives the sum over all rows of what is
        summed over these.
        """
        scores = scores_of(margins, self.offset)
        gradient, hessian, by_parameter = objective.derivatives(scores, self.parameters)
        gradient *= 0.5 / self.steepness
        hessian *= 0.25 / self.steepness
        self._step_parameters(added(by_parameter))
        return gradient, np.maximum(hessian, LEAST_HESSIAN, out=hessian)

    def _step_parameters(self, by_parameter: Array) -> None:
        """A Newton step of each parameter by itself, by the learning rate; -inf stays."""
        if len(by_parameter) == 0:
            return
        expected, held_back = by_parameter + self.counts, self.objective.space.penalties
        slope = by_parameter + penalty(self.objective.space, self.parameters)[1]
        curvature = np.maximum(expected * (1.0 - expected / self.mass), 0.0) + held_back + 1.0
        move = self.learning_rate * np.clip(slope / curvature, -FURTHEST, FURTHEST)
        self.parameters = np.maximum(self.parameters - move, self.objective.lower_bounds)


@dataclass(eq=False)
class Boosting:
    """Rounds on training rows, and the number of them that was best so far.

    ``judge`` gives what the scores of ``held`` rows, and a space, are worth: the less the better.
    Without one the last round is the best.
    """

    inputs: Any
    objective: Objective
    settings: dict[str, Any]
    held: Any = None
    judge: Callable[[Array, Space], float] | None = None
    rounds: int = 0
    best: int = 0
    values: list[float] = field(default_factory=list)

    def __post_init__(self):
        self.descent = Descent(self.objective, self.settings["learning_rate"])
        self.best_parameters, self.best_scores = self.descent.parameters, None
        known = [one for one in (self.inputs, self.held) if one is not None]
        width = width_of(self.descent.offset)
        self.booster = xgboost().Booster({**self.settings, **width}, known)

    @property
    def n_rows(self) -> int:
        """Rows to learn from."""
        return self.inputs.num_row()

    def grow(self, rounds: int, patience: int | None, after: Callable[[], None]) -> None:
        """Add trees, until the best is so many rounds ago; ``after`` each one, what may end it."""
        descent = self.descent
        while self.rounds < rounds and (patience is None or self.rounds - self.best < patience):
            self._step()
            scores = None
            if self.judge is not None:
                margins = self.booster.predict(self.held, output_margin=True)
                scores = scores_of(margins, descent.offset)
                self.values.append(self.judge(scores, descent.space))
            if self.judge is None or self.values[-1] < min(self.values[:-1], default=np.inf):
                self.best, self.best_parameters = self.rounds, descent.parameters
                self.best_scores = scores
            after()

    def _step(self) -> None:
        """One round: a tree for all scores, and a step of the parameters of the space."""
        self.booster.update(
            self.inputs, self.rounds, lambda margins, _: self.descent.round(margins, self.objective)
        )
        self.rounds += 1

    def grown(self) -> Trees:
        """The trees of the best rounds."""
        return trees_of(self.booster, self.best, self.descent.offset)


def trees_of(booster: Any, rounds: int, offset: Array) -> Trees:
    """The trees of the first rounds of XGBoost's object."""
    if rounds == 0:
        raise ValueError("no tree has been grown")
    return Trees(bytes(booster[:rounds].save_raw("json")), offset)


def width_of(offset: Array) -> dict[str, int]:
    """XGBoost's parameter for so many scores; it has no vectors of one."""
    return {"num_target": len(offset)} if len(offset) > 1 else {}


def with_parameters(objective: Objective, parameters: Array) -> Space:
    """The space of an objective with the parameters learnt, if it learns any."""
    space = objective.space
    return space.with_parameters(parameters) if objective.learns else space


def scores_of(margins: Array, offset: Array) -> Array:
    """offset + margins / 2, (n, n_scores); XGBoost has no column axis for a single score."""
    return offset + np.asarray(margins, np.float64).reshape(-1, len(offset)) / 2.0


@dataclass(frozen=True)
class InMemory:
    """How the rows of a booster are held out and boosted where they are in memory."""

    model: Any

    def held(self, rows: Rows) -> tuple[Rows, Rows] | None:
        """Rows to learn from and rows to judge by; None where all are to learn from."""
        part = share_of(self.model.validation_fraction)
        if self.model.patience is None or rows.n_rows < part.denominator:
            return None
        folds = StratifiedLabelSets(part.denominator, random_state=self.model._seed).assign(
            csr_array(rows.sets)
        )
        is_held = folds < part.numerator
        parts = np.flatnonzero(~is_held), np.flatnonzero(is_held)
        return tuple(
            Rows(_safe_indexing(rows.inputs, p), rows.sets[p], rows.weights[p]) for p in parts
        )  # type: ignore

    def boosting(
        self, rows: Rows, objective: Objective, settings: dict[str, Any], held: Rows | None,
        judge: Judge,
    ) -> Boosting:  # fmt: skip
        """Rounds on rows, judged by others if there are any."""
        kinds = kinds_of(self.model._categorical(rows.n_features), rows.n_features)
        inputs = matrix(rows.inputs, kinds)
        if held is None:
            return Boosting(inputs, objective, settings)

        def judged(scores: Array, space: Space) -> float:
            return mean_of_sums(judge(scores, space, held))

        return Boosting(inputs, objective, settings, matrix(held.inputs, kinds), judged)


def mean_of_sums(sums: Array) -> float:
    """The mean of two sums, a total and its weight; of the next two, where there is no weight."""
    total, weight = sums[:2] if sums[1] > 0.0 else sums[2:]
    return float(total / weight)


def share_of(fraction: float) -> Fraction:
    """A share as so many of so many folds, as few as come near it.

    Examples
    --------
    >>> [str(share_of(fraction)) for fraction in (0.2, 0.4, 0.3333, 0.99, 0.001)]
    ['1/5', '2/5', '1/3', '19/20', '1/1000']
    """
    finest = max(MOST_FOLDS, math.ceil(1.0 / fraction))
    near = Fraction(float(fraction)).limit_denominator(finest)
    return min(near, Fraction(finest - 1, finest))

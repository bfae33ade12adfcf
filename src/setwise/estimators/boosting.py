"""Trees with a vector in each leaf, grown by the exact gradients of a loss over label sets.

Scores of a space come in halves of logits: score = (offset + margin) / 2, the margin the sum of the
leaves that a row falls into. A round adds a tree for all labels, by the gradient and the diagonal
of the Hessian; the parameters of the space (biases of sets or sizes) take a step of their own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise.estimators.training import Objective, penalty
from setwise.spaces.space import Space

Array = NDArray[Any]

# A row whose gradient has settled still counts a little, so that no leaf is divided by nothing.
LEAST_HESSIAN = 1e-6
# The furthest that a parameter of the space moves in a round, before the learning rate.
FURTHEST = 1.0
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

    ``kinds`` are those of the columns, as XGBoost names them; a data frame says its own.
    """
    own = hasattr(X, "dtypes") or not kinds
    return xgboost().DMatrix(X, enable_categorical=True, feature_types=None if own else kinds)


def kinds_of(categorical: Any, X: Any) -> list[str] | None:
    """What XGBoost calls the columns, of which some are codes of categories; None if none are."""
    if categorical is None:
        return None
    chosen, n_features = np.asarray(categorical), X.shape[1]
    known = chosen.ndim == 1 and chosen.dtype.kind in "iu"
    if not known or not np.isin(chosen, np.arange(n_features)).all():
        raise ValueError(
            f"categorical_features must be numbers of columns, from 0 to {n_features - 1}, not "
            f"{categorical!r}"
        )
    kinds = np.full(n_features, "float", object)
    kinds[chosen] = "c"
    return kinds.tolist()


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

    def scores(self, X: Any) -> Array:
        """Half of the offset and of the leaves that each row falls into, (n, n_scores)."""
        return scores_of(self._said(self.booster, X, output_margin=True), self.offset)

    def contributions(self, X: Any) -> Array:
        """What each feature adds to each score, (n, n_scores, n_features), by XGBoost.

        Those of a row add up to its scores less the mean ones (TreeSHAP).
        """
        found = self._said(one_score_a_tree(self.booster), X, pred_contribs=True)
        return found.reshape(len(found), len(self.offset), -1)[..., :-1] / 2.0

    def _said(self, booster: Any, X: Any, **asked: Any) -> Array:
        return booster.predict(matrix(X, self.booster.feature_types), **asked)

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
        # Scores that every row begins with.
        self.offset, self.parameters = self.objective.start(), self.objective.parameters
        self.best_parameters, self.best_scores = self.parameters, None
        known = [one for one in (self.inputs, self.held) if one is not None]
        width = {"num_target": len(self.offset)} if len(self.offset) > 1 else {}
        self.booster = xgboost().Booster({**self.settings, **width}, known)

    @property
    def n_rows(self) -> int:
        """Rows to learn from."""
        return self.inputs.num_row()

    def grow(self, rounds: int, patience: int | None, after: Callable[[], None]) -> None:
        """Add trees, until the best is so many rounds ago; ``after`` each one, what may end it."""
        while self.rounds < rounds and (patience is None or self.rounds - self.best < patience):
            self._step()
            scores = None
            if self.judge is not None:
                space = with_parameters(self.objective, self.parameters)
                scores = scores_of(self.booster.predict(self.held, output_margin=True), self.offset)
                self.values.append(self.judge(scores, space))
            if self.judge is None or self.values[-1] < min(self.values[:-1], default=np.inf):
                self.best, self.best_parameters = self.rounds, self.parameters
                self.best_scores = scores
            after()

    def _step(self) -> None:
        """One round: a tree for all scores, and a step of the parameters of the space."""
        objective, by_parameter = self.objective, np.zeros(len(self.parameters))

        def derivatives(margins: Array, _: Any) -> tuple[Array, Array]:
            """The gradient and the diagonal of the Hessian by logits, of which scores are half.

            Of a loss as steep as a likelihood, so that penalties of leaves mean the same for all.
            """
            scores = scores_of(margins, self.offset)
            gradient, hessian, by_parameter[:] = objective.derivatives(scores, self.parameters)
            gradient *= 0.5 / objective.steepness
            hessian *= 0.25 / objective.steepness
            return gradient, np.maximum(hessian, LEAST_HESSIAN, out=hessian)

        self.booster.update(self.inputs, self.rounds, derivatives)
        self.rounds += 1
        self._step_parameters(by_parameter)

    def _step_parameters(self, by_parameter: Array) -> None:
        """A Newton step of each parameter by itself, by the learning rate; -inf stays."""
        if len(by_parameter) == 0:
            return
        objective = self.objective
        expected, held_back = by_parameter + objective.counts, objective.space.penalties
        slope = by_parameter + penalty(objective.space, self.parameters)[1]
        curvature = np.maximum(expected * (1.0 - expected / objective.mass), 0.0) + held_back + 1.0
        move = self.settings["learning_rate"] * np.clip(slope / curvature, -FURTHEST, FURTHEST)
        self.parameters = np.maximum(self.parameters - move, objective.lower_bounds)

    def grown(self) -> Trees:
        """The trees of the best rounds."""
        if self.best == 0:
            raise ValueError("no tree has been grown")
        return Trees(bytes(self.booster[: self.best].save_raw("json")), self.offset)


def with_parameters(objective: Objective, parameters: Array) -> Space:
    """The space of an objective with the parameters learnt, if it learns any."""
    space = objective.space
    return space.with_parameters(parameters) if objective.learns else space


def scores_of(margins: Array, offset: Array) -> Array:
    """offset + margins / 2, (n, n_scores); XGBoost has no column axis for a single score."""
    return offset + np.asarray(margins, np.float64).reshape(-1, len(offset)) / 2.0

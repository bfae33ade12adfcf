"""Boosted trees on exact losses over label sets."""

from __future__ import annotations

import time
from collections.abc import Mapping
from copy import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from setwise.decoders.for_target import HeldOut, decoder_of
from setwise.estimators.blocked import refuse_blocks
from setwise.estimators.boosting import (
    Boosting,
    InMemory,
    Judge,
    with_parameters,
    xgboost,
)
from setwise.estimators.categories import categories_of, coded, refuse_inputs
from setwise.estimators.choice import space_for, unseen_mass
from setwise.estimators.claim import log_loss_of
from setwise.estimators.cost import Plan, is_auto, planned
from setwise.estimators.design import Rows, rows_of, validated
from setwise.estimators.held_out import judge_of, surprise_of
from setwise.estimators.running import (
    INTERRUPTS,
    OutOfTime,
    Watch,
    progress_shown,
    run,
    warn_of_end,
)
from setwise.estimators.scored import ScoredModel
from setwise.estimators.training import Training
from setwise.labels import LabelNames
from setwise.spaces.space import Space
from setwise.sparse import dense_rows, tidied
from setwise.spelling import argument
from setwise.surrogates.names import DEFAULT_Q
from setwise.targets.truth import read_truth, refuse_open
from setwise.threads import thread_count
from setwise.validation import places_of, positive_number, real_number, require_one_of, whole_number

Array = NDArray[Any]

STOPPING = ("log_loss", "target")
# Names that XGBoost has for what is set here, and what belongs to losses of its own.
NOT_GIVEN = (
    *("objective", "num_class", "num_target", "scale_pos_weight", "booster", "eta", "lambda"),
    *("process_type", "n_jobs", "random_state"),
)
# Trees of fewer entries of the inputs, times labels, are grown on one thread.
SMALL = 2**23


@dataclass(eq=False, repr=False)
class SetBooster(ScoredModel):
    """Gradient-boosted trees on an exact loss over label sets, decoded for the target.

    Trees of XGBoost with a vector in each leaf, one score a label. Every round adds a tree by the
    exact gradient and the diagonal of the Hessian of the loss: for the likelihood on a space of
    label sets P(label) - y and P (1 - P); the biases of the space are learnt along the way. How
    many rounds are best is found on held-out rows; then all rows are trained with so many.

    Parameters
    ----------
    target, surrogate, space, decoder
        As in `SetClassifier`. Surrogates are "likelihood", "binary_relevance" and the target's own
        comp-sum losses; the space "joint", which scores sets, is not for trees.
    n_estimators : int, default 500
        Most rounds, and trees.
    learning_rate : float, default 0.1
    max_depth : int, default 4
    min_child_weight : float, default 1.0
        Least sum of second derivatives in a leaf.
    subsample, colsample : float, default 0.8 and 0.5
        Shares of the rows that a tree, and of the features that a level of it, is grown on.
    reg_lambda : float, default 1.0
        Penalty of leaves.
    max_bin : int, default 64
        Values of a feature that splits tell apart. (With XGBoost's own 256, rounds on a few
        thousand rows take about four times as long.)
    stopping : {"log_loss", "target"}, default "log_loss"
        What is judged on held-out rows after each round: the mean log-loss (of other losses than a
        likelihood, the loss itself), or the loss of the target.
    patience : int or None, default 30
        Rounds without a better one until training ends; None: no rows are held out, and all
        ``n_estimators`` rounds are made.
    validation_fraction : float, default 0.2
        Share of the rows held out, spread evenly over the labels.
    categorical_features : list of int, optional
        Columns of an array that hold categories, as codes 0, 1, ... (Those of a data frame that
        have the type category need not be named.)
    xgboost_params : dict, optional
        Further parameters for XGBoost, as it names them, such as ``{"gamma": 1.0}``; not those
        that are parameters here, nor those of its own losses.
    q, sparse_output, n_jobs, verbose
        As in `SetClassifier`.
    time_budget, on_interrupt
        As in `SetClassifierCV`: training ends in time, or when interrupted, with what it has. Where
        time is short, that is the model of the rows that are not held out.
    random_state : int, RandomState or None, default None
        Seed of what is held out and sampled; None is 0.

    Attributes
    ----------
    classes_, space_, target_, decoder_, surrogate_, choice_, guarantee_, n_features_in_
        As in `SetClassifier`.
    n_iter_ : int
        Rounds, and trees, of the model.
    held_out_ : list of float
        What was judged on the held-out rows, after each round.
    feature_importances_ : array of shape (n_features,)
        The mean gain of the splits by each feature, with a sum of 1.
    stopped_ : {None, "time_budget", "interrupt"}
        Why training ended early, if it did.

    Notes
    -----
    NaN, and what a sparse matrix does not store, is missing: each split sends missing values the
    way that is better. Columns of categories (``categorical_features``, or of the type category in
    a data frame) are split as sets of categories, by trees of one label each; without such columns
    a tree has a leaf for all labels. Categories of a data frame go by their values, in any order;
    one that the training rows did not list is refused.

    For the target's own losses the second derivative is that of the logistic one (q = 0), as steep
    as the loss is: its own may be negative. Losses are scaled to begin as steep as a likelihood, so
    ``min_child_weight`` and ``reg_lambda`` mean the same for all.

    Examples
    --------
    >>> X = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.9], [0.9, 0.1]] * 20
    >>> Y = [[0, 1], [1, 0], [1, 1], [0, 1], [1, 0]] * 20
    >>> SetBooster("f1", n_estimators=20).fit(X, Y).predict([[0.0, 1.0], [1.0, 0.0]])
    array([[0, 1],
           [1, 0]])
    """

    target: Any = "f1"
    surrogate: Any = "auto"
    space: Any = "auto"
    decoder: str = "auto"
    _: KW_ONLY
    n_estimators: int = 500
    learning_rate: float = 0.1
    max_depth: int = 4
    min_child_weight: float = 1.0
    subsample: float = 0.8
    colsample: float = 0.5
    reg_lambda: float = 1.0
    max_bin: int = 64
    stopping: str = "log_loss"
    patience: int | None = 30
    validation_fraction: float = 0.2
    categorical_features: Any = None
    xgboost_params: dict[str, Any] | None = None
    q: float = DEFAULT_Q
    sparse_output: bool = False
    time_budget: float | None = None
    on_interrupt: str = "raise"
    n_jobs: int | None = None
    verbose: bool = False
    random_state: Any = None

    def fit(self, X, y=None, sample_weight=None):
        """Grow trees.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, n_features)
        y : label sets in any form of `setwise.labels.read_labels`, or one class a row
        sample_weight : array of shape (n,), optional
        """
        xgboost()
        refuse_blocks(X)
        self._require_settings()
        with run(self), progress_shown(self.verbose) as tell:
            watch = Watch(self.time_budget, tell)
            inputs = self._checked(X, reset=True)
            sets, names = read_truth(self.target, y)
            rows = rows_of(inputs, dense_rows(sets), sample_weight)
            refuse_open(self.target, rows.sets, rows.weights)
            self._fit(rows.taken(), names, watch)
        warn_of_end(self.stopped_, f"the model has the best of {self.n_iter_} rounds")
        return self

    def _fit(self, rows: Any, names: LabelNames, watch: Watch, how: Any = None) -> None:
        """Find how many rounds are best on held-out rows, then train so many on all rows.

        ``how`` holds rows out and makes what boosts them, where they are not in memory.
        """
        how = InMemory(self) if how is None else how
        risk = decoder_of(self.target, self.decoder)
        self.stopped_ = self._held_out = self._out_of_fold = None
        self._names, self.classes_ = names, names.names
        is_free = is_auto(self.space) and not names.one_dimensional
        plan = planned(self, self.surrogate, self.space, is_free, rows, risk.target)
        training = self._training(plan.surrogate, risk.target)
        whole = self._boosting(how, plan, training, rows)
        self._decode_by(risk, training, whole.objective.space)
        held = how.held(rows)
        searched = self._boosting(how, plan, training, *held) if held else whole
        grown = searched
        try:
            seconds = self._grow(searched, self.n_estimators, watch) / searched.rounds
            if held:
                # (No time is spent on trees that could not be finished.)
                watch.kept = seconds * searched.best * rows.n_rows / searched.n_rows
                watch.step()
                watch.kept = 0.0
                self._grow(whole, searched.best, watch)
                grown = whole
        except OutOfTime:
            self.stopped_ = "time_budget"
        except KeyboardInterrupt:
            if self.on_interrupt == "raise" or grown.best == 0:
                raise
            self.stopped_ = "interrupt"
        self._keep(grown, searched, held[1] if held else None)
        seen = rows.sets, rows.counts
        self._unseen = unseen_mass(*seen) if isinstance(self.space, str) else None
        self._settle(risk, lambda: self._out_of_fold)

    def _grow(self, boosting: Boosting, rounds: int, watch: Watch) -> float:
        """Rounds until the best is known, or time is up; the seconds they took."""
        begun, patience = time.monotonic(), None if boosting.judge is None else self.patience

        def after() -> None:
            where = f"round {boosting.rounds} of {rounds}"
            last = f", held out {boosting.values[-1]:.4f}" if boosting.values else ""
            watch.words, watch.kept = f"{where}{last}", 0.0
            watch.step()

        boosting.grow(rounds, patience, after)
        return time.monotonic() - begun

    def _boosting(
        self, how: Any, plan: Plan, training: Training, rows: Any, held: Any = None
    ) -> Any:
        """Boosting of some rows, judged by others if there are any."""
        is_class = self._names.one_dimensional
        space = space_for(plan.space, training, is_class, rows.sets, rows.weights, rows.counts)
        objective = training.objective(training.stages()[-1], space, rows.sets, rows.weights)
        if not objective.is_smooth or space.is_joint:
            raise ValueError(
                f"trees are grown on 'likelihood', 'binary_relevance' or a comp-sum loss of the "
                f"target, with a score for each label, but "
                f"{argument('surrogate', self.surrogate)} and {argument('space', self.space)}"
            )
        return how.boosting(rows, objective, self._settings(rows), held, self._judge(training))

    def _judge(self, training: Training) -> Judge:
        """What scores of held-out rows are worth on a space, as sums to be added and divided."""

        def judged(scores: Array, space: Space, held: Rows) -> Array:
            model, weights = self._of_scores(space), held.weights
            mass = float(weights.sum())
            if self.stopping == "target":
                judge = judge_of(self._risk, self._names)
                kept = judge.kept(model, scores, held.sets)
                loss = judge.judged([HeldOut(kept, held.sets, weights)]).loss
                return np.array([loss * mass, mass, 0.0, 0.0])
            if not (training.is_likelihood or training.is_separate):
                losses = training.loss(space).value_and_gradient(scores, held.sets)[0]
                return np.array([weights @ losses, mass, 0.0, 0.0])
            told = model._log_loss(scores, held)
            possible = mass * (1.0 - told["impossible"])
            if possible > 0.0:
                return np.array([told["log_loss"] * possible, possible, 0.0, 0.0])
            # No set that was held out is on the list: by the marginals, then.
            losses = surprise_of(model._marginals_of(scores), held.sets)
            return np.array([0.0, 0.0, weights @ losses, mass])

        return judged

    def _of_scores(self, space: Space) -> Any:
        """This model on a space, with scores in place of inputs."""
        model: Any = copy(self)
        model.space_, model._trees = space, AsGiven()
        return model

    def _log_loss(self, inputs: Any, rows: Rows) -> dict[str, float]:
        return log_loss_of(self._log_probability(rows._replace(inputs=inputs)), rows.weights)

    def _keep(self, grown: Boosting, searched: Boosting, held: Rows | None) -> None:
        """The model that was grown, and what the one searched with says of the rows held out."""
        self._trees, self.n_iter_, self.held_out_ = grown.grown(), grown.best, searched.values
        self.space_ = with_parameters(grown.objective, grown.best_parameters)
        if held is not None and searched.best_scores is not None:
            space = with_parameters(searched.objective, searched.best_parameters)
            model, scores = self._of_scores(space), searched.best_scores
            if self._trained.is_likelihood or self._trained.is_separate:
                self._held_out = model._log_loss(scores, held)
            marginals = model._marginals_of(scores).astype(np.float32)
            self._out_of_fold = HeldOut(marginals, held.sets, held.weights)

    def _settings(self, rows: Any) -> dict[str, Any]:
        """The parameters of XGBoost, which splits categories in trees of one label only."""
        has_any = len(self._categorical(rows.n_features)) > 0
        trees = "one_output_per_tree" if has_any else "multi_output_tree"
        # Threads that share little work wait for each other most of the time.
        n_threads = 1 if rows.n_entries * len(self.classes_) < SMALL else thread_count()
        own = {
            "tree_method": "hist", "multi_strategy": trees, "base_score": 0.0,
            "disable_default_eval_metric": True, "nthread": n_threads, "seed": self._seed,
            "learning_rate": float(self.learning_rate), "max_depth": self.max_depth,
            "min_child_weight": self.min_child_weight, "subsample": self.subsample,
            "colsample_bylevel": self.colsample, "reg_lambda": self.reg_lambda,
            "max_bin": self.max_bin,
        }  # fmt: skip
        for name in (given := self.xgboost_params or {}):
            if name in own or name in NOT_GIVEN:
                raise ValueError(
                    f"xgboost_params must leave {name!r} alone: it is set by a parameter of "
                    f"SetBooster, or by the loss"
                )
        return own | given

    def _require_settings(self) -> None:
        whole_number(self.n_estimators, "n_estimators", 1)
        whole_number(self.max_depth, "max_depth", 1)
        whole_number(self.max_bin, "max_bin", 2)
        positive_number(self.learning_rate, "learning_rate")
        for name in ("reg_lambda", "min_child_weight"):
            real_number(getattr(self, name), name, 0.0, np.inf)
        if self.patience is not None:
            whole_number(self.patience, "patience", 1)
        if not isinstance(self.xgboost_params, Mapping | None):
            raise ValueError(f"xgboost_params must be a mapping, not {self.xgboost_params!r}")
        require_one_of(self.stopping, STOPPING, "stopping")
        require_one_of(self.on_interrupt, INTERRUPTS, "on_interrupt")
        for name in ("subsample", "colsample", "validation_fraction"):
            if not positive_number(getattr(self, name), name) <= 1.0:
                raise ValueError(f"{name} must be a share, at most 1, not {getattr(self, name)!r}")
        if self.validation_fraction == 1.0:
            raise ValueError("validation_fraction must be below 1: some rows are to learn from")

    @property
    def feature_importances_(self) -> Array:
        """The mean gain of the splits by each feature, with a sum of 1, (n_features,)."""
        fitted: Any = self._fitted()
        return fitted._trees.gains(fitted.n_features_in_)

    def settled(self) -> SetBooster:
        """A booster, to be fitted, of as many rounds as were found best."""
        other: Any = clone(self)
        return other.set_params(n_estimators=self._fitted().n_iter_, patience=None)

    def _fitted(self) -> SetBooster:
        check_is_fitted(self, "_trees")
        return self

    def _categorical(self, n_features: int) -> Array:
        """The columns that hold codes of categories."""
        named = [] if self.categorical_features is None else self.categorical_features
        named = places_of(named, "categorical_features", n_features)
        return np.union1d(named, [int(place) for place in self._categories]).astype(int)

    def _checked(self, X, reset: bool = False) -> Any:
        """X as XGBoost takes it: floats with NaN, dense or CSR, codes in place of categories."""
        if reset:
            self._categories = categories_of(X) if hasattr(X, "iloc") else {}
        X = coded(X, self._categories) if hasattr(X, "iloc") else X
        inputs = validated(
            self, tidied(X, "X") if issparse(X) else X, reset, accept_sparse="csr",
            dtype=[np.float32, np.float64], ensure_all_finite="allow-nan",
        )  # fmt: skip
        refuse_inputs(inputs, self._categorical(inputs.shape[1]), self._categories)
        return inputs

    def _scores(self, X) -> Array:
        return self._trees.scores(X)

    def _score_parts(self, X, background) -> tuple[Array, Array]:
        """By XGBoost's contributions, of which the base is the mean over the training rows."""
        parts = self._trees.contributions(X)[0].astype(np.float64)
        return parts, np.ones(parts.shape[1])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class AsGiven:
    """In place of trees, where scores are given in place of inputs."""

    def scores(self, given: Array) -> Array:
        """The scores themselves."""
        return given

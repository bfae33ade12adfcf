"""A classifier of very many labels: a tree of linear models, decoded for the target."""

from __future__ import annotations

from copy import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.validation import check_is_fitted

from setwise.blocks import Blocks
from setwise.blocks.block import OWN_SETS
from setwise.decoders.calibration import Calibration
from setwise.decoders.for_target import Decoder, HeldOut, decoder_of
from setwise.decoders.threshold_search import labelled
from setwise.distributions.shortlist import Shortlist
from setwise.estimators.blocked import gathered
from setwise.estimators.design import checked_inputs, scaled_rows, weights_of
from setwise.estimators.folds import drawn_groups
from setwise.estimators.guarantee import claim_of_population, claim_of_shortlists
from setwise.estimators.label_tree import LabelTree, Settings, grown, trained
from setwise.estimators.named_sets import NamedSets
from setwise.estimators.running import progress_shown, run
from setwise.estimators.turned import LARGEST_SINGLE
from setwise.labels import LabelNames
from setwise.targets.measure import Array
from setwise.targets.target import hierarchy_of, predicted_size
from setwise.targets.truth import read_truth, refuse_other_labels
from setwise.validation import (
    positive_number,
    real_number,
    refuse_large,
    require_one_of,
    same_rows,
    whole_number,
)

SCALINGS, CALIBRATIONS = (None, "rows"), (None, "held_out")
# Slope, shift and factor of probabilities that are left as they are; and most that a factor is.
AS_IT_IS, MOST_FACTOR = (1.0, 0.0, 1.0), 10.0
GIB = 2.0**30


@dataclass(eq=False, repr=False)
class LabelTreeClassifier(NamedSets, ClassifierMixin, BaseEstimator):
    """Thousands of labels, or hundreds of thousands: a label tree of sparse linear models.

    Labels with alike inputs stand close to each other in a tree. Each node has a logistic
    regression for "one of the labels below is true", given that one below its parent is, trained on
    the rows of which that is so. A prediction searches the tree for all labels of a probability of
    at least ``floor``, exactly, and decides for the target from them and the expected number of
    true labels outside: see `Shortlist`. Neither training nor prediction makes an array of rows by
    labels; both are sparse throughout. No other package is needed.

    Parameters
    ----------
    target : target or str, default "f1"
        What predictions are judged by: F-beta, Jaccard, precision@k, recall@k, Hamming, subset, or
        a measure of all rows together such as "macro_f1".
    decoder : str or PopulationRule, default "auto"
        For a measure of all rows together one of the rules of `PopulationRule`; for others
        "minimum_risk", as by "auto".
    arity : int, default 16
        Most children of a node, rounded down to a power of 2.
    max_leaves : int, default 128
        Most labels below the last nodes. With as many as there are labels the tree is flat: one
        linear model a label, trained on all rows, in batches.
    penalty : float, default 0.1
        Penalty of the squares of weights, beside the sum of the losses of a node's rows; its
        inverse is scikit-learn's C.
    scaling : {"rows", None}, default "rows"
        Whether every row of X is divided by its Euclidean length.
    floor : float, default 0.01
        Labels of at least this probability are listed one by one.
    at_least : int, default 10
        Least number of labels listed, however improbable.
    unseen : float, default 0.005
        Below a node of little probability the search goes on for the sum of what is there, unless
        its probability times the number of labels below is no more than this. The smaller, the more
        is certain of the labels outside a shortlist.
    least_weight : float, default 0.05
        Weights below are dropped, so that the model is small; ``density_`` is what is left.
    memory : float, default 1.0
        GiB that training may hold beside the data and the model; labels are trained in batches.
    tol : float, default 0.01
        The training of a batch of labels ends where no entry of the gradient of their mean losses
        is larger than this, times the share of the rarest of them.
    max_iter : int, default 50
        Steps of the solver for a batch of labels.
    calibration : {"held_out", None}, default "held_out"
        Whether probabilities are made right by what a tree trained on the other rows says of rows
        held out: a slope and a shift of the log-odds of all labels listed, and a factor for the sum
        of those outside. No ranking changes by it. It takes a training more, as a measure of all
        rows together does, which is decided by these rows too.
    validation_fraction : float, default 0.2
        Share of the rows held out.
    sparse_output : bool, default True
        Whether `predict` and `predict_proba` return CSR arrays.
    n_jobs : int, optional
        Threads; None and -1: as many as there are processors for this process.
    verbose : bool, default False
        Whether to show progress on the error stream.
    random_state : int, RandomState or None, default None
        Seed of the tree and of what is held out; None is 0.

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
        Names of the labels, or the classes of a one-dimensional y.
    tree_ : LabelTree
        The nodes and their weights, as arrays.
    calibration_ : tuple of three floats
        Slope and shift of the log-odds, and the factor of the sum outside.
    density_ : float
        Share of the weights that are kept, of those of all features and nodes.
    guarantee_ : str
        What is proved of the predictions.
    n_iter_ : int
        Most steps that a batch of labels took.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import random_array
    >>> X = random_array((200, 30), density=0.2, random_state=np.random.default_rng(0))
    >>> Y = (X @ np.random.default_rng(1).normal(size=(30, 50)) > 1.0).astype(int)
    >>> model = LabelTreeClassifier("f1", max_leaves=16).fit(X, Y)
    >>> sets, gap = model.predict(X), model.gap(X)
    >>> sets.shape, bool(gap.max() < 0.05)
    ((200, 50), True)
    """

    target: Any = "f1"
    decoder: Any = "auto"
    _: KW_ONLY
    arity: int = 16
    max_leaves: int = 128
    penalty: float = 0.1
    scaling: str | None = "rows"
    floor: float = 0.01
    at_least: int = 10
    unseen: float = 0.005
    least_weight: float = 0.05
    memory: float = 1.0
    tol: float = 0.01
    max_iter: int = 50
    calibration: str | None = "held_out"
    validation_fraction: float = 0.2
    sparse_output: bool = True
    n_jobs: int | None = None
    verbose: bool = False
    random_state: Any = None

    def fit(self, X, y=None, sample_weight=None, groups=None):
        """Grow a tree over the labels and train its nodes.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or Blocks
            Blocks have label sets and weights of their own; their rows are gathered in memory.
        y : label sets in any form of `setwise.labels.read_labels`, or one class a row
        sample_weight : array of shape (n,), optional
            None negative, not all 0.
        groups : array of shape (n,), optional
            Rows of one group are held out together: those of one author, day or source, where rows
            to be predicted come from others. Else probabilities come out too certain.
        """
        with run(self), progress_shown(self.verbose) as tell:
            self._require_settings()
            risk = self._decoder_of(self.target)
            inputs, sets, weights, names = self._read(X, y, sample_weight)
            _refuse_undecodable(risk, names)
            seed, self._out_of_fold, self.calibration_ = self._seed, None, AS_IT_IS
            held, counted = self._held_out(groups, weights, seed), weights > 0
            rows = inputs[counted], sets[counted], weights[counted]
            of_whole = risk.is_of_whole and not risk.depends_on_batch
            if (of_whole or self.calibration) and not names.one_dimensional and held.any():
                self._learn_from_held_out(*rows, held, seed, tell)
            self.tree_, self.n_iter_ = self._trained(*rows, seed, tell)
            self._names, self.classes_ = names, names.names
            self._risk = risk if names.one_dimensional else risk.fitted(lambda: self._out_of_fold)
        return self

    def _held_out(self, groups: Any, weights: Array, seed: int) -> Array:
        """Which of the rows of positive weight are held out, in whole groups."""
        groups = np.arange(len(weights)) if groups is None else column_or_1d(groups)
        same_rows(X=weights, groups=groups)
        return drawn_groups(groups[weights > 0], self.validation_fraction, seed)

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Array, LabelNames]:
        """Inputs and label sets as CSR, weights, and the names of the labels."""
        if isinstance(X, Blocks):
            if y is not None or sample_weight is not None:
                raise ValueError(OWN_SETS)
            inputs, sets, weights = gathered(self, X)
            return self._scaled(inputs), sets, weights, X.names
        inputs = self._checked(X, reset=True)
        read, names = read_truth(self.target, y)
        same_rows(X=inputs, y=read)
        return inputs, csr_array(read), weights_of(sample_weight, inputs), names

    def _trained(
        self, inputs: Any, sets: Any, weights: Array, seed: int, tell: Any
    ) -> tuple[LabelTree, int]:
        how = Settings(
            float(self.penalty), float(self.tol), self.max_iter, float(self.least_weight),
            self.memory * GIB,
        )  # fmt: skip
        structure = grown(inputs, sets, weights, self.arity, self.max_leaves, seed)

        def told(turn: int, turns: int) -> None:
            if tell is not None:
                tell(f"batch {turn + 1} of {turns}")

        return trained(structure, inputs, sets, weights, how, told)

    def _learn_from_held_out(
        self, inputs: Any, sets: Any, weights: Array, held: Array, seed: int, tell: Any
    ) -> None:
        """Keep, and calibrate by, what a tree trained without some rows says of them."""
        tree, _ = self._trained(inputs[~held], sets[~held], weights[~held], seed, tell)
        raw = self._searched(tree, inputs[held])
        if self.calibration:
            self.calibration_ = _calibrated(raw, sets[held], weights[held])
        right = self._made_right(raw)
        self._out_of_fold = HeldOut(right.probability, sets[held], weights[held])

    def predict_distribution(self, X) -> Shortlist:
        """The shortlists of the rows, and what is known of the labels outside them."""
        check_is_fitted(self, "tree_")
        return self._made_right(self._searched(self.tree_, self._checked(X)))

    def _made_right(self, listed: Shortlist) -> Shortlist:
        """With the slope, shift and factor that were found on rows held out."""
        if self.calibration_ == AS_IT_IS:
            return listed
        *line, factor = self.calibration_
        calibration = Calibration(*line)
        tails = (factor * tail for tail in (listed.least_tail, listed.most_tail))
        table, floor = map(calibration.applied, (listed.probability, listed.floor))
        return Shortlist(table, factor * listed.tail, floor, *tails)

    def _searched(self, tree: LabelTree, inputs: Any) -> Shortlist:
        return tree.shortlist(inputs, self.floor, self._least(self.target), self.unseen)

    def predict_proba(self, X) -> Any:
        """The probability of each label of the shortlists, (n, n_labels); CSR, or with zeros.

        Of a one-dimensional y that of each class, an array whose rows add up to 1.
        """
        listed = self.predict_distribution(X).probability
        if self._names.one_dimensional:
            chance: Any = listed.toarray().astype(np.float64)
            return chance / chance.sum(axis=1, keepdims=True)
        return listed if self.sparse_output else listed.toarray()

    def predict(self, X) -> Any:
        """The label sets, or classes, to predict."""
        if self._fitted()._names.one_dimensional:
            return self.classes_[self.predict_proba(X).argmax(axis=1)]
        sets: Any = csr_array(self._risk.decode(self.predict_distribution(X))).astype(np.int64)
        return sets if self.sparse_output else sets.toarray()

    def gap(self, X) -> Array:
        """By how much at most the expected utility of each prediction is below the best, (n,).

        Under the probabilities of the tree, whatever those that the search left out are: see
        `MinimumRisk.gap`. A measure of all rows together, and classes, have none.
        """
        if self._fitted()._names.one_dimensional or self._risk.is_of_whole:
            raise ValueError(
                f"gap is of label sets that are decided row by row, but those for {self.target} "
                f"are not"
            )
        risk: Any = self._risk
        return risk.gap(self.predict_distribution(X))

    def _judged(self) -> tuple[LabelNames, Any]:
        return self._fitted()._names, self._risk.target

    def for_target(self, target) -> LabelTreeClassifier:
        """The same tree, decoded for another target; nothing is trained again.

        A measure of all rows together is decided for by the rows held out, where the fit had some,
        else by the probabilities of the rows to be predicted.
        """
        refuse_other_labels(target, self._fitted()._names)
        other: Any = copy(self)
        other.set_params(target=target)
        risk = other._decoder_of(target)
        _refuse_undecodable(risk, self._names)
        other._risk = risk.fitted(lambda: self._out_of_fold)
        return other

    @property
    def guarantee_(self) -> str:
        """What is proved of the predictions, in words."""
        risk: Any = self._fitted()._risk
        if risk.is_of_whole:
            return str(claim_of_population(risk, self._out_of_fold))
        floor = float(Calibration(*self.calibration_[:2]).applied(np.array([self.floor]))[0])
        return str(claim_of_shortlists(risk.target, len(self.classes_), floor))

    @property
    def depends_on_batch_(self) -> bool:
        """Whether what is predicted for a row depends on the rows that come with it."""
        return self._fitted()._risk.depends_on_batch

    @property
    def density_(self) -> float:
        """Share of the weights that are kept, of those of all features and nodes."""
        weights = self._fitted().tree_.weights
        return weights.nnz / (weights.shape[0] * weights.shape[1])

    def _fitted(self) -> LabelTreeClassifier:
        check_is_fitted(self, "tree_")
        return self

    def _least(self, target: Any) -> int:
        """How many labels a row lists at least: enough for predictions of k labels."""
        risk = self._decoder_of(target)
        return max(self.at_least, 0 if risk.is_of_whole else predicted_size(risk.target) or 0)

    def _decoder_of(self, target: Any) -> Decoder:
        risk = decoder_of(target, self.decoder)
        if not risk.is_of_whole:
            require_one_of(self.decoder, ("auto", "minimum_risk"), "decoder")
        if hierarchy_of(risk.target) is not None:
            raise ValueError(
                f"{risk.target} is decided over a hierarchy of all labels, not from shortlists; "
                f"use SetClassifier"
            )
        return risk

    @property
    def _seed(self) -> int:
        seed = 0 if self.random_state is None else self.random_state
        if not isinstance(seed, int | np.integer):
            seed = check_random_state(seed).randint(2**31 - 1)
        return int(seed)

    def _require_settings(self) -> None:
        whole_number(self.arity, "arity", 2)
        whole_number(self.max_leaves, "max_leaves", 2)
        whole_number(self.at_least, "at_least", 1)
        whole_number(self.max_iter, "max_iter", 1)
        for name in ("penalty", "memory", "tol", "floor", "validation_fraction"):
            positive_number(getattr(self, name), name)
        real_number(self.floor, "floor", 0.0, 1.0)
        real_number(self.validation_fraction, "validation_fraction", 0.0, 0.9)
        for name in ("least_weight", "unseen"):
            real_number(getattr(self, name), name, 0.0, np.inf)
        require_one_of(self.scaling, SCALINGS, "scaling")
        require_one_of(self.calibration, CALIBRATIONS, "calibration")

    def _checked(self, X, reset: bool = False) -> Any:
        """X as CSR float32, in the model's scaling."""
        return self._scaled(csr_array(checked_inputs(self, X, reset)))

    def _scaled(self, checked: Any) -> Any:
        inputs = scaled_rows(checked, self.scaling)
        advice = "sums of products would overflow in single precision; scaling='rows' takes any"
        refuse_large(inputs, LARGEST_SINGLE, "X", advice)
        return inputs.astype(np.float32)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags


def _refuse_undecodable(risk: Any, names: LabelNames) -> None:
    """Refuse a target that shortlists are not enough for rather than in predict."""
    if not (names.one_dimensional or risk.is_of_whole):
        risk.require_shortlists(names.n_labels)


def _calibrated(listed: Shortlist, sets: Any, weights: Array) -> tuple[float, float, float]:
    """Slope, shift and factor that fit shortlists to label sets, by the weights of their rows.

    The factor has a prior of one label in one row, so that little outside says little.
    """
    sample = labelled(listed.probability, sets, weights)
    _, score, true = sample.entries
    outside, expected = float(true[score == 0.0].sum()), float(weights @ listed.tail)
    factor = (outside + 1.0) / (expected + 1.0)
    slope, shift = Calibration.of(sample)
    return slope, shift, float(np.clip(factor, 1.0 / MOST_FACTOR, MOST_FACTOR))

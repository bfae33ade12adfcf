"""The linear classifier: scores X W + b, a surrogate to train on, a decoder to predict by."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from setwise.decoders.for_target import AtCosts, Decoder, HeldOut, decoder_of
from setwise.distributions import Distribution, Independent, OfSpace
from setwise.estimators.choice import decoder_for, space_for, unseen_mass
from setwise.estimators.cost import is_auto, planned
from setwise.estimators.design import (
    Design,
    Rows,
    Solution,
    checked_inputs,
    read_training,
    rows_of,
    scaled_rows,
)
from setwise.estimators.guarantee import (
    Claim,
    claim_of_classes,
    claim_of_costs,
    claim_of_population,
    claim_of_sets,
    log_loss_of,
)
from setwise.estimators.held_out import held_out_rows
from setwise.estimators.metro import Metro
from setwise.estimators.named_sets import NamedSets
from setwise.estimators.running import Progress, progress_shown, run
from setwise.estimators.solver import Fitting
from setwise.estimators.training import Training, ranges_for
from setwise.labels import LabelNames
from setwise.persistence import save
from setwise.surrogates.names import DEFAULT_Q, METRO
from setwise.targets.registry import get_target
from setwise.targets.target import method_of
from setwise.targets.truth import encode_truth, refuse_other_labels
from setwise.threads import small_products
from setwise.validation import positive_number, score_matrix, whole_number

# Probabilities are kept this far from 0 and 1 where their log-odds are asked for.
LEAST = 1e-7


class LinearClassifier(NamedSets, ClassifierMixin, BaseEstimator, ABC):
    """What a linear classifier is asked once it is fitted, whoever chose its settings."""

    # What was said of rows held out, where something was.
    _out_of_fold: HeldOut | None = None

    @abstractmethod
    def _fitted(self) -> SetClassifier:
        """The classifier that answers; raises if there is none yet."""

    @property
    def guarantee_(self) -> str:
        """What is proved of the predictions, in words."""
        model = self._fitted()
        return str(model._claim().measured(model._held_out, "the held-out rows of the folds"))

    @property
    def depends_on_batch_(self) -> bool:
        """Whether what is predicted for a row depends on the rows that come with it."""
        return self._fitted()._risk.depends_on_batch

    def guarantee_on(self, X, y, sample_weight=None) -> str:
        """`guarantee_` with the figures of these rows, which must not have been trained on.

        The bound of a likelihood is in terms of the log-loss on new rows: of the rows whose label
        set the model gives a probability the mean is taken, the share of the others is added.
        Other claims have no figures.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
        y : label sets in any form of `fit`, or one class a row
        sample_weight : array of shape (n,), optional
        """
        model = self._fitted()
        claim, held_out = model._claim(), None
        if claim.kind == "bounded":
            known = encode_truth(model.target_, model._names, y)
            rows = rows_of(model._checked(X), known, sample_weight)
            held_out = log_loss_of(model._log_probability(rows), rows.weights)
        return str(claim.measured(held_out, "the rows given"))

    def decision_function(self, X):
        """The scores of the labels, (n, n_labels); (n,) for a y of two classes.

        With the space "joint", which scores label sets, half the log-odds of each label.
        """
        model = self._fitted()
        inputs = model._checked(X)
        if model.space_.is_joint:
            likely = model._marginals_of(inputs)
            return logit(np.clip(likely, LEAST, 1.0 - LEAST)) / 2.0
        scores = model._scores(inputs)
        is_binary = model._names.one_dimensional and len(model.classes_) == 2
        return scores[:, 1] - scores[:, 0] if is_binary else scores

    def predict_distribution(self, X) -> Distribution:
        """The distribution over label sets that the scores of each row stand for.

        Independent labels for binary relevance; else that of the space with its learnt parameters.
        (Where a target's own loss was trained, rather than a likelihood, it is no estimate of the
        probabilities.)
        """
        model = self._fitted()
        return model._distribution(model._checked(X))

    def predict_proba(self, X):
        """The probability of each label, (n, n_labels)."""
        model = self._fitted()
        return model._by_ranges(model._probability, model._checked(X))

    def predict(self, X):
        """The label sets, or classes, to predict."""
        model = self._fitted()
        return model._predict(model._checked(X))

    def score(self, X, y, sample_weight=None) -> float:
        """The utility of the target, or the accuracy of classes; y in any form of `fit`.

        Of most targets 1 - the mean loss; of a measure of all rows together its value.
        """
        model = self._fitted()
        if model._names.one_dimensional:
            return super().score(X, y, sample_weight)
        known = encode_truth(model.target_, model._names, y)
        return method_of(model.target_, "utility")(self.predict(X), known, sample_weight)

    def for_target(self, target, decoder=None) -> SetClassifier:
        """The same fit, decoded for another target; nothing is trained again.

        A likelihood and binary relevance are trained without a look at the target, so this is equal
        to a fit for that target. Other surrogates are losses of their target, and are refused.

        A measure of all rows together, such as "macro_f1", is decided for by thresholds that are
        fitted to the marginals of rows held out, where the fit had some (`SetClassifierCV`, or a
        fit for another such measure); else by the marginals of the rows to be predicted, so that
        predictions depend on the batch.

        Parameters
        ----------
        target : str or Target
        decoder : str, optional
            Another decoder too.

        Returns
        -------
        SetClassifier
            A fitted one; this one stays as it is. (Of `SetClassifierCV`, the one it chose.)
        """
        model = self._fitted()
        trained = model._trained
        metro = isinstance(model._risk, AtCosts)
        if metro or not (trained.is_likelihood or trained.is_by_label):
            raise ValueError(
                f"a classifier trained on the loss {trained} of {model.target_} is not one "
                f"for {target}: fit it again; only 'likelihood' and 'binary_relevance' serve all"
            )
        other: Any = copy(model)
        other.set_params(target=target, decoder=model.decoder if decoder is None else decoder)
        judge = get_target(target)
        refuse_other_labels(judge, model._names)
        risk = decoder_of(judge, other.decoder).fitted(lambda: model._out_of_fold)
        other._decode_by(risk, replace(trained, target=judge), model.space_)
        return other

    def save(self, path) -> None:
        """Write the classifier to a file that holds data only; `setwise.load` reads it."""
        save(self, path)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags


@dataclass(eq=False, repr=False)
class SetClassifier(LinearClassifier):
    """A linear classifier trained and decoded for the target it is judged by.

    Scores are X W + b. By default the joint likelihood of the label sets is trained, on the list
    of sets seen or, where most sets are new, on sets weighted by their size; predicted is the label
    set with the least expected loss of the target. The objective is

        mean loss + alpha / 2 ||W||²,

    with intercepts and the parameters of the space free, but for the bonuses of "backoff": these
    are not negative, and 0.05 bonus² / n is added for each.

    Parameters
    ----------
    target : str or Target, default "f1"
        What a prediction is judged by. With `TreeDistance` label sets must be closed, a label
        beside all above it, and so are all predictions.
    surrogate : str or Surrogate, default "auto"
        What is trained on: "likelihood" (the choice of "auto", unless its cost, estimated before
        any work, is beyond a quarter of the memory there is or 1e11 operations a pass over the
        data), "binary_relevance" (then), or one of the target's own losses: "logistic",
        "sum_exponential", "generalized_cross_entropy" (with `q`), "mean_absolute_error",
        "constrained_exponential", "constrained_squared_hinge", "constrained_hinge",
        "constrained_rho"; for a measure of all rows together, such as "macro_f1", "metro": binary
        relevance with costs of misses and false alarms that stand for the measure, found in rounds
        on three folds, and decided by the sign of the scores (a model that cannot hold the truth
        may gain by that; one that can does not); or a surrogate object, whose target, space (unless
        one is given) and settings are kept. One that is not convex begins at the solution of a
        convex one and ends no higher.
    space : str or Space, default "auto"
        The label sets: "catalog" (those seen, a bias each), "joint" (those seen, a score each),
        "sized" (all of the sizes seen, a bias for each size), "backoff" (the same, with a bonus for
        each set seen at least twice and in one of 4,000 rows), "forest" (all, with potentials on
        the edges of the Chow-Liu tree of the training labels), "cube" (all); of the taxonomy of
        tree distance "paths" (a label and all above it) or "closed" (a child brings its parent).
        What the space has of biases and potentials is learnt with the weights. "auto": for tree
        distance "paths" where every set of y is one, else "closed"; for a likelihood the catalog,
        unless more than nine in ten rows have a label set that occurs once, then "sized"; for
        other losses the sets of k labels (precision@k, recall@k), those of a table, else the cube.
    decoder : {"auto", "minimum_risk", "most_likely", "marginals"}, default "auto"
        The set of least expected loss where the scores are a likelihood, else the most likely set.
        "marginals": least expected loss as though the labels were independent with their
        marginals; an approximation, which "auto" takes where there is no exact way. For a measure
        of all rows together one of the rules of `PopulationRule`, or such an object: by "auto"
        thresholds on the marginals are fitted to what models trained on four of five folds say of
        the fifth.
    alpha : float, default 1e-3
        Penalty of the weights.
    q : float, default 0.7
        Member of the generalized cross-entropy, between 0 and 1.
    scaling : {None, "standard", "rows"}, default None
        In which units features are penalised: as they are; "standard", as if each were divided by
        its standard deviation (of ``coef_`` they are the plain ones again); "rows", with every row
        of X divided by its Euclidean length, in training and in prediction.
    fit_intercept : bool, default True
    tol : float, default 1e-4
        Training ends where no entry of the gradient is larger. A row of weight 3 and a row that is
        there three times lead the solver along the same path but for rounding; where it multiplies
        rounding, as it does on few rows of many features, they end as near as tol brings them, as
        do the same rows in another order.
    max_iter : int, default 1000
        Steps of the solver, for each loss on the way to one that is not convex.
    sparse_output : bool, default False
        Whether `predict` returns a CSR array.
    warm_start : bool, default False
        Whether `fit` begins from the last solution, if its shapes are the same.
    label_features : array of shape (n_labels, m), optional
        Features V of the labels: scores are (X W + b) V^T, with W of shape (n_features, m), so that
        labels not seen in training can be scored by `score_labels`. The paper's feature map of an
        input and a label.
    n_jobs : int, optional
        Threads that `fit` may use; None and -1: as many as there are processors for this process,
        or OMP_NUM_THREADS. What comes out depends on it only by rounding.
    verbose : bool, default False
        Whether to show progress on the error stream; where that is no terminal, now and then.
    random_state : int, RandomState or None, default None
        Seed of the label sets drawn for margins other than the exponential on spaces of more than
        2^16 sets; None is 0. Nothing else is random.

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
        Names of the labels, or the classes of a one-dimensional y.
    coef_ : array of shape (n_scores, n_features); intercept_ : array of shape (n_scores,)
        With label_features (m, n_features) and (m,).
    space_ : Space
        With the parameters learnt.
    target_ : Target
    decoder_ : str
        The decoder in use.
    surrogate_ : str
        What was trained on.
    choice_ : str or None
        Why "auto" did not choose as usual, if it did not; a warning says so too.
    objective_ : float
        The objective reached.
    guarantee_ : str
        What is proved of the predictions; put into words when it is asked for. The bound of a
        likelihood needs the log-loss on rows not trained on: `guarantee_on` takes such rows.
    n_iter_ : int

    Examples
    --------
    >>> X = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.9], [0.9, 0.1]]
    >>> Y = [[0, 1], [1, 0], [1, 1], [0, 1], [1, 0]]
    >>> SetClassifier("f1").fit(X, Y).predict([[0.1, 0.8], [0.8, 0.0]])
    array([[0, 1],
           [1, 0]])
    """

    target: Any = "f1"
    surrogate: Any = "auto"
    space: Any = "auto"
    decoder: str = "auto"
    _: KW_ONLY
    alpha: float = 1e-3
    q: float = DEFAULT_Q
    scaling: str | None = None
    fit_intercept: bool = True
    tol: float = 1e-4
    max_iter: int = 1000
    sparse_output: bool = False
    warm_start: bool = False
    label_features: Any = None
    n_jobs: int | None = None
    verbose: bool = False
    random_state: Any = None

    def fit(self, X, y, sample_weight=None):
        """Learn weights and the parameters of the space.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
        y : label sets in any form of `setwise.labels.read_labels`, or one class a row
        sample_weight : array of shape (n,), optional
        """
        with run(self):
            rows, names = read_training(self, X, y, sample_weight)
            rows = rows.taken()
            with small_products(rows.multiplications):
                design = Design.of(rows, self.scaling, self.fit_intercept)
                risk, surrogate = decoder_of(self.target, self.decoder), self.surrogate
                if isinstance(surrogate, str) and surrogate == METRO:
                    settings = self.alpha, self.tol, self.max_iter
                    metro = Metro(risk.target, design, rows.sets, *settings)
                    surrogate = metro.surrogate(names, self.decoder)
                    risk = AtCosts(risk.target, surrogate.costs)
                self._fit(design, rows, names, risk, surrogate=surrogate)
                return self._settle(risk, lambda: held_out_rows(self, design, rows))

    def _fit(
        self, design: Design, rows: Rows, names: LabelNames, risk: Decoder,
        progress: Progress | None = None, surrogate: Any = None,
    ):  # fmt: skip
        """Learn from what has been read and checked, to be decoded by ``risk``.

        ``progress`` hears of each step of the solver, and may raise to end it. ``surrogate`` is
        what to train where that is not simply what was asked for.
        """
        surrogate = self.surrogate if surrogate is None else surrogate
        positive_number(self.alpha, "alpha")
        positive_number(self.tol, "tol")
        whole_number(self.max_iter, "max_iter", 1)
        sets, is_class = rows.sets, names.one_dimensional
        is_free = is_auto(self.space) and not is_class and self.label_features is None
        plan = planned(self, surrogate, self.space, is_free, rows, risk.target)
        training = self._training(plan.surrogate, risk.target)
        space = space_for(plan.space, training, is_class, sets, rows.weights)
        self._names, self.classes_ = names, names.names
        last = self._last(design)
        self._decode_by(risk, training, space)
        fitting = Fitting(
            training, space, design, sets, rows.weights, float(self.alpha), float(self.tol),
            self.max_iter, self.label_features,
        )  # fmt: skip
        with progress_shown(self.verbose) as shown:
            solution = fitting.solve(last, progress or shown)
        dtype, intercept = design.inputs.dtype, solution.intercept
        self._scaling, self._features = self.scaling, fitting.features()
        self._has_intercept = design.fit_intercept
        self.space_ = fitting.learnt(solution)
        coef = (solution.weights / design.unit[:, None]).T
        self.coef_ = np.ascontiguousarray(coef).astype(dtype)
        if is_class and not training.is_by_label and self.label_features is None:
            # The scores of all classes may be raised together; these have the mean 0.
            intercept = intercept - intercept.mean()
        self.intercept_ = intercept.astype(dtype)
        self.objective_, self.n_iter_ = solution.value, solution.n_iter
        # What the guarantee tells of rows.
        self._unseen = unseen_mass(sets) if isinstance(self.space, str) else None
        self._held_out: dict[str, float] | None = None
        self._out_of_fold = None
        return self

    def _settle(self, risk: Decoder, held_out: Callable[[], HeldOut | None]) -> SetClassifier:
        """Fit the decoder, where it needs that, to rows held out; they are kept for other targets.

        Of exclusive classes the most likely one is predicted.
        """

        def kept() -> HeldOut | None:
            self._out_of_fold = held_out()
            return self._out_of_fold

        if not self._names.one_dimensional:
            self._risk = risk.fitted(kept)
        return self

    def score_labels(self, X, label_features):
        """The scores of labels given by their features, seen in training or not, (n, rows of V)."""
        inputs = self._fitted()._checked(X)
        if self._features is None:
            raise ValueError(
                "labels can be scored by their features only if fit had label_features"
            )
        features = score_matrix(label_features, len(self.intercept_), "label_features")
        return self._projections(inputs) @ features.T.astype(self.coef_.dtype)

    @property
    def surrogate_(self) -> str:
        """What was trained on."""
        return str(self._fitted()._trained.surrogate)

    # ------------------------------------------------------------------ what training begins with

    def _training(self, surrogate: Any, target: Any) -> Training:
        seed = 0 if self.random_state is None else self.random_state
        if not isinstance(seed, int | np.integer):
            seed = check_random_state(seed).randint(2**31 - 1)
        return Training(surrogate, target, self.q, int(seed))

    def _last(self, design: Design) -> Solution | None:
        """The last solution if a fit is to begin there, else None."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        if self.coef_.shape[1] != len(design.unit):
            return None
        weights = self.coef_.T.astype(np.float64) * design.unit[:, None]
        intercept = self.intercept_.astype(np.float64)
        finite = np.isfinite(weights).all() and np.isfinite(intercept).all()
        return Solution(weights, intercept, self.space_.parameters) if finite else None

    def _decode_by(self, risk: Decoder, training: Training, space: Any) -> None:
        """Settle what predictions are decoded for, and how; refuses what cannot be."""
        is_class = self._names.one_dimensional
        self.decoder_ = decoder_for(self.decoder, training, risk, space, is_class)
        self.target_, self._trained, self._risk = risk.target, training, risk

    # ------------------------------------------------------------------- answers to checked inputs

    def _fitted(self) -> SetClassifier:
        if "coef_" not in vars(self):
            check_is_fitted(self, "coef_")
        return self

    def _claim(self) -> Claim:
        trained, space = self._trained, self.space_
        scores = self._features, self._has_intercept
        if self._names.one_dimensional:
            return claim_of_classes(trained, space, len(self.classes_), *scores)
        if self._risk.is_of_whole:
            rows = None if self.depends_on_batch_ else self._out_of_fold
            n_rows = None if rows is None else len(rows.sets)
            return claim_of_population(self._risk.rule, self.target_, n_rows)  # type: ignore
        if isinstance(self._risk, AtCosts):
            return claim_of_costs(self.target_)
        judged = self.target_, space, self.decoder_
        return claim_of_sets(trained, *judged, *scores, self._unseen)

    def _checked(self, X):
        return checked_inputs(self, X, reset=False)

    def _projections(self, X):
        return np.asarray(scaled_rows(X, self._scaling) @ self.coef_.T + self.intercept_)

    def _scores(self, X):
        projections = self._projections(X)
        if self._features is None:
            return projections
        return projections @ self._features.T.astype(projections.dtype)

    def _distribution(self, X) -> Any:
        scores = self._scores(X)
        if self._trained.is_by_label:
            return Independent(self._trained.loss(self.space_).probability(scores))
        return OfSpace(self.space_, scores)

    def _log_probability(self, rows: Rows):
        """log P of the label set of each row, -inf where it is impossible, (n,)."""

        def of_part(inputs, sets):
            if not self._trained.is_separate or self._trained.costs is not None:
                return self._distribution(inputs).log_probability(sets)
            # From the scores: a probability rounds to 1.
            scores = self._scores(inputs).astype(np.float64)
            return -self._trained.loss(self.space_).value_and_gradient(scores, sets)[0]

        return self._by_ranges(of_part, rows.inputs, rows.sets)

    def _probability(self, X):
        probability = self._marginals(X).astype(self.coef_.dtype)
        if self._names.one_dimensional and self._trained.is_by_label:
            probability = probability / probability.sum(axis=1, keepdims=True)
        return probability

    def _predict(self, X):
        if self._names.one_dimensional:
            return self.classes_[np.argmax(self._scores(X), axis=1)]
        sets = self._decided(X)
        return csr_array(sets).astype(np.int64) if self.sparse_output else sets.astype(np.int64)

    def _decided(self, X):
        if self._risk.is_of_whole:
            return self._risk.decode(self._marginals_of(X))
        return self._by_ranges(self._decoded, X)

    def _marginals(self, X):
        return self._distribution(X).marginals()

    def _marginals_of(self, X):
        """The marginals of checked rows, some rows at a time, (n, l)."""
        return self._by_ranges(self._marginals, X)

    def _decoded(self, X):
        if self.decoder_ == "most_likely":
            return self.space_.most_likely(self._scores(X))
        distribution = self._distribution(X)
        if self.decoder_ == "marginals":
            distribution = Independent(distribution.marginals())
        return self._risk.decode(distribution)

    def _by_ranges(self, function, *arrays):
        ranges = ranges_for(self.space_, arrays[0].shape[0])
        parts = [function(*(array[rows] for array in arrays)) for rows in ranges]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

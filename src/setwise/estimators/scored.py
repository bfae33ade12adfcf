"""Classifiers whose predictions follow from scores: what they are asked, and how they answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array, vstack
from scipy.special import logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state

from setwise.decoders.for_target import AtCosts, Decoder, HeldOut, decoder_of, with_target
from setwise.distributions import Distribution, Independent, OfSpace
from setwise.estimators.choice import decoder_for
from setwise.estimators.claim import Claim, log_loss_of
from setwise.estimators.design import Rows, rows_of
from setwise.estimators.guarantee import (
    claim_of_classes,
    claim_of_costs,
    claim_of_population,
    claim_of_sets,
)
from setwise.estimators.named_sets import NamedSets
from setwise.estimators.training import Training, ranges_for
from setwise.labels import LabelNames
from setwise.sparse import dense_rows
from setwise.targets.registry import get_target
from setwise.targets.target import Target
from setwise.targets.truth import encode_truth, refuse_other_labels

# Probabilities are kept this far from 0 and 1 where their log-odds are asked for.
LEAST = 1e-7


class ScoredClassifier(NamedSets, ClassifierMixin, BaseEstimator, ABC):
    """What a classifier with scores is asked once it is fitted, whoever chose its settings."""

    # What was said of rows held out, where something was.
    _out_of_fold: HeldOut | None = None

    @abstractmethod
    def _fitted(self) -> ScoredModel:
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

    def _judged(self) -> tuple[LabelNames, Target]:
        model = self._fitted()
        return model._names, model.target_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags


class ScoredModel(ScoredClassifier):
    """A fitted classifier that answers by itself, from the scores of checked inputs."""

    target: Any
    decoder: Any
    q: float
    sparse_output: bool
    random_state: Any
    space_: Any
    target_: Target
    decoder_: str
    _names: LabelNames
    _trained: Training
    _risk: Decoder
    _unseen: float | None
    _held_out: dict[str, float] | None
    # What confines linear scores; others are free.
    _features: Any = None
    _has_intercept: bool = True

    @property
    def _dtype(self) -> Any:
        """That of probabilities."""
        return np.float64

    @abstractmethod
    def _checked(self, X) -> Any:
        """Inputs as they are scored."""

    @abstractmethod
    def _scores(self, X) -> Any:
        """The scores of checked inputs, (n, n_scores)."""

    @abstractmethod
    def _score_parts(self, X, background) -> tuple[Any, Any]:
        """What features add to the scores of one checked row, over those of a base.

        Feature j adds ``weights[:, j] * deltas[j]``, with weights (n_scores, d) and deltas (d,).
        The base is the mean of the background, or a row of zeros; or one of the model's own.
        """

    def _settle(self, risk: Decoder, held_out: Callable[[], HeldOut | None]) -> Self:
        """Fit the decoder, where it needs that, to rows held out; they are kept for other targets.

        Of exclusive classes the most likely one is predicted.
        """

        def kept() -> HeldOut | None:
            self._out_of_fold = held_out()
            return self._out_of_fold

        if not self._names.one_dimensional:
            self._risk = risk.fitted(kept)
        return self

    def for_target(self, target, decoder=None):
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
        classifier
            A fitted one; this one stays as it is.
        """
        trained, metro = self._fitted()._trained, isinstance(self._risk, AtCosts)
        if metro or not (trained.is_likelihood or trained.is_by_label):
            raise ValueError(
                f"a classifier trained on the loss {trained} of {self.target_} is not one "
                f"for {target}: fit it again; only 'likelihood' and 'binary_relevance' serve all"
            )
        other: Any = copy(self)
        decoder = with_target(self.decoder, target) if decoder is None else decoder
        other.set_params(target=target, decoder=decoder)
        judge = get_target(target)
        refuse_other_labels(judge, self._names)
        risk = decoder_of(judge, other.decoder).fitted(lambda: self._out_of_fold)
        other._decode_by(risk, replace(trained, target=judge), self.space_)
        return other

    @property
    def surrogate_(self) -> str:
        """What was trained on."""
        return str(self._fitted()._trained.surrogate)

    @property
    def _seed(self) -> int:
        seed = 0 if self.random_state is None else self.random_state
        if not isinstance(seed, int | np.integer):
            seed = check_random_state(seed).randint(2**31 - 1)
        return int(seed)

    def _training(self, surrogate: Any, target: Any) -> Training:
        return Training(surrogate, target, self.q, self._seed)

    def _decode_by(self, risk: Decoder, training: Training, space: Any) -> None:
        """Settle what predictions are decoded for, and how; refuses what cannot be."""
        is_class = self._names.one_dimensional
        self.decoder_ = decoder_for(self.decoder, training, risk, space, is_class)
        self.target_, self._trained, self._risk = risk.target, training, risk

    def _claim(self) -> Claim:
        trained, space = self._trained, self.space_
        scores = self._features, self._has_intercept
        if self._names.one_dimensional:
            return claim_of_classes(trained, space, len(self.classes_), *scores)
        if self._risk.is_of_whole:
            return claim_of_population(self._risk, self._out_of_fold)  # type: ignore
        if isinstance(self._risk, AtCosts):
            return claim_of_costs(self.target_)
        judged = self.target_, space, self.decoder_
        return claim_of_sets(trained, *judged, *scores, self._unseen)

    def _distribution(self, X) -> Any:
        scores = self._scores(X)
        if self._trained.is_by_label:
            return Independent(self._trained.loss(self.space_).probability(scores))
        return OfSpace(self.space_, scores)

    def _log_probability(self, rows: Rows):
        """log P of the label set of each row, -inf where it is impossible, (n,)."""

        def of_part(inputs, sets):
            sets = dense_rows(sets)
            if not self._trained.is_separate or self._trained.costs is not None:
                return self._distribution(inputs).log_probability(sets)
            # From the scores: a probability rounds to 1.
            scores = self._scores(inputs).astype(np.float64)
            return -self._trained.loss(self.space_).value_and_gradient(scores, sets)[0]

        return self._by_ranges(of_part, rows.inputs, rows.sets)

    def _probability(self, X):
        probability = self._marginals(X).astype(self._dtype)
        if self._names.one_dimensional and self._trained.is_by_label:
            probability = probability / probability.sum(axis=1, keepdims=True)
        return probability

    def _predict(self, X):
        if self._names.one_dimensional:
            return self.classes_[np.argmax(self._scores(X), axis=1)]
        return self._decided(X).astype(np.int64)

    def _decided(self, X):
        if self._risk.is_of_whole:
            sets = self._risk.decode(self._marginals_of(X))
            return csr_array(sets) if self.sparse_output else sets
        if not self.sparse_output:
            return self._by_ranges(self._decoded, X)
        ranges = ranges_for(self.space_, X.shape[0])
        return csr_array(vstack([csr_array(self._decoded(X[rows])) for rows in ranges]))

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
        n_rows = arrays[0].shape[0]
        found: Any = None
        for rows in ranges_for(self.space_, n_rows):
            part = function(*(array[rows] for array in arrays))
            if len(part) == n_rows:
                return part
            if found is None:
                found = np.empty((n_rows, *part.shape[1:]), part.dtype)
            found[rows] = part
        return found

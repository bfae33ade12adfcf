"""Classifiers that learn on a Dask cluster, and predict lazily."""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from setwise import estimators as local
from setwise.dask.blocks import blocks_given, is_collection, parts_of
from setwise.decoders.for_target import decoder_of
from setwise.spelling import some
from setwise.targets.registry import get_target


class Distributed:
    """A classifier of `setwise.estimators` whose rows are on a Dask cluster.

    It has the settings and, once fitted, the attributes of that classifier; `to_local` gives it as
    it is, to be saved or used without Dask.

    Parameters
    ----------
    *settings, **named
        Those of the classifier.
    client : distributed.Client, optional
        By default the one there is.
    """

    kind: ClassVar[Any]

    def __init__(self, *settings: Any, client: Any = None, **named: Any):
        self.local, self.client = self.kind(*settings, **named), client

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> Any:
        """Learn, by sums over blocks of rows that the workers hold.

        Parameters
        ----------
        X : Dask array or data frame, list of delayed (X, Y) or (X, Y, weights) blocks, or Blocks
        y : Dask array or data frame of 0/1 columns, in the same chunks of rows
        sample_weight : Dask array of shape (n,), optional
        **options
            Those of the classifier's own `fit`, such as ``checkpoint``.
        """
        self.local.fit(blocks_given(self.client, X, y, sample_weight), **options)
        return self

    def predict(self, X: Any) -> Any:
        """The label sets, lazily: of a Dask array or frame an array, of a list of delayed X one."""
        if getattr(self.local, "depends_on_batch_", False):
            raise ValueError(
                "what this model predicts for a row depends on the rows that come with it, and so "
                "on the chunks; use to_local().predict on all rows"
            )
        return self._asked(X, "predict", np.int64)

    def predict_proba(self, X: Any) -> Any:
        """The probability of each label, lazily."""
        return self._asked(X, "predict_proba", np.float64)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The utility of the target; what is predicted and the truth come to the client."""
        found = map(_computed, (self.predict(X), y, sample_weight))
        return self.local._score_of(*found)

    def for_target(self, target: Any, decoder: Any = None) -> Any:
        """The same fit, decoded for another target; see `SetClassifier.for_target`."""
        other = copy(self)
        other.local = self.local.for_target(target, decoder)
        return other

    def _asked(self, X: Any, method: str, dtype: Any) -> Any:
        check_is_fitted(self.local)
        own, known = getattr(X, "columns", None), getattr(self.local, "feature_names_in_", None)
        if own is not None and known is not None and list(map(str, own)) != list(known):
            raise ValueError(
                f"X must have the columns {some(list(known))}, in this order, as in fit, but it "
                f"has {some(list(map(str, own)))}"
            )
        return lazily(X, partial(_predicted, method=method), self.local, dtype)

    def to_local(self) -> Any:
        """The classifier itself, without Dask."""
        return copy(self.local)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings, and the client."""
        return {**self.local.get_params(deep), "client": self.client}

    def set_params(self, **named: Any) -> Any:
        """Change settings."""
        if "client" in named:
            self.client = named.pop("client")
        self.local.set_params(**named)
        return self

    def __sklearn_clone__(self) -> Any:
        copied: Any = clone(self.local)
        return type(self)(client=self.client, **copied.get_params(deep=False))

    def __getattr__(self, name: str) -> Any:
        if name == "local":
            raise AttributeError(name)
        return getattr(self.local, name)

    def __repr__(self) -> str:
        return f"dask.{self.local!r}"


class SetClassifier(Distributed):
    """`setwise.SetClassifier` on a Dask cluster: see `Distributed`."""

    kind = local.SetClassifier


class SetClassifierCV(Distributed):
    """`setwise.SetClassifierCV` on a Dask cluster: see `Distributed`.

    Models learn from the blocks of the workers; a sample of the rows held out, in the memory of the
    client, judges them.
    """

    kind = local.SetClassifierCV


class TargetDecoder(BaseEstimator):
    """Any classifier that learns from Dask's collections, decoded for the target, lazily.

    The estimator's `fit` takes X and y as they are, and its `predict_proba` gives probabilities
    (n, l), lazily: those of `setwise.dask`, dask-ml or XGBoost's Dask interface. Without `fit` the
    estimator is one that was fitted in memory, and is asked chunk by chunk.

    Parameters
    ----------
    estimator : classifier
    target : Target or str, default "f1"
        What a prediction is judged by, row by row.
    client : distributed.Client, optional
        Not needed: the estimator has its own.
    """

    def __init__(self, estimator: Any, target: Any = "f1", client: Any = None):
        self.estimator, self.target, self.client = estimator, target, client
        if get_target(target).form == "population":
            raise ValueError(
                f"{target} is a measure of all rows together, which lazy predictions do not see; "
                f"use SetClassifier or SetClassifierCV of setwise.dask"
            )

    def fit(self, X: Any, y: Any, **options: Any) -> Any:
        """Fit a clone of the estimator to the collections."""
        copied: Any = clone(self.estimator)
        self.estimator_ = copied.fit(X, y, **options)
        return self

    def predict_proba(self, X: Any) -> Any:
        """The probability of each label, lazily."""
        if hasattr(self, "estimator_"):
            return self.estimator_.predict_proba(X)
        return lazily(X, partial(_predicted, method="predict_proba"), self.estimator, np.float64)

    def predict(self, X: Any) -> Any:
        """The label sets of least expected loss, lazily."""
        decoder = decoder_of(self.target)
        return lazily(self.predict_proba(X), _decoded, decoder, np.int64)

    def to_local(self) -> Any:
        """The decoder of this target, for probabilities in memory."""
        return decoder_of(self.target)


# ----------------------------------------------------------------------------------- chunk by chunk


def lazily(X: Any, function: Any, model: Any, dtype: Any) -> Any:
    """A function of a model and the rows of a chunk, for each chunk, when it is computed."""
    from dask.delayed import delayed

    call: Any = delayed(function, pure=False)
    shared: Any = delayed(model, pure=False)
    if isinstance(X, list | tuple):
        return [call(shared, part) for part in X]
    if not is_collection(X):
        return function(model, X)
    import dask.array as array

    parts = parts_of(X, "X")
    rows = X.chunks[0] if hasattr(X, "chunks") else [np.nan] * len(parts)
    n_labels = len(model.classes_) if hasattr(model, "classes_") else X.shape[1]
    chunks = [
        array.from_delayed(call(shared, part), (n, n_labels), dtype=dtype)
        for n, part in zip(rows, parts, strict=True)
    ]
    return array.concatenate(chunks, axis=0, allow_unknown_chunksizes=True)


def _predicted(model: Any, X: Any, method: str) -> Any:
    """What a model says of the rows of a chunk."""
    return getattr(model, method)(X.to_numpy() if hasattr(X, "to_numpy") else X)


def _computed(given: Any) -> Any:
    """A collection, or the parts of a list of delayed ones together, in memory; others as is."""
    from dask.base import compute

    if isinstance(given, list | tuple):
        return np.concatenate(compute(*given))
    return given.compute() if is_collection(given) else given


def _decoded(decoder: Any, probability: Any) -> Any:
    return np.asarray(decoder.decode(probability), np.int64)

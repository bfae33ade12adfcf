"""An estimator of one class a row, and the probability of each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier

from setwise.estimators.probability import in_unit_interval
from setwise.targets.measure import Array


@dataclass(frozen=True, eq=False)
class ClassModel:
    """An estimator fitted to classes, one a row; ``classes`` in increasing order."""

    estimator: Any
    classes: Array

    @classmethod
    def fit(cls, estimator: Any, X: Any, y: Array, classes: Array, params: dict) -> ClassModel:
        """Fit a clone; a single class, which many refuse, takes a DummyClassifier."""
        if (y == y[0]).all():
            return cls(DummyClassifier().fit(X, y), classes)
        copy: Any = clone(estimator)
        return cls(copy.fit(X, y, **params), classes)

    def probability(self, X: Any) -> Array:
        """The probability of each class, (n, K); of one the estimator never saw, 0."""
        output = np.asarray(self.estimator.predict_proba(X))
        own = np.asarray(getattr(self.estimator, "classes_", self.classes))
        if output.ndim != 2 or own.ndim != 1 or output.shape[1] != len(own):
            raise ValueError(
                f"{type(self.estimator).__name__}.predict_proba gave an array of shape "
                f"{output.shape}; expected is (n, {len(own)}), a column for each class"
            )
        output = in_unit_interval(output, self.estimator)
        if np.array_equal(own, self.classes):
            return output
        column = {name: place for place, name in enumerate(self.classes.tolist())}
        unknown = [name for name in own.tolist() if name not in column]
        if unknown:
            raise ValueError(
                f"the classes_ of {type(self.estimator).__name__} must be among the classes it was "
                f"fitted to, but {unknown[0]!r} is not"
            )
        probability = np.zeros((len(output), len(self.classes)), output.dtype)
        probability[:, [column[name] for name in own.tolist()]] = output
        return probability

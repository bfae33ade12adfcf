"""What a feature is worth to the target: how much is lost when its values are shuffled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, issparse
from sklearn.utils import check_random_state

from setwise.estimators.explanation import feature_names_of
from setwise.estimators.wrapped import last_estimator
from setwise.targets.population import Macro, population_measure
from setwise.targets.registry import get_target
from setwise.targets.target import Target, method_of
from setwise.targets.truth import encode_truth
from setwise.validation import places_of, whole_number

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Importance:
    """What features are worth to a target, and to the decisions on each label.

    Attributes
    ----------
    target, of_label : str
        What was measured over all rows; and of each label, over the rows.
    utility : float
        Of the predictions for the rows as they are.
    feature_names : array of shape (m,); labels : array of shape (l,)
    mean, deviation : array of shape (m,)
        How much utility is lost when the feature is shuffled: the mean over the repeats, and the
        standard deviation.
    by_label : array of shape (m, l)
        The mean of what is lost of the measure of each label.
    """

    target: str
    of_label: str
    utility: float
    feature_names: Array
    labels: Array
    mean: Array
    deviation: Array
    by_label: Array

    def order(self) -> Array:
        """The features, those that are worth most first."""
        return np.argsort(-self.mean, kind="stable")

    def __str__(self) -> str:
        lines = [f"{self.target} {self.utility:.4f}; lost when a feature is shuffled:"]
        for place in self.order():
            spread = f"± {self.deviation[place]:.4f}"
            lines.append(f"  {self.mean[place]:+.4f} {spread}  {self.feature_names[place]}")
        return "\n".join(lines)


def feature_importance(
    model: Any,
    X: Any,
    y: Any,
    *,
    features: Sequence[int] | None = None,
    n_repeats: int = 5,
    sample_weight: Any = None,
    feature_names: Sequence[str] | None = None,
    random_state: Any = 0,
) -> Importance:
    """How much of the target is lost when the values of a feature are shuffled among the rows.

    As scikit-learn's `permutation_importance` with the utility of the target as the score; X may be
    sparse, and what is lost is told for each label too. On rows that were not trained on it is what
    a feature is worth on new rows. Features that say the same stand in for each other: each is
    worth little then.

    Of each label the measure is the target's, over the decisions on that label in all rows: its F1
    for "f1", its share of right decisions for "hamming"; F1 for targets that have no such measure.

    Parameters
    ----------
    model : fitted classifier of setwise, or a pipeline that ends in one
    X, y, sample_weight : as in `score`
    features : sequence of int, optional
        Columns to shuffle; by default all.
    n_repeats : int, default 5
        Times that a feature is shuffled.
    feature_names : sequence of str, optional
        Of all columns; by default those of a data frame, else numbers.
    random_state : int, RandomState or None, default 0

    Examples
    --------
    >>> from setwise import SetClassifier
    >>> X, Y = [[0.0, 5], [1, 3], [0, 4], [1, 6]] * 5, [[1, 0], [0, 1], [1, 0], [0, 1]] * 5
    >>> worth = feature_importance(SetClassifier(alpha=0.01).fit(X, Y), X, Y)
    >>> worth.order()[0], bool(worth.mean[0] > 0.2)
    (np.int64(0), True)
    """
    whole_number(n_repeats, "n_repeats", 1)
    X = np.asarray(X) if isinstance(X, list | tuple) else X
    last = last_estimator(model)
    last = getattr(last, "best_estimator_", last)
    if not hasattr(last, "_names"):
        raise ValueError(
            f"the model must be a fitted classifier of setwise, which knows its target, but it is "
            f"{type(last).__name__}; TargetDecoder makes one of any classifier with probabilities"
        )
    target = get_target(getattr(last, "target_", last.target))
    of_label = label_measure(target)
    known = encode_truth(target, last._names, y)
    n_features = X.shape[1]
    columns = places_of(range(n_features) if features is None else features, "features", n_features)
    told = feature_names_of(X, "columns", feature_names, n_features)

    def judged(inputs: Any) -> tuple[float, Array]:
        """The utility of what is predicted for inputs, and the measure of each label."""
        sets = model.predict(inputs)
        sets = last._names.encode(sets) if np.ndim(sets) == 1 else sets
        value = method_of(target, "utility")(sets, known, sample_weight)
        tallies = of_label.tallies(*(csr_array(part) for part in (sets, known)))
        mass = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight, float)
        sums = of_label.counts_of(mass.sum(), *(mass @ part for part in tallies))
        return value, of_label.by_label(sums)

    generator, whole = check_random_state(random_state), judged(X)
    inputs: Any = csc_array(X) if issparse(X) else X
    lost = np.empty((len(columns), n_repeats))
    by_label = np.empty((len(columns), len(whole[1])))
    for place, column in enumerate(columns):
        found = [judged(shuffled(inputs, int(column), generator)) for _ in range(n_repeats)]
        lost[place] = [whole[0] - value for value, _ in found]
        by_label[place] = whole[1] - np.mean([labels for _, labels in found], axis=0)
    return Importance(
        str(target), str(of_label.of), float(whole[0]), told[columns], np.asarray(last.classes_),
        lost.mean(axis=1), lost.std(axis=1), by_label,
    )  # fmt: skip


def label_measure(target: Target) -> Any:
    """The measure of each label's decisions in all rows that goes with a target; else F1."""
    if target.form == "population":
        return target
    return Macro(target if population_measure(target, 0.0) is not None else "f1")


def shuffled(X: Any, column: int, generator: Any) -> Any:
    """A copy of a dense array, CSC array or data frame, with one column shuffled among the rows."""
    order = generator.permutation(X.shape[0])
    if issparse(X):
        own, indices = slice(X.indptr[column], X.indptr[column + 1]), X.indices.copy()
        indices[own] = order[indices[own]]
        return csr_array(csc_array((X.data, indices, X.indptr), shape=X.shape))
    if hasattr(X, "iloc"):
        changed = X.copy()
        changed[X.columns[column]] = X.iloc[order, column].set_axis(X.index)
        return changed
    changed = np.array(X)
    changed[:, column] = changed[order, column]
    return changed

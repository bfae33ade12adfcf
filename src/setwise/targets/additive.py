"""Sums over labels: Hamming loss, and precision and recall of a prediction of exactly k labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from setwise.sparse import tidy_sets
from setwise.spelling import brief
from setwise.targets.measure import Additive, Array, Form, Fraction, Of
from setwise.targets.target import Target, require_labels
from setwise.validation import label_matrix, real_number, real_vector, whole_number

# What every label contributes, [true, predicted, 0].
DIFFER = np.array([[0.0, 1.0], [1.0, 0.0]])[..., None]
AGREE = 1.0 - DIFFER
_HIT, _WRONG, _MISSED = np.array([[[0.0, 0], [0, 1]], [[0, 1], [0, 0]], [[0, 0], [1, 0]]])[
    ..., None
]


@dataclass(frozen=True, eq=False)
class Hamming(Target):
    """Weighted share of labels on which the predicted and the true set differ.

    L(y', y) = sum_i w_i 1[y'_i != y_i] / sum_i w_i. The paper counts labels; the share keeps the
    loss in [0, 1].

    Parameters
    ----------
    weights : array of shape (n_labels,), optional
        Nonnegative weight of each label, not all zero; equal weights by default.

    Examples
    --------
    >>> Hamming().loss([[1, 0, 0, 1]], [[1, 1, 0, 1]])
    array([0.25])
    """

    weights: Any = None
    form: ClassVar[Form] = "additive"

    def __post_init__(self):
        if self.weights is not None:
            weights = real_vector(self.weights, None, "weights")
            if (weights < 0).any() or weights.sum() <= 0:
                raise ValueError(
                    f"weights must be nonnegative and not all zero, but they are {weights.tolist()}"
                )
            vars(self).update(weights=weights)

    def measure(self, n_labels: int, of: Of) -> Additive:
        """Sum over labels of the weight where the sets differ (loss) or agree (utility)."""
        weights = np.ones(n_labels) if self.weights is None else self.weights
        require_labels(self, len(weights), n_labels)
        return Additive((DIFFER if of == "loss" else AGREE) * (weights / weights.sum()))

    @property
    def is_hamming(self) -> bool:
        """Whether all labels weigh the same."""
        return self.weights is None

    @property
    def utility_quotient(self) -> Fraction | None:
        """The utility (tp + tn) / (tp + fp + fn + tn); None with weights."""
        if self.weights is not None:
            return None
        return Fraction(np.array([0.0, 1, 0, 0, 1]), np.array([0.0, 1, 1, 1, 1]), 1.0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hamming) and self._weighed == other._weighed

    def __hash__(self) -> int:
        return hash(("hamming", self._weighed))

    @property
    def _weighed(self) -> tuple[float, ...] | None:
        return None if self.weights is None else tuple(self.weights.tolist())

    __repr__ = brief

    def __str__(self) -> str:
        return "hamming" if self.weights is None else "weighted hamming"


@dataclass(frozen=True, eq=False)
class CostSensitive(Target):
    """What the missed labels and the false alarms cost, as a share of the most they could.

    L(y', y) = sum_i [miss_i y_i (1 - y'_i) + false_alarm_i (1 - y_i) y'_i] / sum_i max(miss_i,
    false_alarm_i). Hamming loss is the case of equal costs. A label is best predicted where its
    probability exceeds false_alarm / (miss + false_alarm): so a measure of a whole population such
    as macro-F1 is, at its optimal value, a matter of costs (`setwise.surrogates.metro`).

    Parameters
    ----------
    miss, false_alarm : float or array of shape (n_labels,)
        Nonnegative cost of not predicting a label that is true, and of predicting one that is not;
        one number for all labels, or one for each. They must not all be zero.

    Examples
    --------
    A miss costs five times as much as a false alarm:

    >>> CostSensitive(5.0, 1.0).loss([[1, 0, 0, 1]], [[1, 1, 0, 0]])
    array([0.3])
    """

    miss: Any
    false_alarm: Any
    form: ClassVar[Form] = "additive"

    def __post_init__(self):
        given = {"miss": self.miss, "false_alarm": self.false_alarm}
        vars(self).update({name: _costs(value, name) for name, value in given.items()})
        miss, false_alarm = self.miss, self.false_alarm
        several = [np.size(costs) for costs in (miss, false_alarm) if np.ndim(costs)]
        if len(set(several)) > 1:
            raise ValueError(
                f"miss and false_alarm must be of as many labels, but they are of {several[0]} and "
                f"{several[1]}"
            )
        if not np.any(miss) and not np.any(false_alarm):
            raise ValueError("miss and false_alarm must not all be 0")

    def costs(self, n_labels: int) -> tuple[Array, Array]:
        """Of a miss and of a false alarm, for each of so many labels, (l,)."""
        for costs in (self.miss, self.false_alarm):
            if np.ndim(costs):
                require_labels(self, len(costs), n_labels)
        return np.full(n_labels, self.miss), np.full(n_labels, self.false_alarm)

    def measure(self, n_labels: int, of: Of) -> Additive:
        """Sum over labels of the cost (loss), or of what is left of the most (utility)."""
        costs = np.stack(self.costs(n_labels)[::-1])
        most = costs.max(axis=0)
        lost = DIFFER * costs[:, None]
        return Additive((lost if of == "loss" else most - lost) / most.sum())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CostSensitive) and self._parts == other._parts

    def __hash__(self) -> int:
        return hash(("cost sensitive", self._parts))

    @property
    def _parts(self) -> tuple[Any, ...]:
        return (
            np.ndim(self.miss),
            *np.ravel(self.miss).tolist(),
            *np.ravel(self.false_alarm).tolist(),
        )

    __repr__ = brief

    def __str__(self) -> str:
        ends = [
            f"{one:g}" if np.ndim(one) == 0 else "by label" for one in (self.miss, self.false_alarm)
        ]
        return f"cost of a miss ({ends[0]}) and of a false alarm ({ends[1]})"


def _costs(given: Any, name: str) -> Any:
    """A number, or one for each label, not below 0."""
    if np.ndim(given) == 0:
        return real_number(given, name, 0.0, np.inf)
    costs = real_vector(given, None, name)
    if (costs < 0.0).any():
        label = int(np.argmax(costs < 0.0))
        raise ValueError(f"{name} must not be negative, but {name}[{label}] is {costs[label]:g}")
    return costs


class AtK(Target):
    """A target of predictions of exactly ``k`` labels, refused for others."""

    k: int
    form: ClassVar[Form] = "additive"

    @property
    def predicted_size(self) -> int:
        """k, the size of every prediction."""
        return self.k

    def loss(self, y_pred, y_true) -> Array:
        """The loss of each row, (n,), of predictions of k labels."""
        is_sparse = hasattr(y_pred, "tocsr")
        predicted = (
            tidy_sets(y_pred, "y_pred") if is_sparse else label_matrix(y_pred, None, "y_pred")
        )
        self.require_k(predicted.shape[1])
        sizes = np.asarray(predicted.sum(axis=1, dtype=np.int64)).ravel()
        wrong = np.flatnonzero(sizes != self.k)
        if len(wrong):
            raise ValueError(
                f"{self} judges predictions of exactly {self.k} labels, "
                f"but y_pred[{wrong[0]}] has {sizes[wrong[0]]}"
            )
        return super().loss(predicted, y_true)

    def on(self, space) -> Target:
        """The same on a space of sets of size k; refused elsewhere."""
        self.require_k(space.n_labels)
        if not np.array_equal(space.sizes, [self.k]):
            raise ValueError(
                f"{self} is defined on label sets of size {self.k} only, but {space} has sets of "
                f"other sizes; use Slice({space.n_labels}, {self.k}) or a Catalog of such sets"
            )
        return self

    def require_k(self, n_labels: int) -> None:
        """Raise where there are fewer labels than k."""
        if self.k > n_labels:
            raise ValueError(
                f"{self} needs at least {self.k} labels, but there are {n_labels}: "
                f"k must not be larger than the number of labels"
            )


@dataclass(frozen=True)
class PrecisionAtK(AtK):
    """1 - tp / k for predictions of exactly k labels.

    Examples
    --------
    >>> PrecisionAtK(2).loss([[1, 1, 0]], [[1, 0, 1]])
    array([0.5])
    """

    k: int

    def __post_init__(self):
        vars(self).update(k=whole_number(self.k, "k", 1))

    def measure(self, n_labels: int, of: Of) -> Additive:
        """Wrong (loss) or right (utility) labels among the k predicted, divided by k."""
        self.require_k(n_labels)
        return Additive((_WRONG if of == "loss" else _HIT) * np.full(n_labels, 1.0 / self.k))

    @property
    def utility_quotient(self) -> Fraction:
        """The utility tp / k."""
        return Fraction(np.array([0.0, 1, 0, 0, 0]), np.array([self.k, 0.0, 0, 0, 0]), 0.0)

    def __str__(self) -> str:
        return f"precision@{self.k}"


@dataclass(frozen=True)
class RecallAtK(AtK):
    """1 - tp / n_true for predictions of exactly k labels.

    Parameters
    ----------
    k : int
        Size of every prediction.
    empty : float, default 1.0
        The utility where no label is true.

    Examples
    --------
    >>> RecallAtK(2).loss([[1, 1, 0]], [[1, 0, 1]])
    array([0.5])
    """

    k: int
    empty: float = 1.0

    def __post_init__(self):
        empty = real_number(self.empty, "empty", 0.0, 1.0)
        vars(self).update(k=whole_number(self.k, "k", 1), empty=empty)

    def measure(self, n_labels: int, of: Of) -> Additive:
        """Missed (loss) or found (utility) labels, divided by the number of true ones."""
        self.require_k(n_labels)
        nothing = self.empty if of == "utility" else 1.0 - self.empty
        return Additive(
            (_MISSED if of == "loss" else _HIT) * np.ones(n_labels),
            scale=lambda n_true: 1.0 / np.maximum(n_true, 1.0),
            constant=lambda n_true: np.where(n_true == 0, nothing, 0.0),
        )

    @property
    def utility_quotient(self) -> Fraction:
        """The utility tp / (tp + fn)."""
        return Fraction(np.array([0.0, 1, 0, 0, 0]), np.array([0.0, 1, 0, 1, 0]), self.empty)

    def __str__(self) -> str:
        return f"recall@{self.k}"

"""What every surrogate offers, and the scales its values are given on."""

from __future__ import annotations

from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from setwise.spaces.space import Array
from setwise.validation import label_matrix, same_rows, score_matrix

Scale = Literal["unit", "paper"]


@runtime_checkable
class Surrogate(Protocol):
    """A loss of scores against true label sets that can be minimised by its gradient.

    Examples
    --------
    >>> from setwise.spaces import Cube
    >>> from setwise.surrogates import Logistic
    >>> loss = Logistic("f1", Cube(3))
    >>> isinstance(loss, Surrogate)
    True
    """

    def value_and_gradient(self, scores: ArrayLike, y_true: Any) -> tuple[Array, Array]:
        """Values (n,) and the gradient with respect to the scores (n, n_scores)."""
        ...

    def value_and_gradients(self, scores: ArrayLike, y_true: Any) -> tuple[Array, Array, Array]:
        """Values, score gradient, and the gradient by the space's parameters (n, p)."""
        ...

    def probability(self, scores: ArrayLike) -> Array:
        """P(label) of each label that the scores stand for, (n, l)."""
        ...


def checked(
    scores: Any, y_true: Any, n_scores: int | None, n_labels: int | None
) -> tuple[Array, Array]:
    """Scores and true label sets as arrays that kernels can trust.

    Without numbers to hold to, there must be as many labels as scores.
    """
    score_rows = score_matrix(scores, n_scores)
    true_rows = label_matrix(y_true, n_labels or score_rows.shape[1], "y_true", copy=False)
    same_rows(scores=score_rows, y_true=true_rows)
    return score_rows, true_rows


def as_type(dtype: Any, *arrays: Array) -> tuple[Array, ...]:
    """The arrays in the given precision; what overflows there becomes infinite."""
    with np.errstate(over="ignore", under="ignore"):
        return tuple(array.astype(dtype, copy=False) for array in arrays)

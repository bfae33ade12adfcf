"""Binary relevance: one binary problem for each label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setwise.spaces.space import Array
from setwise.surrogates.margins import MARGINS
from setwise.surrogates.surrogate import as_type, checked
from setwise.validation import score_matrix


@dataclass(frozen=True)
class BinaryRelevance:
    """sum_i Phi(y_i h_i) with a margin function Phi, y in ±1.

    Parameters
    ----------
    margin : {"logistic", "exponential", "hinge", "squared_hinge"}, default "logistic"
        Phi(u) = log(1 + e^-u), e^-u, max(0, 1 - u) or its square.

    Notes
    -----
    With the logistic margin P(label i) is sigmoid(h_i); on the cube of the comp-sum losses it is
    sigmoid(2 h_i).

    Examples
    --------
    >>> BinaryRelevance("hinge").value_and_gradient([[0.5, 0.0]], [[1, 0]])
    (array([1.5]), array([[-1.,  1.]]))
    """

    margin: str = "logistic"

    def __post_init__(self):
        if self.margin not in MARGINS:
            raise ValueError(
                f"margin must be one of {', '.join(map(repr, MARGINS))}, but it is {self.margin!r}"
            )

    def value_and_gradient(self, scores, y_true) -> tuple[Array, Array]:
        """Values (n,) and the gradient with respect to the scores (n, l)."""
        value, gradient, _ = self.value_and_gradients(scores, y_true)
        return value, gradient

    def value_and_gradients(self, scores, y_true) -> tuple[Array, Array, Array]:
        """Values, score gradient, and an empty parameter gradient (n, 0)."""
        scores, y_true = checked(scores, y_true, None, None)
        sign = 2.0 * y_true - 1.0
        margin = sign * scores
        phi = MARGINS[self.margin]
        value = phi.value(margin).sum(axis=1)
        gradient = sign * phi.derivative(margin)
        return as_type(scores.dtype, value, gradient, np.empty((len(scores), 0)))  # type: ignore

    def probability(self, scores) -> Array:
        """P(label) of each label at the minimiser, (n, l); the hinge has none."""
        scores = score_matrix(scores, None)
        link = MARGINS[self.margin].probability
        if link is None:
            raise ValueError(
                f"scores trained on the {self.margin} margin have no probability; "
                f"use margin='logistic'"
            )
        return link(scores)

    def __str__(self) -> str:
        return f"binary relevance ({self.margin})"

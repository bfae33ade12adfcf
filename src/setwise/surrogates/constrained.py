"""The constrained losses of the paper's appendix."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np

from setwise.spaces.expectation import Expectation, times_exp
from setwise.spaces.listing import Listing, listing_of, sampled_listing
from setwise.spaces.space import Array, Space, require_space
from setwise.sparse import row_ranges
from setwise.surrogates.binary_relevance import margin_of
from setwise.surrogates.surrogate import Scale, as_type, checked
from setwise.targets.registry import get_target
from setwise.validation import positive_number, require_one_of, whole_number

NAMES = ("exponential", "squared_hinge", "hinge", "rho")
# Spaces with more sets than this are sampled, not listed, for margins other than the exponential.
LISTED = 2**16


@dataclass(frozen=True, eq=False)
class Constrained:
    """sum over y' of L(y', y) Phi(-z(y')) with the weights z centred to mean 0 over the space.

    The paper's constraint sum_y' z(y') = 0 holds by itself on the cube; elsewhere z(y') is replaced
    by z(y') - E_0[z], which is differentiated with the rest. On the unit scale the sum is divided
    by |Y|.

    Parameters
    ----------
    target : Target or str
        What a prediction is judged by.
    space : Space
        The label sets that may be predicted.
    margin : {"exponential", "squared_hinge", "hinge", "rho"}, default "exponential"
        Phi(u) = e^-u, max(0, 1 - u)^2, max(0, 1 - u), min(max(0, 1 - u / rho), 1).
    rho : float, default 1.0
        Width of the rho margin, positive.
    scale : {"unit", "paper"}, default "unit"
        The scale of values and gradients.
    n_samples : int, default 4096
        For the other margins on a space of more than 2^16 sets: how many label sets are drawn
        uniformly, with replacement, by a generator of fixed ``seed``. Values and gradients are
        then unbiased estimates; `standard_error` says how good.
    seed : int, default 0
        Seed of that generator.

    Notes
    -----
    The exponential margin is exact on every space, e^(A - E_0[z]) E[L]; the others where the space
    can be listed.

    Examples
    --------
    >>> from setwise.spaces import Cube
    >>> Constrained("hamming", Cube(2), "hinge").value_and_gradient([[0.5, 0.0]], [[1, 0]])
    (array([0.375]), array([[-0.25,  0.25]]))
    """

    target: Any
    space: Space
    margin: str = "exponential"
    rho: float = 1.0
    scale: Scale = "unit"
    n_samples: int = 4096
    seed: int = 0
    expectation: Expectation | None = field(init=False, repr=False)
    _listing: Listing | None = field(init=False, repr=False)
    _center: tuple[Array, Array] = field(init=False, repr=False)

    def __post_init__(self):
        require_one_of(self.margin, NAMES, "margin")
        vars(self).update(
            rho=positive_number(self.rho, "rho"),
            n_samples=whole_number(self.n_samples, "n_samples", 2),
            seed=whole_number(self.seed, "seed", 0),
        )
        require_one_of(self.scale, get_args(Scale), "scale")
        require_space(self.space)
        target, pair, listing = get_target(self.target).on(self.space), None, None
        # The other margins sum over listed or drawn sets; a table must list them all.
        if self.margin == "exponential" or target.form == "table":
            pair = self.space.expectation(target)
        if self.margin != "exponential":
            listing = (
                listing_of(self.space)
                if self.is_exact
                else sampled_listing(self.space, self.n_samples, self.seed)
            )
        flat = self.space.tempered(0.0).mean_scores(np.zeros((1, self.space.n_scores)))
        center = flat[1][0], flat[2][0]
        vars(self).update(target=target, expectation=pair, _center=center, _listing=listing)

    @property
    def is_exact(self) -> bool:
        """Whether values are exact, not sampled."""
        few = self.space.is_list or self.space.has_at_most(LISTED)
        return self.margin == "exponential" or few

    def value_and_gradient(self, scores, y_true) -> tuple[Array, Array]:
        """Values (n,) and the gradient with respect to the scores (n, n_scores)."""
        return self.value_and_gradients(scores, y_true)[:2]

    def value_and_gradients(self, scores, y_true) -> tuple[Array, Array, Array]:
        """Values, score gradient, and the gradient by the space's parameters (n, p)."""
        scores, y_true = checked(scores, y_true, self.space.n_scores, self.space.n_labels)
        work = scores.astype(np.float64)
        if self._listing is None:
            result = self._exponential(work, y_true)
        else:
            chunks = self._chunks(work, y_true)
            result = tuple(np.concatenate(parts) for parts in zip(*chunks, strict=True))[:3]
        if self.scale == "paper":
            result = tuple(times_exp(part, self.space.log_size) for part in result)
        return as_type(scores.dtype, *result)  # type: ignore

    def standard_error(self, scores, y_true) -> Array:
        """Standard error of each value: 0 where it is exact, (n,)."""
        scores, y_true = checked(scores, y_true, self.space.n_scores, self.space.n_labels)
        if self.is_exact:
            return np.zeros(len(scores))
        chunks = self._chunks(scores.astype(np.float64), y_true)
        error = np.concatenate([part[3] for part in chunks]) / np.sqrt(self.n_samples)
        return times_exp(error, self.space.log_size if self.scale == "paper" else 0.0)

    def probability(self, scores) -> Array:
        """Refused: a constrained loss does not make its scores a law over label sets."""
        raise ValueError(f"scores trained on {self} have no probability; use a CompSum loss")

    def _exponential(self, scores: Array, y_true: Array) -> tuple[Array, Array, Array]:
        """e^(A - log|Y| - E_0[z]) E[L] and its derivatives."""
        log_partition, mean_scores, mean_features = self.space.mean_scores(scores)
        assert self.expectation is not None
        moment = self.expectation.moment(scores, y_true, 1.0, "loss")
        center, finite = self._centre(scores)
        exponent = log_partition - self.space.log_size - center
        loss, column = moment.value[:, None], exponent[:, None]
        by_score = moment.scores + loss * (mean_scores - self._center[0])
        by_parameter = (moment.parameters + loss * (mean_features - self._center[1])) * finite
        return (
            times_exp(moment.value, exponent),
            times_exp(by_score, column),
            times_exp(by_parameter, column),
        )

    def _chunks(self, scores: Array, y_true: Array):
        """Value, gradients and standard deviation over the list, a few rows at a time."""
        assert self._listing is not None
        for rows in row_ranges(len(scores), self._listing.count):
            yield self._listed(self._listing, scores[rows], y_true[rows])

    def _listed(self, listing: Listing, scores: Array, y_true: Array):
        """The mean over the list of L(y', y) Phi(-z(y')) with z centred."""
        weights, (center, finite) = listing.weights(scores), self._centre(scores)
        support = weights > -np.inf
        margin = center[:, None] - np.where(support, weights, 0.0)
        measure = self.target.measure(self.space.n_labels, "loss")
        loss = np.where(support, measure.matrix(listing, y_true), 0.0)
        phi = margin_of(self.margin, self.rho)
        count = support.sum(axis=1, keepdims=True)
        terms = loss * phi.value(margin)
        pulls = -loss * phi.derivative(margin) / count
        by_score, by_parameter = listing.aggregate(pulls)
        pulled = pulls.sum(axis=1, keepdims=True)
        return (
            (terms / count).sum(axis=1),
            by_score - pulled * self._center[0],
            (by_parameter - pulled * self._center[1]) * finite,
            terms.std(axis=1, ddof=1) if terms.shape[1] > 1 else np.zeros(len(terms)),
        )

    def _centre(self, scores: Array) -> tuple[Array, Array]:
        """E_0[z] of each row, and which parameters are finite."""
        finite = np.isfinite(self.space.parameters)
        parameters = np.where(finite, self.space.parameters, 0.0)
        return scores @ self._center[0] + float(self._center[1] @ parameters), finite

    def __str__(self) -> str:
        return f"constrained {self.margin} [{self.target}] on {self.space}"

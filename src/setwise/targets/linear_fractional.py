"""Linear-fractional losses of the confusion counts: F-beta, Jaccard, and all the others.

The paper's equation for the family is L = (a · k) / (b · k) with k = (1, tp, fp, fn, tn). With the
true set known, fn = n_true - tp and tn = n_false - fp, so numerator and denominator are linear in
tp and fp alone. (The paper's list of the counts interchanges fn and tn; here they have their usual
meaning.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from setwise.spelling import brief
from setwise.targets.measure import ROUNDING, ZERO_DENOMINATOR, Form, Fraction, Of, linear
from setwise.targets.target import Target
from setwise.validation import positive_number, real_number, real_vector


@dataclass(frozen=True, eq=False)
class LinearFractional(Target):
    """Any quotient of linear functions of the confusion counts that stays in [0, 1].

    L = (a0 + a1 tp + a2 fp + a3 fn + a4 tn) / (b0 + b1 tp + b2 fp + b3 fn + b4 tn).

    Parameters
    ----------
    numerator, denominator : arrays of shape (5,)
        The coefficients of (1, tp, fp, fn, tn) of the *loss*, above and below.
    empty : float, default 1.0
        The *utility* where the denominator is 0.

    Examples
    --------
    The Tversky loss with weights .3 for false positives and .7 for false negatives:

    >>> tversky = LinearFractional([0, 0, 0.3, 0.7, 0], [0, 1, 0.3, 0.7, 0])
    >>> tversky.loss([[1, 1, 0]], [[1, 0, 0]]).round(3)
    array([0.231])
    """

    numerator: Any
    denominator: Any
    empty: float = 1.0
    form: ClassVar[Form] = "linear_fractional"

    def __post_init__(self):
        for name in ("numerator", "denominator"):
            vars(self)[name] = real_vector(getattr(self, name), 5, name)
        vars(self).update(empty=real_number(self.empty, "empty", 0.0, 1.0))
        if not self.denominator.any():
            raise ValueError("denominator must have a coefficient that is not 0")

    def measure(self, n_labels: int, of: Of) -> Fraction:
        """The quotient, or 1 minus it written as a quotient."""
        refuse_outside_unit(self, n_labels)
        if of == "loss":
            return Fraction(self.numerator, self.denominator, 1.0 - self.empty)
        return self.utility_quotient

    @property
    def utility_quotient(self) -> Fraction:
        """The utility, not yet seen to lie in [0, 1]."""
        return Fraction(self.denominator - self.numerator, self.denominator, self.empty)

    __repr__ = brief

    def __str__(self) -> str:
        return f"linear-fractional {self.numerator.tolist()} / {self.denominator.tolist()}"


@dataclass(frozen=True)
class FBeta(Target):
    """1 - F-beta: 1 - (1 + beta²) tp / ((1 + beta²) tp + fp + beta² fn).

    Parameters
    ----------
    beta : float, default 1.0
        Weight of recall against precision, positive.
    empty : float, default 1.0
        The utility where nothing is true and nothing predicted.

    Examples
    --------
    >>> FBeta().loss([[1, 1, 0]], [[1, 0, 0]]).round(3)
    array([0.333])
    """

    beta: float = 1.0
    empty: float = 1.0
    form: ClassVar[Form] = "linear_fractional"

    def __post_init__(self):
        beta = positive_number(self.beta, "beta")
        if not 1e-6 <= beta <= 1e6:
            raise ValueError(f"beta must be from 1e-06 to 1e+06, but it is {self.beta!r}")
        vars(self).update(beta=beta, empty=real_number(self.empty, "empty", 0.0, 1.0))

    @property
    def f_beta(self) -> float:
        """beta, as `beta_of` asks for it."""
        return self.beta

    def measure(self, n_labels: int, of: Of) -> Fraction:
        """F-beta as a quotient of the counts, or 1 minus it."""
        square = self.beta**2
        return share_of(1.0 + square, 1.0, square, of, self.empty)

    def __str__(self) -> str:
        # As scikit-learn's scorers of that name, which count a row of nothing as 0.
        return f"f{self.beta:g}" + "_samples" * (self.empty == 0.0)


@dataclass(frozen=True)
class Jaccard(Target):
    """1 - tp / (tp + fp + fn): one minus intersection over union.

    Parameters
    ----------
    empty : float, default 1.0
        The utility where nothing is true and nothing predicted.

    Examples
    --------
    >>> Jaccard().loss([[1, 1, 0]], [[1, 0, 0]])
    array([0.5])
    """

    empty: float = 1.0
    form: ClassVar[Form] = "linear_fractional"

    def __post_init__(self):
        vars(self).update(empty=real_number(self.empty, "empty", 0.0, 1.0))

    def measure(self, n_labels: int, of: Of) -> Fraction:
        """Intersection over union as a quotient of the counts, or 1 minus it."""
        return share_of(1.0, 1.0, 1.0, of, self.empty)

    def __str__(self) -> str:
        return "jaccard" + "_samples" * (self.empty == 0.0)


def share_of(tp: float, fp: float, fn: float, of: Of, empty: float) -> Fraction:
    """Found labels as a share of those found, wrong and missed, by weight; or 1 - it, the loss."""
    below = np.array([0.0, tp, fp, fn, 0.0])
    if of == "loss":
        return Fraction(np.array([0.0, 0.0, fp, fn, 0.0]), below, 1.0 - empty)
    return Fraction(np.array([0.0, tp, 0.0, 0.0, 0.0]), below, empty)


def refuse_outside_unit(target: LinearFractional, n_labels: int) -> None:
    """Raise unless the quotient lies in [0, 1] for all counts of ``n_labels`` labels.

    For a given n_true a quotient of linear functions takes its extremes at the corners of the
    rectangle of (tp, fp). The denominator may vanish on one side of it (the ``empty`` case); then
    the corners of what is left are next to that side. So 16 points for each n_true decide.
    """
    n_true = np.arange(n_labels + 1)[:, None, None]
    n_false = n_labels - n_true
    ends, at_top = np.array([0, 1, -1, 0]), np.array([0, 0, 1, 1])
    tp = np.clip((ends + at_top * n_true).transpose(0, 2, 1), 0, n_true)
    fp = np.clip(ends + at_top * n_false, 0, n_false)
    counts = np.broadcast_arrays(tp, fp, n_true - tp, n_false - fp)
    below = linear(target.denominator, *counts)
    loss = Fraction(target.numerator, target.denominator, 0.0).of_counts(*counts)
    for bad, what in (
        (below < -ZERO_DENOMINATOR * np.abs(target.denominator).max(), "a negative denominator"),
        ((loss < -ROUNDING) | (loss > 1.0 + ROUNDING), "a loss outside [0, 1]"),
    ):
        if bad.any():
            tp, fp, fn, tn = (int(count[tuple(np.argwhere(bad)[0])]) for count in counts)
            raise ValueError(
                f"{target} has {what} at tp={tp}, fp={fp}, fn={fn}, tn={tn}; "
                f"a target must stay in [0, 1]"
            )

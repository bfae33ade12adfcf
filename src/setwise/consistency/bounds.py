"""Bounds on the regret of a target by that of a surrogate: the paper's, and those proved here.

"The paper" is Mao, Mohri, Zhong: Multi-Label Learning with Stronger Consistency Guarantees. Its
theorems are numbered as their source counts them, definitions, corollaries and lemmas included.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from math import comb, exp, inf, log
from typing import Any, Literal

import numpy as np

from setwise.consistency.naming import Choice, chosen_surrogate
from setwise.spaces.space import Space
from setwise.surrogates.names import DEFAULT_Q
from setwise.targets.target import Target, is_hamming

Scale = Literal["paper", "unit"]
COMPLETE = (
    "scores are all measurable functions, or complete at each input, with the minimizability gaps "
    "then added to both regrets"
)
REACHED = (
    "every law over the label sets is reached by some scores: a score for each set, or label sets "
    "that are affinely independent"
)
PREDICTED = "the prediction is the most likely set"
SUMMED = "t is summed over the labels"
OWN = "proved here"
# Binary margins: the bound on the 0/1 regret by the margin's is (factor t)^exponent.
BINARY = {
    "logistic": (2.0, 0.5),
    "exponential": (2.0, 0.5),
    "squared_hinge": (1.0, 0.5),
    "hinge": (1.0, 1.0),
}
# Numbers beyond e^FAR, either way, are written as powers of e.
FAR = 30.0


@dataclass(frozen=True)
class Gamma:
    """regret of the target <= Gamma(t) = coefficient t^exponent, t the regret of the surrogate.

    Parameters
    ----------
    log_coefficient, exponent : float
        The logarithm, because on large spaces the coefficient is beyond floating point.
    formula : str
        The same in letters: l labels, n label sets.
    theorem : str
        Where it is proved.
    assumptions : tuple of str
        What it needs.
    scale : {"paper", "unit"}
        On which scale t is measured; `on` converts.
    log_unit : float
        Log of a surrogate regret on the paper's scale over that on the unit scale.

    Examples
    --------
    >>> gamma = bound("logistic")
    >>> print(gamma)
    2 sqrt(t)
    >>> round(gamma(0.01), 4)
    0.2
    """

    log_coefficient: float
    exponent: float
    formula: str
    theorem: str
    assumptions: tuple[str, ...] = ()
    scale: Scale = "paper"
    log_unit: float = 0.0

    @property
    def coefficient(self) -> float:
        """The factor of t^exponent; inf or 0 where it is beyond floating point."""
        return exp(self.log_coefficient) if self.log_coefficient < 709.0 else inf

    def __call__(self, regret: Any) -> Any:
        """The bound at a surrogate regret, or at each of an array of them."""
        with np.errstate(divide="ignore", over="ignore"):
            size = np.log(np.maximum(regret, 0.0))
            value = np.exp(self.log_coefficient + self.exponent * size)
        return float(value) if np.ndim(regret) == 0 else value

    def on(self, scale: Scale) -> Gamma:
        """The same bound for regrets on the other scale: Gamma_unit(t) = Gamma_paper(c t)."""
        if scale not in ("paper", "unit"):
            raise ValueError(f"scale must be 'paper' or 'unit', but it is {scale!r}")
        if scale == self.scale:
            return self
        change = self.log_unit if scale == "unit" else -self.log_unit
        size = self.log_coefficient + self.exponent * change
        formula = f"{self.formula} at {_number(change)} t for t" if change else self.formula
        return replace(self, log_coefficient=size, scale=scale, formula=formula)

    @property
    def in_numbers(self) -> str:
        """The same with the coefficient as a number."""
        power = {1.0: "t", 0.5: "sqrt(t)"}.get(self.exponent, f"t^{self.exponent:g}")
        number = _number(self.log_coefficient)
        return power if number == "1" else f"{number} {power}"

    @property
    def scales(self) -> str:
        """What to add to a bound on the paper's scale: that it is, and the bound on the other."""
        if not self.log_unit:
            return ""
        unit = self.on("unit").in_numbers
        return f" on the scale of the paper's sum over label sets, {unit} on the unit scale"

    def __str__(self) -> str:
        numbers = self.in_numbers
        return self.formula if self.formula == numbers else f"{self.formula} = {numbers}"

    def to_dict(self) -> dict[str, Any]:
        """Its fields as plain values."""
        return asdict(self) | {"assumptions": list(self.assumptions)}


LIKELIHOOD = Gamma(
    log(2.0) / 2.0, 0.5, "sqrt(2 t)", "Pinsker's inequality",
    (
        "t is the divergence KL(p || s) in nats: log-loss above the entropy of p, misspecification "
        "included",
        "the prediction has the least expected loss under s",
    ),
)  # fmt: skip


def bound(
    surrogate: Any, space: Space | None = None, *, q: float = DEFAULT_Q, as_printed: bool = False
) -> Gamma:
    """The paper's bound for a surrogate by name or as an object, on the paper's scale.

    Binary relevance bounds Hamming loss, a share of the l labels: Gamma(t / l) for the binary
    Gamma. Generalised cross-entropy and mean absolute error depend on the number n of label sets,
    so need the space. A likelihood with minimum-risk decoding: sqrt(2 t), t the divergence
    KL(p || s) in nats.

    Parameters
    ----------
    surrogate : str or Surrogate
    space : Space, optional
        The label sets, where the bound or its other scale depends on them.
    q : float, default 0.7
        Member of the generalised cross-entropy by name.
    as_printed : bool, default False
        The constant as printed where that is a slip: sqrt(l t) in place of sqrt(2 l t) for the
        raw Hamming count with the logistic margin (Corollary 4).

    Examples
    --------
    >>> from setwise.spaces import Cube
    >>> print(bound("mean_absolute_error", Cube(3)))
    n t = 8 t
    >>> print(bound("binary_relevance", Cube(4)))
    sqrt(2 t / l) = 0.7071 sqrt(t)
    """
    choice = chosen_surrogate(surrogate, q)
    return bound_of(choice, space if space is not None else choice.space, as_printed)


def bound_of(choice: Choice, space: Space | None, as_printed: bool = False) -> Gamma:
    """The paper's bound for a chosen surrogate: see `bound`."""
    member, margin = choice.q, choice.margin
    if choice.is_likelihood:
        return LIKELIHOOD
    if member is not None and -1.0 < member < 0.0:
        raise ValueError(
            f"the paper has no bound for q = {member:g}; it has for q = -1 and 0 <= q <= 1"
        )
    if space is None and (choice.by_label or (member is not None and member > 0.0)):
        number = "labels" if choice.by_label else "label sets"
        raise ValueError(f"the bound of {choice} depends on the number of {number}: pass a space")
    log_size, labels = (0.0, 1) if space is None else (space.log_size, space.n_labels)
    if choice.by_label:
        return _relevance(choice, labels, as_printed)
    size, exponent = log(2.0) + max(0.0, member or 0.0) * log_size / 2.0, 0.5
    formula = "2 sqrt(L_max t)" if margin == "exponential" else "2 sqrt(t)"
    theorem = "Theorem 12 (appendix A)"
    if member is not None:
        theorem = "Theorem 7 (section 5)" if member == 0.0 else "Theorem 9 (section 6)"
        formula = f"2 sqrt(n^{member:g} t)" if member > 0.0 else formula
    if member == 1.0:
        size, exponent, formula = log_size, 1.0, "n t"
    if margin in ("hinge", "rho"):
        size, exponent, formula = 0.0, 1.0, "t"
    needs = (COMPLETE, REACHED, PREDICTED)
    return Gamma(size, exponent, formula, theorem, needs, log_unit=choice.log_unit(log_size))


def _relevance(choice: Choice, labels: int, as_printed: bool) -> Gamma:
    """l Gamma(t / l) for the count of wrong labels, so Gamma(t / l) for their share."""
    factor, exponent = BINARY[str(choice.margin)]
    theorem = "Theorem 3 (section 3)"
    if as_printed:
        if choice.margin != "logistic":
            raise ValueError(f"the paper prints no constant of its own for {choice}")
        factor, theorem = 1.0, "Corollary 4 (section 3) as printed, which is false"
    inside = "2 t / l" if factor == 2.0 else "t / l"
    formula = f"sqrt({inside})" if exponent == 0.5 else inside
    needs = (COMPLETE, SUMMED, "the prediction is the sign of the scores")
    return Gamma(exponent * log(factor / labels), exponent, formula, theorem, needs)


def hamming_bound(choice: Choice, space: Space) -> Gamma:
    """For Hamming loss on the cube, one label after the other: sqrt(factor l t e^power)."""
    q, log_count = choice.q, space.log_size
    if q is not None and q > 0.0:
        factor, power, over = 8.0, -(1.0 - q) * log(2.0), f"2^{1.0 - q:g}"
    elif q is not None and q < 0.0:
        factor, power, over = 8.0 * (1.0 - q), -(1.0 - q) * log_count, f"n^{1.0 - q:g}"
    else:
        factor = 4.0 if q == 0.0 else 8.0 if choice.margin == "exponential" else 2.0
        power, over = -log_count, "n"
    size = (log(factor * space.n_labels) + power) / 2.0
    return _root(choice, space, size, f"sqrt({factor:g} l t / {over})")


def at_k_bound(choice: Choice, space: Space, k: int) -> Gamma | None:
    """On sets of k labels: pairs in the wrong order are at most kappa = min(k, l - k)."""
    labels = space.n_labels
    pairs, log_others = log(min(k, labels - k)), log(comb(labels - 2, k - 1))
    if choice.margin == "exponential":
        return _root(choice, space, pairs + log(2.0), "2 kappa sqrt(t)")
    if choice.margin == "squared_hinge":
        size = pairs + (log(2.0) + log_others) / 2.0
        return _root(choice, space, size, "kappa sqrt(2 C(l-2, k-1) t)")
    if choice.q != 0.0:
        return None
    size = pairs + (log(2.0) + log(comb(labels, k))) / 2.0 - log_others
    return _root(choice, space, size, "kappa sqrt(2 C(l, k) t) / C(l-2, k-1)")


def relevance_at_k_bound(target: Target, choice: Choice, space: Space, k: int) -> Gamma:
    """Of binary relevance on sets of k labels, for Hamming loss and precision@k."""
    labels, even = space.n_labels, is_hamming(target)
    half = 0.5 if choice.margin == "squared_hinge" else 1.0
    root = "sqrt(kappa t / 2)" if half < 1.0 else "sqrt(kappa t)"
    size = log(2.0 / labels if even else 1.0 / k) + log(half * min(k, labels - k)) / 2.0
    own = () if target.form == "additive" else ("true label sets have k labels",)
    needs = (COMPLETE, SUMMED, "the prediction is the k highest scores", *own)
    return Gamma(size, 0.5, f"2 {root} / l" if even else f"{root} / k", OWN, needs)


def _root(choice: Choice, space: Space, log_coefficient: float, formula: str) -> Gamma:
    unit = choice.log_unit(space.log_size)
    return Gamma(log_coefficient, 0.5, formula, OWN, (COMPLETE, PREDICTED), log_unit=unit)


def _number(log_value: float) -> str:
    """Four digits, or a power of e far from 1."""
    return f"{exp(log_value):.4g}" if abs(log_value) <= FAR else f"e^{log_value:.0f}"

"""What is said: distributions, bounds on a regret, and the verdicts of `certify`.

All print as words and turn into plain values; verdicts are read back from them, and are equal if
they are.
"""

from __future__ import annotations

import json
from dataclasses import MISSING, asdict, dataclass, fields, replace
from math import exp, inf
from typing import Any, ClassVar, Literal

import numpy as np

from setwise.consistency.meaning import in_short
from setwise.consistency.naming import word
from setwise.spaces import Catalog
from setwise.spaces.space import Array, Space
from setwise.validation import real_vector

Scale = Literal["paper", "unit"]
# How far the probabilities of a distribution may be from a sum of 1.
SUM_ERROR = 1e-9
# Numbers beyond e^FAR, either way, are written as powers of e.
FAR = 30.0
# What holds of a likelihood, consistent or not.
BOUNDED = (
    "  For every target and all scores, the regret of the set with the smallest expected loss is\n"
    "  at most sqrt(2 r), where r = KL(p || s) is the divergence of the learnt distribution s\n"
    "  from the true p: predictions are best if the scores can represent the truth.\n"
)


@dataclass(frozen=True, eq=False)
class Distribution:
    """The probability of each listed label set; every other set has probability 0.

    The ``sets`` (m, n_labels) are no two alike; the ``probability`` (m,) is nowhere negative and
    adds up to 1.

    Examples
    --------
    >>> print(Distribution([[0, 0], [0, 1], [1, 1]], [0.3, 0.3, 0.4]))
    P(00) = 0.3, P(01) = 0.3, P(11) = 0.4
    """

    sets: Any
    probability: Any

    def __post_init__(self):
        sets = Catalog(self.sets).sets
        probability = real_vector(self.probability, len(sets), "probability")
        if probability.min() < 0.0 or abs(probability.sum() - 1.0) > SUM_ERROR:
            raise ValueError(
                f"probability must not be negative and must add up to 1, but its least entry is "
                f"{probability.min()} and its sum {probability.sum()}"
            )
        vars(self).update(sets=sets, probability=probability)

    @classmethod
    def of(cls, value: Any, space: Space) -> Distribution:
        """A distribution as it is, or from probabilities of the space's own sets in their order."""
        if not isinstance(value, Distribution):
            return cls(space.enumerate(), value)
        if value.n_labels != space.n_labels:
            raise ValueError(
                f"the distribution must have as many labels as {space}, {space.n_labels}, "
                f"but it has {value.n_labels}"
            )
        return value

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return self.sets.shape[1]

    def mean(self, values: Array) -> Array:
        """The expectation of values given for each listed set, along their first axis."""
        return self.probability @ values

    def marginals(self) -> Array:
        """P(label in the set), (l,)."""
        return self.mean(self.sets)

    def __str__(self) -> str:
        law = zip(self.sets, self.probability, strict=True)
        return ", ".join(f"P({word(y)}) = {p:.4g}" for y, p in law if p > 0.0)

    def to_dict(self) -> dict[str, Any]:
        """The label sets and their probabilities as plain lists."""
        return {"sets": self.sets.tolist(), "probability": self.probability.tolist()}


@dataclass(frozen=True)
class Gamma:
    """regret of the target <= Gamma(t) = coefficient t^exponent, t the regret of the surrogate.

    Kept is the logarithm of the coefficient, which on large spaces is beyond floating point.
    ``formula`` is the same in letters (l labels, n label sets), ``theorem`` where it is proved,
    ``assumptions`` what it needs. t is measured on the ``scale`` "paper" or "unit"; ``log_unit`` is
    the log of a surrogate regret on the first over that on the second, by which `on` converts.

    Examples
    --------
    >>> gamma = Gamma(np.log(2.0), 0.5, "2 sqrt(t)", "Theorem 7")
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

    def __post_init__(self):
        vars(self).update(assumptions=tuple(self.assumptions))

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
        return f" on the scale of the paper's own sum, {unit} on the unit scale"

    def __str__(self) -> str:
        numbers = self.in_numbers
        return self.formula if self.formula == numbers else f"{self.formula} = {numbers}"

    def to_dict(self) -> dict[str, Any]:
        """Its fields as plain values."""
        return asdict(self) | {"assumptions": list(self.assumptions)}


def _number(log_value: float) -> str:
    """Four digits, or a power of e far from 1."""
    return f"{exp(log_value):.4g}" if abs(log_value) <= FAR else f"e^{log_value:.0f}"


@dataclass(frozen=True, eq=False, kw_only=True)
class _Answer:
    """What was asked, in names; ``question`` has all parameters (None in files of old)."""

    target: str
    surrogate: str
    space: str
    scores: str
    tried: int
    seed: int
    question: dict[str, Any] | None = None
    verdict: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        """Its fields as plain values."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, value in values.items():
            if isinstance(value, Gamma | Distribution):
                values[name] = value.to_dict()
            elif isinstance(value, tuple):
                values[name] = list(value)
        return {"verdict": self.verdict} | values

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.to_dict() == other.to_dict()  # type: ignore

    def __hash__(self) -> int:
        return hash(to_json(self))

    @property
    def subject(self) -> str:
        """What the verdict is about, in words."""
        kind = "one score per label" if self.scores == "labelwise" else "one score per label set"
        return f"{self.surrogate} for {self.target} on {self.space} with {kind}"

    in_short = property(in_short)

    @property
    def is_bounded(self) -> bool:
        """Whether the regret has a bound by the divergence: that of a likelihood, for all targets.

        The bound needs no consistency; it vanishes with the divergence, and not before.
        """
        return self.surrogate == "likelihood"


@dataclass(frozen=True, eq=False, kw_only=True)
class Certificate(_Answer):
    """A theorem that covers the combination, and a search that did not contradict it.

    ``gamma`` is the theorem's bound on the paper's scale, None where it has no rate.
    ``worst_ratio`` is the largest ratio of regret to bound met, ``worst_regret`` the largest regret
    at surrogate regret 0, over ``tried`` distributions.

    Examples
    --------
    >>> from setwise.consistency import certify
    >>> found = certify("hamming", "binary_relevance")
    >>> found.theorem, found.verdict
    ('B', 'certificate')
    >>> print(found.gamma)
    sqrt(2 t / l) = 0.8165 sqrt(t)
    """

    theorem: str
    statement: str
    source: str
    proof: str
    reason: str
    gamma: Gamma | None
    worst_ratio: float | None
    worst_regret: float
    verdict: ClassVar[str] = "certificate"

    def __str__(self) -> str:
        bound = "  The theorem has no rate."
        if self.gamma is not None:
            bound = (
                f"  Bound: regret <= {self.gamma} at surrogate regret t{self.gamma.scales}.\n"
                f"  Largest ratio of regret to bound met: {self.worst_ratio:.4f}."
            )
        return (
            f"{self.in_short}\n\n"
            f"  Theorem {self.theorem}, {self.source}: {self.statement}\n"
            f"  It applies: {self.reason}.\n{bound}\n"
            f"  Searched {self.tried} distributions (seed {self.seed}); the largest regret at "
            f"surrogate regret 0 was {self.worst_regret:.1e}."
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Counterexample(_Answer):
    """A distribution for which the surrogate's minimiser predicts a set that is not best.

    Of a likelihood it says that its regret need not vanish with these scores, not that it has no
    guarantee: the bound by the divergence holds all the same (``is_bounded``).

    ``minimiser`` are the scores shown; ``surrogate_regret`` bounds how far above the infimum their
    risk is (on the paper's scale), by the method named; ``note`` says what is special: ties at the
    minimiser, minimisers that are not unique, a risk that is not convex; ``check`` how it was
    verified with the loss that is trained.

    Examples
    --------
    >>> from setwise.consistency import certify
    >>> found = certify("f1", "logistic")
    >>> print(found.distribution)
    P(000) = 0.72, P(100) = 0.28
    >>> found.prediction, found.bayes, round(found.regret, 2)
    ((1, 0, 0), (0, 0, 0), 0.44)
    """

    decoder: str
    distribution: Distribution
    minimiser: tuple[float, ...]
    surrogate_regret: float
    method: str
    prediction: tuple[int, ...]
    prediction_risk: float
    bayes: tuple[int, ...]
    bayes_risk: float
    regret: float
    reason: str
    note: str
    check: str
    verdict: ClassVar[str] = "counterexample"

    def __str__(self) -> str:
        scores = ", ".join(f"{score:.4g}" for score in self.minimiser)
        note = f"  Note: {self.note}.\n" if self.note else ""
        return (
            f"{self.in_short}\n\n{BOUNDED if self.is_bounded else ''}"
            f"  The scores ({scores}) have surrogate regret at most {self.surrogate_regret:.1e} "
            f"({self.method}).\n"
            f"  Their {self.decoder} is {word(self.prediction)}, with expected loss "
            f"{self.prediction_risk:.4f}; the best is {word(self.bayes)}, with "
            f"{self.bayes_risk:.4f}: regret {self.regret:.4f}.\n"
            f"  Why: {self.reason}.\n{note}"
            f"  Checked with the loss that is trained: {self.check}.\n"
            f"  Found among {self.tried} distributions (seed {self.seed})."
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Undecided(_Answer):
    """No theorem covers the combination, and the search found nothing: that proves nothing.

    ``nearest`` is how far, in score (or in expected loss, after a likelihood), a set of regret
    above 0.002 stayed from being predicted; None if there was no such set.

    Examples
    --------
    >>> from setwise.consistency import certify
    >>> from setwise.targets import CountTarget
    >>> found = certify(CountTarget(lambda tp, fp, fn, tn: 0.0 * tp), "logistic")
    >>> found.verdict
    'undecided'
    """

    worst_regret: float
    nearest: float | None
    verdict: ClassVar[str] = "undecided"

    def __str__(self) -> str:
        near = "no set was wrong"
        if self.nearest is not None:
            near = f"a wrong set came within {self.nearest:.2g} of being predicted"
        return (
            f"{self.in_short}\n\n{BOUNDED if self.is_bounded else ''}"
            f"  Tried {self.tried} distributions (seed {self.seed}); the largest regret at "
            f"surrogate regret 0 was {self.worst_regret:.1e}, and {near}. That proves nothing."
        )


Verdict = Certificate | Counterexample | Undecided
# How a field is read from its plain value, by its annotation.
_READERS: dict[str, Any] = {
    "str": str, "int": int, "float": float, "dict[str, Any]": dict,
    "Gamma": lambda value: Gamma(**value), "Distribution": lambda value: Distribution(**value),
    "tuple[float, ...]": lambda value: tuple(map(float, value)),
    "tuple[int, ...]": lambda value: tuple(map(int, value)),
}  # fmt: skip


def from_dict(values: dict[str, Any]) -> Verdict:
    """The verdict that `to_dict` wrote.

    Examples
    --------
    >>> from setwise.consistency import certify
    >>> found = certify("f1", "logistic")
    >>> from_dict(found.to_dict()) == found
    True
    """
    if not isinstance(values, dict):
        raise ValueError(f"a verdict is read from a dictionary, not from a {type(values).__name__}")
    kinds = {kind.verdict: kind for kind in (Certificate, Counterexample, Undecided)}
    name = str(values.get("verdict"))
    if name not in kinds:
        raise ValueError(f"a verdict is one of {', '.join(map(repr, kinds))}, not {name}")
    given = {}
    for field in fields(kinds[name]):
        value = given[field.name] = values.get(field.name, field.default)
        if value is MISSING:
            raise ValueError(f"this is no {name}: it is without {field.name!r}")
        kind, _, optional = str(field.type).partition(" | ")
        try:
            read = value if value is None and optional else _READERS[kind](value)
            if kind in ("str", "int", "dict[str, Any]") and read != value:
                raise TypeError(f"a {kind} is expected")
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"this is no {name}: its {field.name!r} is {value!r} ({error})"
            ) from error
        given[field.name] = read
    return kinds[name](**given)


def to_json(verdict: Any) -> str:
    """A verdict as one line of JSON.

    Examples
    --------
    >>> from setwise.consistency import certify
    >>> to_json(certify("f1", "logistic"))[:45]
    '{"verdict": "counterexample", "target": "f1",'
    """
    return json.dumps(verdict.to_dict())

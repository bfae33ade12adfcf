"""What `certify` answers: a certificate, a counterexample, or that it could not decide.

All three print as words and turn into plain values and back, for files of results. They are equal
if their plain values are. ``question`` has the parameters of target, surrogate and space as plain
values, so that a file says what was asked; None in files written before there was one.
"""

from __future__ import annotations

import json
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar

from setwise.consistency.bounds import Gamma
from setwise.consistency.naming import word
from setwise.consistency.setting import Distribution


@dataclass(frozen=True, eq=False)
class _Answer:
    """What was asked, in names; equal where all that is told is equal."""

    target: str
    surrogate: str
    space: str
    scores: str
    verdict: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        """Its fields as plain values."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"verdict": self.verdict} | {name: _written(v) for name, v in values.items()}

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.to_dict() == other.to_dict()  # type: ignore

    def __hash__(self) -> int:
        return hash(to_json(self))

    @property
    def subject(self) -> str:
        """What the verdict is about, in words."""
        kind = "one score a label" if self.scores == "labelwise" else "one score a label set"
        return f"{self.surrogate} for {self.target} on {self.space} with {kind}"


@dataclass(frozen=True, eq=False)
class Certificate(_Answer):
    """A theorem that covers the combination, and a search that did not contradict it.

    ``gamma`` is the theorem's bound on the paper's scale, None where it has no rate.
    ``worst_ratio`` is the largest ratio of regret to bound met, ``worst_regret`` the largest regret
    at surrogate regret 0, over ``tried`` distributions.
    """

    theorem: str
    statement: str
    source: str
    proof: str
    reason: str
    gamma: Gamma | None
    worst_ratio: float | None
    worst_regret: float
    tried: int
    seed: int
    question: dict[str, Any] | None = None
    verdict: ClassVar[str] = "certificate"

    def __str__(self) -> str:
        bound = "  The theorem has no rate."
        if self.gamma is not None:
            bound = (
                f"  Bound: regret <= {self.gamma} at surrogate regret t{self.gamma.scales}.\n"
                f"  Largest ratio of regret to bound met: {self.worst_ratio:.4f}."
            )
        return (
            f"Certificate: {self.subject} is consistent.\n"
            f"  Theorem {self.theorem}, {self.source}: {self.statement}\n"
            f"  It applies: {self.reason}.\n{bound}\n"
            f"  Searched {self.tried} distributions (seed {self.seed}); the largest regret at "
            f"surrogate regret 0 was {self.worst_regret:.1e}."
        )


@dataclass(frozen=True, eq=False)
class Counterexample(_Answer):
    """A distribution for which the surrogate's minimiser predicts a set that is not best.

    ``minimiser`` are the scores shown; ``surrogate_regret`` bounds how far above the infimum their
    risk is (on the paper's scale), by the method named; ``note`` says what is special: ties at the
    minimiser, minimisers that are not unique, a risk that is not convex; ``check`` how it was
    verified by enumeration.
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
    tried: int
    seed: int
    question: dict[str, Any] | None = None
    verdict: ClassVar[str] = "counterexample"

    def __str__(self) -> str:
        scores = ", ".join(f"{score:.4g}" for score in self.minimiser)
        note = f"  Note: {self.note}.\n" if self.note else ""
        return (
            f"Counterexample: {self.subject} is not consistent.\n"
            f"  {self.distribution}\n"
            f"  The scores ({scores}) have surrogate regret at most {self.surrogate_regret:.1e} "
            f"({self.method}).\n"
            f"  Their {self.decoder} is {word(self.prediction)}, with expected loss "
            f"{self.prediction_risk:.4f}; the best is {word(self.bayes)}, with "
            f"{self.bayes_risk:.4f}: regret {self.regret:.4f}.\n"
            f"  Why: {self.reason}.\n{note}"
            f"  Checked by enumeration: {self.check}.\n"
            f"  Found among {self.tried} distributions (seed {self.seed})."
        )


@dataclass(frozen=True, eq=False)
class Undecided(_Answer):
    """No theorem covers the combination, and the search found nothing: that proves nothing.

    ``nearest`` is how far, in score (or in expected loss, after a likelihood), a set of regret
    above 0.002 stayed from being predicted; None if there was no such set.
    """

    tried: int
    worst_regret: float
    nearest: float | None
    seed: int
    question: dict[str, Any] | None = None
    verdict: ClassVar[str] = "undecided"

    def __str__(self) -> str:
        near = "no set was wrong"
        if self.nearest is not None:
            near = f"a wrong set came within {self.nearest:.2g} of being predicted"
        return (
            f"Undecided: no theorem covers {self.subject}, and no counterexample was found.\n"
            f"  Tried {self.tried} distributions (seed {self.seed}); the largest regret at "
            f"surrogate regret 0 was {self.worst_regret:.1e}, and {near}. That proves nothing."
        )


Verdict = Certificate | Counterexample | Undecided


def from_dict(values: dict[str, Any]) -> Verdict:
    """The verdict that `to_dict` wrote."""
    if not isinstance(values, dict):
        raise ValueError(f"a verdict is read from a dictionary, not from a {type(values).__name__}")
    kinds = {kind.verdict: kind for kind in (Certificate, Counterexample, Undecided)}
    name = values.get("verdict")
    kind = kinds.get(name) if isinstance(name, str) else None
    if kind is None:
        raise ValueError(f"a verdict is one of {', '.join(map(repr, kinds))}, not {name!r}")
    given = {}
    for field in fields(kind):
        if field.name in values:
            given[field.name] = _read(str(name), field.name, str(field.type), values[field.name])
        elif field.default is MISSING:
            raise ValueError(f"this is no {name}: it is without {field.name!r}")
    return kind(**given)


def to_json(verdict: Any) -> str:
    """A verdict as one line of JSON."""
    return json.dumps(verdict.to_dict())


def _written(value: Any) -> Any:
    """A field as a plain value."""
    if isinstance(value, Gamma | Distribution):
        return value.to_dict()
    return list(value) if isinstance(value, tuple) else value


def _read(verdict: str, name: str, kind: str, value: Any) -> Any:
    """A field from its plain value, by the kind that its annotation names."""
    if value is None and kind.endswith("| None"):
        return None
    try:
        return _READERS[kind.removesuffix(" | None")](value)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise ValueError(
            f"this is no {verdict}: its {name!r} is {value!r} ({type(error).__name__}: {error})"
        ) from error


def _exactly(kind: type, value: Any) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"a {kind.__name__} is expected")
    return value


_READERS = {
    "str": lambda value: _exactly(str, value),
    "int": lambda value: _exactly(int, value),
    "float": float,
    "Gamma": Gamma.from_dict,
    "Distribution": Distribution.from_dict,
    "tuple[float, ...]": lambda value: tuple(map(float, value)),
    "tuple[int, ...]": lambda value: tuple(map(int, value)),
    "dict[str, Any]": lambda value: _exactly(dict, value),
}

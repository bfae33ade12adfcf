"""What `certify` answers: a certificate, a counterexample, or that it could not decide.

All three print as words and turn into plain values and back, for files of results. They are equal
if their plain values are. ``question`` has the parameters of target, surrogate and space as plain
values, so that a file says what was asked; None in files written before there was one.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar

from setwise.consistency.bounds import Gamma
from setwise.consistency.distribution import Distribution, word


class _ByValue(ABC):
    """Equal where all that is told is equal."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The verdict in plain values."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.to_dict() == other.to_dict()  # type: ignore

    def __hash__(self) -> int:
        return hash(json.dumps(self.to_dict(), sort_keys=True))


@dataclass(frozen=True, eq=False)
class Certificate(_ByValue):
    """A theorem that covers the combination, and a search that did not contradict it.

    ``gamma`` is the theorem's bound on the paper's scale, None where it has no rate.
    ``worst_ratio`` is the largest ratio of regret to bound met, ``worst_regret`` the largest regret
    at surrogate regret 0, over ``tried`` distributions.
    """

    target: str
    surrogate: str
    space: str
    scores: str
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
        lines = [
            f"Certificate: {_subject(self)} is consistent.",
            f"  Theorem {self.theorem}, {self.source}: {self.statement}",
            f"  It applies: {self.reason}.",
        ]
        if self.gamma is None:
            lines.append("  The theorem has no rate.")
        else:
            lines.append(
                f"  Bound: regret <= {self.gamma} at surrogate regret t{self.gamma.scales}."
            )
            lines.append(f"  Largest ratio of regret to bound met: {self.worst_ratio:.4f}.")
        lines.append(
            f"  Searched {self.tried} distributions (seed {self.seed}); the largest regret at "
            f"surrogate regret 0 was {self.worst_regret:.1e}."
        )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Its fields as plain values."""
        gamma = None if self.gamma is None else self.gamma.to_dict()
        return {"verdict": self.verdict} | _plain(self) | {"gamma": gamma}


@dataclass(frozen=True, eq=False)
class Counterexample(_ByValue):
    """A distribution for which the surrogate's minimiser predicts a set that is not best.

    ``minimiser`` are the scores shown; ``surrogate_regret`` bounds how far above the infimum their
    risk is (on the paper's scale), by the method named; ``note`` says what is special: ties at the
    minimiser, minimisers that are not unique, a risk that is not convex; ``check`` how it was
    verified by enumeration.
    """

    target: str
    surrogate: str
    space: str
    scores: str
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
        lines = [
            f"Counterexample: {_subject(self)} is not consistent.",
            f"  {self.distribution}",
            f"  The scores ({scores}) have surrogate regret at most {self.surrogate_regret:.1e} "
            f"({self.method}).",
            f"  Their {self.decoder} is {word(self.prediction)}, with expected loss "
            f"{self.prediction_risk:.4f}; the best is {word(self.bayes)}, with "
            f"{self.bayes_risk:.4f}: regret {self.regret:.4f}.",
            f"  Why: {self.reason}.",
        ]
        if self.note:
            lines.append(f"  Note: {self.note}.")
        lines.append(f"  Checked by enumeration: {self.check}.")
        lines.append(f"  Found among {self.tried} distributions (seed {self.seed}).")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Its fields as plain values."""
        values = _plain(self) | {"distribution": self.distribution.to_dict()}
        return {"verdict": self.verdict} | values


@dataclass(frozen=True, eq=False)
class Undecided(_ByValue):
    """No theorem covers the combination, and the search found nothing: that proves nothing.

    ``nearest`` is how far, in score (or in expected loss, after a likelihood), a set of regret
    above 0.002 stayed from being predicted; None if there was no such set.
    """

    target: str
    surrogate: str
    space: str
    scores: str
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
            f"Undecided: no theorem covers {_subject(self)}, and no counterexample was found.\n"
            f"  Tried {self.tried} distributions (seed {self.seed}); the largest regret at "
            f"surrogate regret 0 was {self.worst_regret:.1e}, and {near}. That proves nothing."
        )

    def to_dict(self) -> dict[str, Any]:
        """Its fields as plain values."""
        return {"verdict": self.verdict} | _plain(self)


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
            given[field.name] = _read(name, field.name, str(field.type), values[field.name])
        elif field.default is MISSING:
            raise ValueError(f"this is no {name}: it is without {field.name!r}")
    return kind(**given)


def to_json(verdict: Verdict) -> str:
    """A verdict as one line of JSON."""
    return json.dumps(verdict.to_dict())


def _subject(verdict: Verdict) -> str:
    kind = "one score a label" if verdict.scores == "labelwise" else "one score a label set"
    return f"{verdict.surrogate} for {verdict.target} on {verdict.space} with {kind}"


def _plain(verdict: Verdict) -> dict[str, Any]:
    values = {field.name: getattr(verdict, field.name) for field in fields(verdict)}
    return {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}


def _read(verdict: Any, name: str, kind: str, value: Any) -> Any:
    """A field from its plain value."""
    if value is None and kind.endswith("| None"):
        return None
    try:
        return _READERS[kind.removesuffix(" | None")](value)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise ValueError(
            f"this is no {verdict}: its {name!r} is {value!r} ({type(error).__name__}: {error})"
        ) from error


def _exactly(kind: type) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if not isinstance(value, kind) or isinstance(value, bool):
            raise TypeError(f"a {kind.__name__} is expected")
        return value

    return read


_READERS: dict[str, Callable[[Any], Any]] = {
    "str": _exactly(str),
    "int": _exactly(int),
    "float": float,
    "Gamma": Gamma.from_dict,
    "Distribution": Distribution.from_dict,
    "tuple[float, ...]": lambda value: tuple(map(float, value)),
    "tuple[int, ...]": lambda value: tuple(map(int, value)),
    "dict[str, Any]": _exactly(dict),
}

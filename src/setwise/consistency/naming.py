"""Surrogates and spaces by name, as the command line and `certify` take them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from setwise.consistency.conditional import CompSumRisk, ConstrainedRisk, RelevanceRisk
from setwise.consistency.identity import in_words, plain, same_values
from setwise.spaces.catalog import Catalog
from setwise.spaces.cube import Cube
from setwise.spaces.forest import Forest
from setwise.spaces.paths import Paths
from setwise.spaces.sized import Sized, Slice
from setwise.spaces.space import Space, all_sets
from setwise.surrogates.binary_relevance import BinaryRelevance
from setwise.surrogates.comp_sum import CompSum
from setwise.surrogates.constrained import Constrained
from setwise.surrogates.names import COMP_SUM, CONSTRAINED, DEFAULT_Q, SURROGATES
from setwise.targets.at_k import PrecisionAtK, RecallAtK
from setwise.targets.registry import get_target
from setwise.targets.table import TableTarget
from setwise.targets.target import Target
from setwise.targets.tree_distance import TreeDistance
from setwise.taxonomy import parent_vector
from setwise.validation import real_number, whole_number

SPACES = ("cube", "slice", "sized", "chain", "closed", "paths", "list")


@dataclass(frozen=True, eq=False)
class Choice:
    """A surrogate as its conditional risk.

    ``target`` is the one the surrogate is built for, None for the one judged by (the usual case);
    ``is_likelihood`` that scores are trained as a log-likelihood and decoded for the target.
    """

    name: str
    risk: CompSumRisk | ConstrainedRisk | RelevanceRisk
    target: Target | None = None
    space: Space | None = None
    is_likelihood: bool = False

    def __str__(self) -> str:
        words = self.name.replace("_", " ")
        if isinstance(self.risk, CompSumRisk) and 0.0 < self.risk.q < 1.0:
            words += f" (q = {self.risk.q:g})"
        if isinstance(self.risk, RelevanceRisk) and self.risk.margin != "logistic":
            words += f" ({self.risk.margin.replace('_', ' ')})"
        if isinstance(self.risk, ConstrainedRisk) and self.risk.rho != 1.0:
            words += f" (rho = {self.risk.rho:g})"
        return words if self.target is None else f"{words} [{in_words(self.target)}]"

    @property
    def parameters(self) -> dict[str, Any]:
        """What makes it the loss it is, as plain values; the target only if it is another one."""
        own: dict[str, Any] = {"name": self.name}
        if isinstance(self.risk, CompSumRisk):
            own["q"] = self.risk.q
        else:
            own["margin"] = self.risk.margin
        if isinstance(self.risk, ConstrainedRisk) and self.risk.margin == "rho":
            own["rho"] = self.risk.rho
        return own | {"target": plain(self.target)}


def chosen_surrogate(surrogate: Any, q: float = DEFAULT_Q) -> Choice:
    """A surrogate by one of `SetClassifier`'s names, or from a surrogate object.

    ``q`` is that of the generalised cross-entropy by name. An object keeps the target it was built
    for: then a loss made for one target may be judged by another.
    """
    if isinstance(surrogate, CompSum):
        names = {value: name for name, value in COMP_SUM.items()}
        name = names.get(surrogate.q, "generalized_cross_entropy" if surrogate.q > 0 else "")
        name = name or f"comp-sum q = {surrogate.q:g}"
        return Choice(name, CompSumRisk(surrogate.q), surrogate.target, surrogate.space)
    if isinstance(surrogate, Constrained):
        risk = ConstrainedRisk(surrogate.margin, surrogate.rho)
        return Choice(f"constrained_{surrogate.margin}", risk, surrogate.target, surrogate.space)
    if isinstance(surrogate, BinaryRelevance):
        return Choice("binary_relevance", RelevanceRisk(surrogate.margin))
    if surrogate not in SURROGATES:
        names = ", ".join(map(repr, SURROGATES))
        raise ValueError(
            f"surrogate must be one of {names} or a surrogate object, not {surrogate!r}"
        )
    if surrogate == "likelihood":
        return Choice(surrogate, CompSumRisk(0.0, "law"), is_likelihood=True)
    if surrogate == "binary_relevance":
        return Choice(surrogate, RelevanceRisk())
    if surrogate == "generalized_cross_entropy":
        q = real_number(q, "q", 0.0, 1.0)
        if not 0.0 < q < 1.0:
            raise ValueError(f"q must be above 0 and below 1 for {surrogate}, not {q:g}")
        return Choice(surrogate, CompSumRisk(q))
    if surrogate in COMP_SUM:
        return Choice(surrogate, CompSumRisk(COMP_SUM[surrogate]))
    return Choice(surrogate, ConstrainedRisk(CONSTRAINED[surrogate]))


def chosen_space(target: Target, choice: Choice, space: Space | None) -> Space:
    """The space given, that of the surrogate, or a small one the target is at home on."""
    if space is not None and not isinstance(space, Space):
        raise ValueError(f"a space is an object such as Cube(3), but this is {space!r}")
    if space is not None and choice.space is not None and not same_values(space, choice.space):
        raise ValueError(
            f"the surrogate is built for {in_words(choice.space)}, but the space is "
            f"{in_words(space)}; leave the space out, or build the surrogate for it"
        )
    if space is None:
        space = choice.space
    if space is not None:
        return space
    if isinstance(target, PrecisionAtK | RecallAtK):
        return Slice(target.k + 2, target.k)
    if isinstance(target, TreeDistance):
        return Forest(target.parents, closed=True)
    if isinstance(target, TableTarget):
        return Catalog(target.sets)
    weights = getattr(target, "weights", None)
    return Cube(3 if weights is None else len(weights))


def named_target(name: str, n_labels: int | None = None, parents: Any = None) -> Target:
    """A target by its name, or "tree" for the distance in a taxonomy of the given parents.

    Without parents, label 0 stands over all others, of which there are two by default.
    """
    if name != "tree":
        return get_target(name)
    return TreeDistance(_taxonomy(n_labels, parents))


def named_space(
    name: str | None, n_labels: int | None = None, parents: Any = None, target: Target | None = None
) -> Space:
    """A small space by name, or the one the target is at home on.

    ``slice``: two labels, or the k of a target @k; ``sized``: the empty and the full set raised by
    1; ``chain``: neighbours raised by 1 where they agree; ``closed`` and ``paths``: label 0 over
    all others unless ``parents`` are given; ``list``: every second label set, those with the last
    label.
    """
    at_k = isinstance(target, PrecisionAtK | RecallAtK)
    if name is None:
        name = "slice" if at_k else "closed" if isinstance(target, TreeDistance) else "cube"
    if n_labels is None and isinstance(target, TreeDistance):
        n_labels = len(target.parents)
    if n_labels is None and parents is None and (at_k or name == "slice"):
        n_labels = target.k + 2 if at_k else 4
    tree = _taxonomy(n_labels, parents)
    count = len(tree)
    if name == "cube":
        return Cube(count)
    if name == "slice":
        return Slice(count, target.k if at_k else min(2, count))
    if name == "sized":
        ends = np.isin(np.arange(count + 1), (0, count))
        return Sized(count, np.where(ends, 1.0, 0.0))
    if name == "chain":
        return Forest.chain(count, np.tile(np.eye(2), (count, 1, 1)))
    if name == "closed":
        return Forest(tree, closed=True)
    if name == "paths":
        return Paths(tree)
    if name == "list":
        return Catalog(all_sets(count)[1::2])
    raise ValueError(f"there is no space named {name!r}; known are {', '.join(SPACES)}")


def _taxonomy(n_labels: int | None, parents: Any) -> np.ndarray:
    """The parents given, or label 0 over all others; three labels unless their number is given."""
    if parents is None:
        count = 3 if n_labels is None else whole_number(n_labels, "the number of labels", 1)
        return parent_vector([-1] + [0] * (count - 1))
    tree = parent_vector(parents)
    if n_labels is not None and n_labels != len(tree):
        raise ValueError(
            f"parents must have an entry for each of the {n_labels} labels, but it has {len(tree)}"
        )
    return tree

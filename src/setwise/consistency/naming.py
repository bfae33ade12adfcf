"""Targets, surrogates and spaces: chosen by name, and told apart by their parameters.

Names leave parameters out: two targets may both print as "f1" and differ in what nothing is worth.
A claim about one of them must not be made of the other, so their parameters are compared
(`same_values`, `is_same_target`), written as plain values (`plain`) and put in words (`in_words`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from setwise.consistency.conditional import CompSumRisk, ConstrainedRisk, Risk
from setwise.spaces import SPACES, Catalog, Slice
from setwise.spaces.space import Array, Space, all_sets
from setwise.surrogates import BinaryRelevance, CompSum, Constrained
from setwise.surrogates.comp_sum import inner_power
from setwise.surrogates.names import COMP_SUM, CONSTRAINED, DEFAULT_Q, SURROGATES
from setwise.targets import TreeDistance, get_target
from setwise.targets.registry import known_name
from setwise.targets.target import Target, hierarchy_of, predicted_size
from setwise.taxonomy import parent_vector
from setwise.validation import whole_number

# With at most this many labels and predicted sets, targets are compared loss by loss.
FEW_LABELS, FEW_SETS = 8, 256
# Parameters that a name says already, or that change no law.
SAID = {
    "n_labels", "k", "beta", "closed", "leaves_only", "numerator", "denominator", "function",
    "joint",
}  # fmt: skip
# Arrays that say nothing where their finite entries are all alike.
EVEN = ("bias", "potentials", "lengths")
# Arrays of more entries are shown by their first.
MOST_SHOWN = 12


def _parameters(value: Any) -> dict[str, Any] | None:
    """The fields of a dataclass; one that is not compared, such as names, changes no law."""
    if not is_dataclass(value) or isinstance(value, type):
        return None
    return {f.name: getattr(value, f.name) for f in fields(value) if f.init and f.compare}


def same_values(first: Any, second: Any) -> bool:
    """Whether two objects are one, or of one type with the same parameters; functions only if one.

    Examples
    --------
    >>> from setwise.targets import FBeta
    >>> same_values(FBeta(1.0), FBeta(1.0)), same_values(FBeta(1.0), FBeta(1.0, empty=0.0))
    (True, False)
    """
    if first is second or type(first) is not type(second) or callable(first):
        return first is second
    own, other = _parameters(first), _parameters(second)
    if own is None or other is None:
        return bool(np.array_equal(first, second))
    return all(same_values(own[name], other[name]) for name in own)


def plain(value: Any) -> Any:
    """An object as its type and parameters, in what JSON can hold; -inf is a word.

    Examples
    --------
    >>> from setwise.targets import Jaccard
    >>> plain(Jaccard())
    {'type': 'Jaccard', 'empty': 1.0}
    """
    value = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    if (own := _parameters(value)) is not None:
        return {"type": type(value).__name__} | {name: plain(one) for name, one in own.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    is_plain = value is None or isinstance(value, bool | int | float | str)
    return value if is_plain else getattr(value, "__name__", str(value))


def in_words(value: Any) -> str:
    """The name of an object, and those of its parameters that are not the usual ones.

    Examples
    --------
    >>> from setwise.targets import FBeta, Hamming
    >>> in_words(FBeta(1.0)), in_words(FBeta(1.0, empty=0.0)), in_words(Hamming([1, 3]))
    ('f1', 'f1_samples (empty 0)', 'weighted hamming (weights 1, 3)')
    """
    shown = []
    for name, own in (_parameters(value) or {}).items():
        usual = type(value).__dataclass_fields__[name].default
        if name in SAID or own is None or (np.ndim(own) == 0 and own == usual):
            continue
        if _parameters(own) is not None:
            shown += [f"{name} {in_words(own)}"] if in_words(own) != str(own) else []
            continue
        if name in EVEN and np.ptp(own[np.isfinite(own)]) == 0.0:
            continue
        is_sets = np.ndim(own) == 2 and np.isin(own, (0, 1)).all()
        words = list(map(word, own)) if is_sets else [f"{one:g}" for one in np.ravel(own)]
        more = f", ... {len(words)} in all" if len(words) > MOST_SHOWN else ""
        shown.append(f"{name} {', '.join(words[:MOST_SHOWN])}{more}")
    return f"{value} ({'; '.join(shown)})" if shown else str(value)


def word(labels: Any) -> str:
    """A label set in short: 0110."""
    return "".join(str(int(label)) for label in labels)


# ------------------------------------------------------------------------------------- targets


def loss_matrix(target: Target, truths: Array, sets: Array) -> Array:
    """The loss of each set (a column) against each truth (a row), (m, K)."""
    return np.column_stack([target.loss(np.tile(row, (len(truths), 1)), truths) for row in sets])


def is_same_target(first: Target, second: Target, space: Space, own_truths: bool = False) -> bool:
    """Whether two targets are provably the same on a space, whatever the true label set.

    By their parameters, those of their measures, or on few labels loss by loss; True is proof,
    False that there is none. ``own_truths`` says that true label sets are those of the space.

    Examples
    --------
    >>> from setwise.spaces import Cube
    >>> from setwise.targets import FBeta
    >>> is_same_target(FBeta(1.0), FBeta(1.0, empty=0.0), Cube(2))
    False
    """
    if same_values(first, second):
        return True
    first, second, labels = first.on(space), second.on(space), space.n_labels
    measures = (target.measure(labels, "loss") for target in (first, second))
    if same_values(first, second) or same_values(*measures):
        return True
    if not space.has_at_most(FEW_SETS):
        return False
    sets = truths = space.enumerate()
    if not own_truths:
        # A table judges the sets it lists only.
        if labels > FEW_LABELS or "table" in (first.form, second.form):
            return False
        truths = all_sets(labels)
    return np.array_equal(loss_matrix(first, truths, sets), loss_matrix(second, truths, sets))


# ---------------------------------------------------------------------------------- surrogates


@dataclass(frozen=True, eq=False)
class Choice:
    """A surrogate as its conditional risk.

    ``target`` is the one the surrogate is built for, None for the one judged by (the usual case);
    ``is_likelihood`` that scores are trained as a log-likelihood and decoded for the target;
    ``by_label`` that the risk is that of each label by itself (binary relevance), where misses and
    false alarms have the ``costs``, if any.
    """

    name: str
    risk: Risk
    target: Target | None = None
    space: Space | None = None
    is_likelihood: bool = False
    by_label: bool = False
    costs: Any = None

    @property
    def q(self) -> float | None:
        """The member of the comp-sum family, None for other losses."""
        return None if self.by_label else getattr(self.risk, "q", None)

    @property
    def margin(self) -> str | None:
        """The margin function; the comp-sum risk of a single label is the logistic one."""
        return getattr(self.risk, "margin", "logistic" if self.by_label else None)

    def log_unit(self, log_size: float) -> float:
        """Log of a regret on the paper's scale over that on the unit scale, |Y|^(1-q) or |Y|."""
        return 0.0 if self.is_likelihood or self.by_label else (1.0 - (self.q or 0.0)) * log_size

    def __str__(self) -> str:
        words, rho = self.name.replace("_", " "), getattr(self.risk, "rho", 1.0)
        if self.q is not None and 0.0 < self.q < 1.0:
            words += f" (q = {self.q:g})"
        if self.by_label and self.margin != "logistic":
            words += f" ({str(self.margin).replace('_', ' ')})"
        if self.costs is not None:
            words += f" ({in_words(self.costs)})"
        if rho != 1.0:
            words += f" (rho = {rho:g})"
        return words if self.target is None else f"{words} [{in_words(self.target)}]"

    @property
    def parameters(self) -> dict[str, Any]:
        """What makes it the loss it is, as plain values; the target only if it is another one."""
        own: dict[str, Any] = {"margin": self.margin} if self.q is None else {"q": self.q}
        if self.margin == "rho":
            own["rho"] = getattr(self.risk, "rho", 1.0)
        own |= {} if self.costs is None else {"costs": plain(self.costs)}
        return {"name": self.name} | own | {"target": plain(self.target)}


def chosen_surrogate(surrogate: Any, q: float = DEFAULT_Q) -> Choice:
    """A surrogate by one of `SetClassifier`'s names, or from a surrogate object.

    ``q`` is that of the generalised cross-entropy by name. An object keeps the target it was built
    for: then a loss made for one target may be judged by another.
    """
    if isinstance(surrogate, CompSum):
        names = {value: name for name, value in COMP_SUM.items()}
        other = f"comp-sum q = {surrogate.q:g}"
        name = names.get(surrogate.q, "generalized_cross_entropy" if surrogate.q > 0 else other)
        return Choice(name, CompSumRisk(surrogate.q), surrogate.target, surrogate.space)
    if isinstance(surrogate, Constrained):
        rho = surrogate.rho if surrogate.margin == "rho" else 1.0
        risk = ConstrainedRisk(surrogate.margin, rho)
        return Choice(f"constrained_{surrogate.margin}", risk, surrogate.target, surrogate.space)
    if surrogate == "binary_relevance" or isinstance(surrogate, BinaryRelevance):
        margin = getattr(surrogate, "margin", "logistic")
        risk = CompSumRisk(0.0) if margin == "logistic" else ConstrainedRisk(margin)
        costs = getattr(surrogate, "costs", None)
        return Choice("binary_relevance", risk, by_label=True, costs=costs)
    if surrogate not in SURROGATES:
        raise ValueError(
            f"surrogate must be one of {', '.join(map(repr, SURROGATES))} or a surrogate object, "
            f"not {surrogate!r}"
        )
    if surrogate in CONSTRAINED:
        return Choice(surrogate, ConstrainedRisk(CONSTRAINED[surrogate]))
    member = COMP_SUM.get(surrogate, 0.0)
    if surrogate == "generalized_cross_entropy":
        member = inner_power(q)
    return Choice(surrogate, CompSumRisk(member), is_likelihood=surrogate == "likelihood")


# -------------------------------------------------------------------------------------- spaces


def chosen_space(target: Target, choice: Choice, space: Space | None) -> Space:
    """The space given, that of the surrogate, or a small one the target is at home on."""
    if space is not None and not isinstance(space, Space):
        raise ValueError(f"a space is an object such as Cube(3), but this is {space!r}")
    if space is not None and choice.space is not None and not same_values(space, choice.space):
        raise ValueError(
            f"the surrogate is built for {in_words(choice.space)}, but the space is "
            f"{in_words(space)}; leave the space out, or build the surrogate for it"
        )
    if space is not None or choice.space is not None:
        return space or choice.space  # type: ignore
    if target.form == "table":
        return Catalog(target.sets)  # type: ignore
    weights = getattr(target, "weights", None)
    return named_space(None, None if weights is None else len(weights), target=target)


def named_target(name: str, n_labels: int | None = None, parents: Any = None) -> Target:
    """A target by its name, or "tree" for the distance in a taxonomy of the given parents.

    Without parents, label 0 stands over all others, of which there are two by default.
    """
    is_tree = known_name(name) == "tree"
    return TreeDistance(_taxonomy(n_labels, parents)) if is_tree else get_target(name)


def named_space(
    name: str | None, n_labels: int | None = None, parents: Any = None, target: Target | None = None
) -> Space:
    """A small space by name, or the one the target is at home on.

    ``slice``: two labels, or the k of a target @k; ``sized``: the empty and the full set raised by
    1; ``chain``: neighbours raised by 1 where they agree; ``closed`` and ``paths``: label 0 over
    all others unless ``parents`` are given; ``list``: every second label set, those with the last
    label.
    """
    size, has_tree = None, False
    if target is not None:
        size, has_tree = predicted_size(target), hierarchy_of(target) is not None
    parents = target.parents if parents is None and has_tree else parents  # type: ignore
    name = name or ("slice" if size else "closed" if has_tree else "cube")
    if n_labels is None and parents is None and (size or name == "slice"):
        n_labels = size + 2 if size else 4
    tree = _taxonomy(n_labels, parents)
    count = len(tree)
    if name not in SPACES:
        raise ValueError(f"there is no space named {name!r}; known are {', '.join(SPACES)}")
    return Slice(count, size) if name == "slice" and size else SPACES[name](tree)


def _taxonomy(n_labels: int | None, parents: Any) -> Array:
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

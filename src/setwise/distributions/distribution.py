"""What every distribution over label sets answers, and mixtures of distributions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from setwise.validation import label_matrix, real_array

Array = NDArray[Any]

# Expected losses, and probabilities, that differ by no more count as equal. (Losses by quadrature
# have an error of up to 1e-10; on few labels, and between sizes that share nodes, a far smaller.)
TIE = 1e-11
# How far the probabilities of a row, or the weights of a mixture, may be from a sum of 1.
SUM_ERROR = 1e-5


class Ranked(NamedTuple):
    """Labels that can be ranked: the higher its value, the likelier a label, all else equal.

    ``values`` (n, l) are the probabilities of independent labels where ``bias`` is None. Otherwise
    they are scores, and a set weighs exp(2 · (their sum over it) + bias[its size]), bias (K + 1,).
    ``outside`` (n, 2): the expected number of true labels beside these, which are independent too,
    and the probability of each of them; 0 where their number is taken for a Poisson one.
    """

    values: Any
    bias: Array | None
    outside: Array | None = None


@runtime_checkable
class Distribution(Protocol):
    """A distribution over the label sets of ``n_labels`` labels for each of n rows.

    Every distribution has marginals and the probability of a set. The other questions are for
    decoders, and answered by None where there is no exact answer at a bearable cost.

    Examples
    --------
    >>> from setwise.distributions import Independent
    >>> rows = Independent([[0.8, 0.4]])
    >>> isinstance(rows, Distribution), len(rows), rows.n_labels
    (True, 1, 2)
    """

    @property
    def n_labels(self) -> int: ...

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice | Array) -> Distribution:
        """The same of some rows."""
        ...

    def marginals(self) -> Any:
        """P(label in the set), (n, l); CSR where it was given so."""
        ...

    def log_probability(self, sets: Any) -> Array:
        """log P of one set a row, -inf where impossible, (n,)."""
        ...

    def tempered(self, power: float) -> Distribution | None:
        """P(y) to that power, scaled to add up to 1: sharper above 1, flatter below."""
        return None

    def ranked(self) -> Ranked | None:
        """What ranks the labels, whatever the size of a set."""
        return None

    def listed(self) -> tuple[Array, Array] | None:
        """All possible sets, (K, l), and the probability of each, (n, K)."""
        return None

    def label_sizes(self) -> tuple[Array, Array] | None:
        """P(label in the set, set of size s), (n, K + 1, l), and P(set of size s), (n, K + 1)."""
        return None

    def most_likely(self, second: bool) -> tuple[Array, Array, Array] | None:
        """The most likely sets, (n, l), and log P of each and of the next likely one, (n,).

        Without ``second`` the last has no meaning; -inf where no other set is possible.
        """
        return None


@dataclass(frozen=True, eq=False)
class Mixture(Distribution):
    """A weighted mean of distributions over the label sets of the same rows and labels.

    P(y) = sum_m weights_m P_m(y). Marginals, P(label, size) and the probabilities of listed sets
    are weighted means as well; members that all list their sets give a list of every set of
    theirs, in the order in which it is first met. A mixture of one member is that member.

    Parameters
    ----------
    distributions : sequence of m distributions
        One for each model, say; of the same number of rows and labels.
    weights : array of shape (m,)
        Nonnegative, with a sum of 1.

    Examples
    --------
    >>> from setwise.distributions import Independent
    >>> sure, unsure = Independent([[0.9, 0.2]]), Independent([[0.5, 0.4]])
    >>> Mixture([sure, unsure], [0.75, 0.25]).marginals()
    array([[0.8 , 0.25]])
    """

    distributions: Sequence[Any]
    weights: Any

    def __post_init__(self):
        members = tuple(self.distributions) if isinstance(self.distributions, list | tuple) else ()
        if not members or not all(isinstance(member, Distribution) for member in members):
            given = [type(member).__name__ for member in members] or type(self.distributions)
            raise ValueError(
                f"a mixture needs a sequence of distributions such as Independent(probability), "
                f"but it has {given}"
            )
        shapes = [(len(member), member.n_labels) for member in members]
        if len(set(shapes)) > 1:
            raise ValueError(
                f"the distributions of a mixture must have the same rows and labels, but their "
                f"shapes are {', '.join(map(str, shapes))}"
            )
        weights = real_array(self.weights, "weights").astype(np.float64)
        right = weights.shape == (len(members),) and bool((weights >= 0.0).all())
        if not right or not abs(weights.sum() - 1.0) <= SUM_ERROR:
            raise ValueError(
                f"weights must have shape ({len(members)},), one for each distribution, be "
                f"nonnegative and add up to 1, but they are {weights.tolist()}"
            )
        vars(self).update(distributions=members, weights=weights)

    @property
    def space(self) -> Any:
        """The space of the members, None where they have not the same one."""
        first, *others = (getattr(member, "space", None) for member in self.distributions)
        return first if all(_are_equal(first, other) for other in others) else None

    @property
    def is_sparse(self) -> bool:
        """Whether all members were given as CSR."""
        return all(getattr(member, "is_sparse", False) for member in self.distributions)

    @property
    def n_labels(self) -> int:
        return self.distributions[0].n_labels

    def __len__(self) -> int:
        return len(self.distributions[0])

    def __getitem__(self, rows) -> Mixture:
        return Mixture([member[rows] for member in self.distributions], self.weights)

    def marginals(self) -> Any:
        """The weighted mean of the members' marginals, (n, l)."""
        members = zip(self.weights, self.distributions, strict=True)
        return sum(weight * member.marginals() for weight, member in members)

    def log_probability(self, sets) -> Array:
        """log sum_m weights_m P_m(y), (n,)."""
        logs = np.array([member.log_probability(sets) for member in self.distributions])
        with np.errstate(divide="ignore"):
            return np.logaddexp.reduce(logs + np.log(self.weights)[:, None], axis=0)

    def ranked(self) -> Ranked | None:
        """That of a single member; in a mixture a label may be likelier in small sets only."""
        return self.distributions[0].ranked() if len(self.weights) == 1 else None

    def listed(self) -> tuple[Array, Array] | None:
        """Every set that a member lists; None unless all of them do."""
        lists = [member.listed() for member in self.distributions]
        return None if any(one is None for one in lists) else self._over(lists)

    def among_listed(self, most: int) -> tuple[Array, Array] | None:
        """The sets that a member lists, (K, l), and P of each given that it is one of them, (n, K).

        Lists of more than ``most`` sets are none. None where no member lists its sets, or one that
        does not cannot rank the labels.
        """
        lists = [
            member.listed() if is_listed(member, most) else None for member in self.distributions
        ]
        found = None if all(one is None for one in lists) else self._over(lists)
        if found is None:
            return None
        sets, posterior = found
        total = np.maximum(posterior.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        return sets, posterior / total

    def _over(self, lists: list[Any]) -> tuple[Array, Array] | None:
        """The sets of the members' lists, and P of each; None where a member cannot say it."""
        place: dict[bytes, int] = {}
        columns = [
            [place.setdefault(row.tobytes(), len(place)) for row in one[0]] if one else ()
            for one in lists
        ]
        sets = np.zeros((len(place), self.n_labels), np.uint8)
        for where, one in zip(columns, lists, strict=True):
            if one is not None:
                sets[where] = one[0]
        posterior = np.zeros((len(self), len(place)))
        members = zip(self.weights, columns, lists, self.distributions, strict=True)
        for weight, where, one, member in members:
            if one is not None:
                posterior[:, where] += weight * one[1]
            elif (logs := log_chances(member, sets)) is not None:
                posterior += weight * np.exp(logs)
            else:
                return None
        return sets, posterior

    def label_sizes(self) -> tuple[Array, Array] | None:
        """The weighted means of the members' P(label, size) and P(size)."""
        parts = [member.label_sizes() for member in self.distributions]
        if any(part is None for part in parts):
            return None
        width = max(size.shape[1] for _, size in parts)
        joint, size = (np.zeros((len(self), width, *more)) for more in ((self.n_labels,), ()))
        for weight, (own_joint, own_size) in zip(self.weights, parts, strict=True):
            joint[:, : own_joint.shape[1]] += weight * own_joint
            size[:, : own_size.shape[1]] += weight * own_size
        return joint, size

    def most_likely(self, second: bool) -> tuple[Array, Array, Array] | None:
        """That of a single member; of several it is not known without looking at every set."""
        return self.distributions[0].most_likely(second) if len(self.weights) == 1 else None

    def __str__(self) -> str:
        kinds = ", ".join(dict.fromkeys(str(member) for member in self.distributions))
        return f"a mixture of {len(self.distributions)} distributions ({kinds})"


def is_listed(law: Distribution, most: int) -> bool:
    """Whether a law lists its sets, and not more than so many."""
    found = law[:1].listed()
    return found is not None and len(found[0]) <= most


def log_chances(law: Distribution, sets: Array) -> Array | None:
    """log P of each of K sets, the same for all rows, (n, K); None where labels are not ranked."""
    ranked = law.ranked()
    if ranked is None:
        return None
    values = ranked.values if isinstance(ranked.values, np.ndarray) else ranked.values.toarray()
    inside, values = sets.T.astype(np.float64), values.astype(np.float64)
    if ranked.bias is None:
        likely = np.clip(values, np.finfo(np.float64).tiny, 1.0 - np.finfo(np.float64).eps)
        return np.log(likely) @ inside + np.log1p(-likely) @ (1.0 - inside)
    size, most = sets.sum(axis=1, dtype=np.int64), len(ranked.bias) - 1
    bias = np.where(size > most, -np.inf, ranked.bias[np.minimum(size, most)])
    logs = 2.0 * values @ inside + bias
    # The same sum for a set whose probability is known gives what all are divided by.
    known = int(np.argmax(bias))
    if bias[known] == -np.inf:
        return np.full(logs.shape, -np.inf)
    own = law.log_probability(np.broadcast_to(sets[known], (len(law), sets.shape[1])))
    return logs + (own - logs[:, known])[:, None]


def _are_equal(first: Any, second: Any) -> bool:
    """Whether two spaces are of one kind and were made from equal arguments; or are both None."""
    if first is second or type(first) is not type(second):
        return first is second
    names = [field.name for field in fields(first) if field.init]
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in names)


def one_set_a_row(sets: Any, distribution: Distribution) -> Array:
    """Label sets as 0/1, one for each row of a distribution, (n, l)."""
    checked = label_matrix(sets, distribution.n_labels, "sets")
    if len(checked) != len(distribution):
        raise ValueError(
            f"sets must have one row for each of the {len(distribution)} rows of the distribution, "
            f"but they have {len(checked)}"
        )
    return checked

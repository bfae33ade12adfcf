"""Label sets with interactions along the edges of a forest: chains, trees, hierarchies."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from setwise.spaces.closed import ClosedLaw
from setwise.spaces.expectation import Expectation, Mean, additive_mean, values_of
from setwise.spaces.forest_kernels import (
    Tree,
    likelihood_rows,
    log_partition_rows,
    moments_rows,
    most_likely_rows,
    sum_moments_rows,
)
from setwise.spaces.hierarchy import HierarchyExpectation
from setwise.spaces.nodes import Nodes
from setwise.spaces.shifted import shifted_mean
from setwise.spaces.space import (
    FEW,
    Array,
    Moments,
    Space,
    all_sets,
    refuse_large,
    tempered_values,
)
from setwise.targets.measure import Fraction, Of
from setwise.targets.target import Target
from setwise.taxonomy import tree_parents
from setwise.threads import for_rows
from setwise.validation import label_matrix, real_array, refuse_bad_weights, score_matrix


@dataclass(frozen=True, eq=False)
class Forest(Space):
    """Label sets whose weight has a 2x2 table on each edge between a label and its parent.

    z(y') = y' · h + sum over edges (i, parent) of potentials[i, y'_i, y'_parent]. Sum-product in
    two passes, O(l) a row. A chain is the paper's weighted automaton, see `Forest.chain`.

    Parameters
    ----------
    parents : array of shape (n_labels,), or Taxonomy
        The parent of each label, -1 for a root.
    potentials : array of shape (n_labels, 2, 2), optional
        ``potentials[i, state of i, state of its parent]``, finite or -inf (excluded); 0 by
        default. The entries of roots have no edge and are not used.
    closed : bool, default False
        Only sets closed upwards: a label brings its parent along.

    Examples
    --------
    >>> Forest([-1, 0, 0], closed=True).enumerate()
    array([[0, 0, 0],
           [1, 0, 0],
           [1, 0, 1],
           [1, 1, 0],
           [1, 1, 1]], dtype=uint8)
    """

    parents: Any
    potentials: Any = None
    closed: bool = False
    nodes: Nodes = field(init=False, repr=False)
    closed_law: ClosedLaw | None = field(init=False, repr=False)
    _log_size: float = field(init=False, repr=False)
    carries = frozenset({"additive", "subset", "linear_fractional"})

    def __post_init__(self):
        parents = tree_parents(self.parents)
        shape = (len(parents), 2, 2)
        given = np.zeros(shape) if self.potentials is None else self.potentials
        potentials = real_array(given, "potentials").astype(np.float64)
        if potentials.shape != shape:
            raise ValueError(
                f"potentials must have shape {shape}, [label, its state, its parent's state], "
                f"but its shape is {potentials.shape}"
            )
        refuse_bad_weights(potentials, "potentials")
        if self.closed:
            potentials[parents >= 0, 1, 0] = -np.inf
        object.__setattr__(self, "parents", parents)
        object.__setattr__(self, "potentials", potentials)
        nodes = Nodes.of(parents)
        object.__setattr__(self, "nodes", nodes)
        object.__setattr__(self, "closed_law", ClosedLaw.of(parents, nodes, potentials))
        object.__setattr__(self, "_log_size", self._count())

    @classmethod
    def chain(cls, n_labels: int, potentials=None) -> Forest:
        """Label i hangs on label i - 1: the paper's automaton, with weights between neighbours."""
        return cls(np.arange(n_labels) - 1, potentials)

    @property
    def is_closed(self) -> bool:
        """Whether only sets closed under the forest are allowed."""
        return self.closed

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.parents)

    @property
    def log_size(self) -> float:
        """log of the number of sets that no potential excludes."""
        return self._log_size

    @property
    def sizes(self) -> Array:
        """All sizes from 0 to the number of labels (exclusions are not worked out)."""
        return np.arange(self.n_labels + 1)

    @property
    def parameters(self) -> Array:
        """The potentials, flat, (4 l,)."""
        return self.potentials.ravel().copy()

    @property
    def feature_group(self) -> int:
        """4: each edge is in one of four states."""
        return 4

    def with_parameters(self, values) -> Forest:
        """The same forest with other potentials; what ``closed`` excludes stays excluded."""
        values = np.asarray(values, dtype=np.float64)
        if values.shape != (4 * self.n_labels,):
            raise ValueError(
                f"{self} has {4 * self.n_labels} parameters, but got shape {values.shape}"
            )
        return replace(self, potentials=values.reshape(-1, 2, 2))

    def tempered(self, q: float) -> Forest:
        """Finite potentials times q."""
        return replace(self, potentials=tempered_values(self.potentials, q))

    def log_partition(self, scores) -> Array:
        """A(h) by one pass from the leaves to the roots, (n,)."""
        checked = score_matrix(scores, self.n_labels)
        if self.closed_law is not None:
            return self.closed_law.marginals(checked)[0].astype(checked.dtype)
        return self._log_partition(checked, self.potentials).astype(checked.dtype)

    def marginals(self, scores) -> Array:
        """P(label in the set) by two passes, (n, l)."""
        if self.closed_law is None:
            return super().marginals(scores)
        return self.closed_law.marginals(score_matrix(scores, self.n_labels))[1]

    def most_likely(self, scores) -> Array:
        """Max-product; on a tie a label is left out, parents decided before children, (n, l)."""
        checked = score_matrix(scores, self.n_labels)
        out = np.empty(checked.shape, dtype=np.uint8)
        for_rows(most_likely_rows, len(out), checked, self._tree(), out)
        return out

    def enumerate(self) -> Array:
        """All label sets that no potential excludes, (|Y|, l)."""
        refuse_large(self)
        if self.n_labels > 20:
            return self._grow_sets()
        sets = all_sets(self.n_labels)
        return sets[self.contains(sets)]

    def contains(self, sets) -> Array:
        """Whether no potential excludes the set, (n,)."""
        sets = label_matrix(sets, self.n_labels, "sets")
        if self.closed_law is not None:
            return self.closed_law.contains(sets)
        child = np.flatnonzero(self.parents >= 0)
        values = self.potentials[child, sets[:, child], sets[:, self.parents[child]]]
        return (values > -np.inf).all(axis=1)

    def sample(self, n_samples: int, generator: np.random.Generator) -> Array:
        """Parents before children, each from its law given its parent, (n_samples, l)."""
        moments = self.tempered(0.0).moments(np.zeros((1, self.n_labels)), features=True)
        joint = moments.features.reshape(self.n_labels, 2, 2)
        sets = np.zeros((n_samples, self.n_labels), dtype=np.uint8)
        for label in self.nodes.labels[1:]:
            parent = self.parents[label]
            if parent < 0:
                present = np.full(n_samples, moments.on[0, label])
            else:
                mass = joint[label].sum(axis=0)
                present = (joint[label, 1] / np.where(mass > 0, mass, 1.0))[sets[:, parent]]
            sets[:, label] = generator.random(n_samples) < present
        return sets

    def expectation(self, target: Target | str) -> Expectation:
        """As every space; sums over labels on closed sets by passes of their own."""
        paired = self.paired(target)
        if paired.form == "additive" and self.closed_law is not None:
            return HierarchyExpectation(paired, self, self.closed_law)
        return super().expectation(paired)

    def features(self, sets: Array) -> Array:
        """1 at the state of each edge, (m, 4 l)."""
        out = np.zeros((len(sets), self.n_labels, 2, 2))
        child = np.flatnonzero(self.parents >= 0)
        rows = np.arange(len(sets))[:, None]
        out[rows, child, sets[:, child], sets[:, self.parents[child]]] = 1.0
        return out.reshape(len(sets), 4 * self.n_labels)

    def mean_scores(self, scores: Array, parameters: bool = True) -> tuple[Array, Array, Array]:
        """A and its gradients: E[y'] and the probability of each edge's states."""
        if self.closed_law is None or parameters:
            return super().mean_scores(scores, parameters)
        log_partition, on = self.closed_law.marginals(scores)
        return log_partition, 2.0 * on - 1.0, np.empty((len(scores), 0))

    def moments(
        self, scores: Array, values: tuple[Array, Array] | None = None, *, features: bool = False
    ) -> Moments:
        """Marginals and, with ``values`` = (on, off) of shape (n, l), the moments of their sum.

        A score of +-inf fixes its label; where no set of the space agrees with the fixed labels,
        the log-partition is -inf and every moment 0.
        """
        n, n_labels = scores.shape
        flat = (n, 4 * n_labels if features else 0)

        def room() -> tuple[Array, Array, Array, Array]:
            pairs = np.zeros((n if features else 0, n_labels, 2, 2))
            return np.empty(n), np.empty((n, n_labels)), np.empty((n, n_labels)), pairs

        law = room()
        if values is None:
            for_rows(moments_rows, n, scores, self._tree(), *law)
            return Moments(*law[:3], law[3].reshape(flat))
        sums = room()
        for_rows(sum_moments_rows, n, scores, self._tree(), *values, *law, *sums)
        return Moments(*law[:3], law[3].reshape(flat), *sums[:3], sums[3].reshape(flat))

    def mean(
        self, target: Target, scores: Array, y_true: Array, of: Of, parameters: bool = True
    ) -> Mean:
        """Sums over labels by the moments of a sum, quotients at shifted scores, others by a list.

        Quotients on a small space by the list too: that takes fewer passes, and no differences.
        """
        if target.form == "additive":
            m = self.moments(scores, values_of(target, y_true, of), features=parameters)
            return additive_mean(target, m, y_true, of)
        measure = target.measure(self.n_labels, of)
        if isinstance(measure, Fraction) and self.log_size > np.log(FEW) + 1e-9:
            return shifted_mean(self, measure, scores, y_true, parameters)
        return super().mean(target, scores, y_true, of, parameters)

    def negative_log_likelihood(
        self, scores: Array, sets: Array, parameters: bool = True
    ) -> tuple[Array, Array, Array]:
        """By one pass up and one down; inf for a set outside the support."""
        if self.closed_law is not None:
            value, by_score = self.closed_law.negative_log_likelihood(scores, sets)
            nothing = np.empty((len(scores), 0))
            by_parameter = self.closed_law.by_parameters(by_score) if parameters else nothing
            return value, by_score, by_parameter
        n, n_labels = scores.shape
        value, by_score = np.empty(n), np.empty((n, n_labels))
        by_pair = np.empty((n if parameters else 0, n_labels, 2, 2))
        for_rows(likelihood_rows, n, scores, sets, self._tree(), value, by_score, by_pair)
        return value, by_score, by_pair.reshape(n, 4 * n_labels if parameters else 0)

    def log_probability(self, scores: Array, sets: Array) -> Array:
        """log s(y') of one set a row, -inf outside the support, (n,)."""
        return -self.negative_log_likelihood(scores, sets, False)[0]

    def __str__(self) -> str:
        kind = ", closed=True" if self.closed else ""
        return f"Forest of {self.n_labels} labels{kind}"

    def _tree(self, potentials: Array | None = None) -> Tree:
        """What kernels take; without ``potentials`` those of the space."""
        given = self.potentials if potentials is None else potentials
        return Tree(self.nodes.labels[1:], self.parents, given)

    def _count(self) -> float:
        """log of the number of sets; refused if there are none."""
        if self.closed_law is not None:
            return self.closed_law.log_size
        nothing, flat = np.zeros((1, self.n_labels)), tempered_values(self.potentials, 0.0)
        size = float(self._log_partition(nothing, flat)[0])
        if not np.isfinite(size):
            raise ValueError("potentials exclude every label set: a Forest needs at least one")
        return size

    def _log_partition(self, scores: Array, potentials: Array) -> Array:
        out = np.empty(len(scores))
        for_rows(log_partition_rows, len(out), scores, self._tree(potentials), out)
        return out

    def _grow_sets(self) -> Array:
        """List the sets label by label, parents first, dropping excluded beginnings."""
        sets = np.zeros((1, self.n_labels), dtype=np.uint8)
        for label in self.nodes.labels[1:]:
            with_label = sets.copy()
            with_label[:, label] = 1
            sets = np.vstack([sets, with_label])
            parent = self.parents[label]
            if parent >= 0:
                possible = self.potentials[label, sets[:, label], sets[:, parent]] > -np.inf
                sets = sets[possible]
        return sets[np.lexsort(sets.T[::-1])]

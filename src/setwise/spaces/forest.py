"""Label sets with interactions along the edges of a forest: chains, trees, hierarchies."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from setwise.spaces.closed import ClosedLaw
from setwise.spaces.nodes import Nodes
from setwise.spaces.space import (
    Array,
    Moments,
    all_sets,
    refuse_large,
    tempered_values,
)
from setwise.taxonomy import tree_parents
from setwise.threads import for_rows
from setwise.validation import label_matrix, real_array, refuse_bad_weights, score_matrix


@dataclass(frozen=True, eq=False)
class Forest:
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
    is_independent = False
    size_bias = None
    is_path = False
    is_joint = False

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
    def n_scores(self) -> int:
        """One score for each label."""
        return self.n_labels

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
        return self._run_log_partition(checked, self.potentials).astype(checked.dtype)

    def marginals(self, scores) -> Array:
        """P(label in the set) by two passes, (n, l)."""
        checked = score_matrix(scores, self.n_labels)
        if self.closed_law is not None:
            return self.closed_law.marginals(checked)[1]
        return self.moments(checked).on.astype(checked.dtype)

    def most_likely(self, scores) -> Array:
        """Max-product; on a tie a label is left out, parents decided before children, (n, l)."""
        from setwise.spaces.propagation import most_likely_rows

        checked = score_matrix(scores, self.n_labels)
        out = np.empty(checked.shape, dtype=np.uint8)
        for_rows(most_likely_rows, len(out), checked, *self._structure(), out)
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
        return ~np.isneginf(self.weight_of(sets))

    def weight_of(self, sets: Array) -> Array:
        """g of each set: the sum of its potentials, (n,)."""
        child = np.flatnonzero(self.parents >= 0)
        values = self.potentials[child, sets[:, child], sets[:, self.parents[child]]]
        return values.sum(axis=1)

    def features(self, sets: Array) -> Array:
        """1 at the state of each edge, (m, 4 l)."""
        out = np.zeros((len(sets), self.n_labels, 2, 2))
        child = np.flatnonzero(self.parents >= 0)
        rows = np.arange(len(sets))[:, None]
        out[rows, child, sets[:, child], sets[:, self.parents[child]]] = 1.0
        return out.reshape(len(sets), 4 * self.n_labels)

    def feature_gap(self, sets: Array, mean_features: Array) -> Array:
        """Features of one set a row less their means, accurate where the mean is near 1, (n, 4 l).

        An edge is in one of four states, so 1 - P(state) is the sum of the other three.
        """
        states = mean_features.reshape(len(sets), self.n_labels, 4)
        others = (states @ (1.0 - np.eye(4))).reshape(mean_features.shape)
        return np.where(self.features(sets) == 1.0, others, -mean_features)

    def mean_scores(self, scores: Array, parameters: bool = True) -> tuple[Array, Array, Array]:
        """A and its gradients: E[y'] and the probability of each edge's states."""
        if self.closed_law is not None and not parameters:
            log_partition, on = self.closed_law.marginals(scores)
            return log_partition, 2.0 * on - 1.0, np.empty((len(scores), 0))
        moments = self.moments(scores, features=parameters)
        return moments.log_partition, moments.on - moments.off, moments.features

    def moments(
        self, scores: Array, values: tuple[Array, Array] | None = None, features: bool = False
    ) -> Moments:
        """Marginals and, with ``values`` = (on, off) of shape (n, l), the moments of their sum.

        A score of +-inf fixes its label; where no set of the space agrees with the fixed labels,
        the log-partition is -inf and every moment 0.
        """
        from setwise.spaces.propagation import moments_rows, sum_moments_rows

        n, n_labels = scores.shape
        log_partition, on, off = np.empty(n), np.empty((n, n_labels)), np.empty((n, n_labels))
        pairs = np.zeros((n if features else 0, n_labels, 2, 2))
        flat = (n, 4 * n_labels if features else 0)
        common = (log_partition, on, off, pairs)
        if values is None:
            for_rows(moments_rows, n, scores, *self._structure(), *common)
            return Moments(log_partition, on, off, pairs.reshape(flat))
        total, total_on, total_off = np.empty(n), np.empty_like(on), np.empty_like(on)
        total_pairs = np.zeros_like(pairs)
        sums = (total, total_on, total_off, total_pairs)
        for_rows(sum_moments_rows, n, scores, *self._structure(), *values, *common, *sums)
        return Moments(
            log_partition, on, off, pairs.reshape(flat),
            total, total_on, total_off, total_pairs.reshape(flat),
        )  # fmt: skip

    def log_probability(self, scores: Array, sets: Array) -> Array:
        """log s(y') of one set a row, -inf outside the support, (n,)."""
        from setwise.spaces.propagation import log_probability_rows

        out = np.empty(len(scores))
        for_rows(log_probability_rows, len(out), scores, *self._structure(), sets, out)
        return out

    def __str__(self) -> str:
        kind = ", closed=True" if self.closed else ""
        return f"Forest of {self.n_labels} labels{kind}"

    def _structure(self) -> tuple[Array, Array, Array]:
        return self.nodes.labels[1:], self.parents, self.potentials

    def _count(self) -> float:
        """log of the number of sets; refused if there are none."""
        if self.closed_law is not None:
            return self.closed_law.log_size()
        nothing, flat = np.zeros((1, self.n_labels)), tempered_values(self.potentials, 0.0)
        size = float(self._run_log_partition(nothing, flat)[0])
        if not np.isfinite(size):
            raise ValueError("potentials exclude every label set: a Forest needs at least one")
        return size

    def _run_log_partition(self, scores: Array, potentials: Array) -> Array:
        from setwise.spaces.propagation import log_partition_rows

        out = np.empty(len(scores))
        order = self.nodes.labels[1:]
        for_rows(log_partition_rows, len(out), scores, order, self.parents, potentials, out)
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
        sets = sets[np.lexsort(sets.T[::-1])]
        return sets

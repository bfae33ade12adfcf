"""Root-to-node paths of a taxonomy: one label and its ancestors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from setwise.spaces.expectation import Expectation
from setwise.spaces.hierarchy import HierarchyExpectation
from setwise.spaces.listing import Listing
from setwise.spaces.nodes import Nodes
from setwise.spaces.path_kernels import (
    additive_rows,
    from_roots_rows,
    likelihood_rows,
    marginal_rows,
    to_roots_rows,
)
from setwise.spaces.space import Array, Moments, Space
from setwise.sparse import label_sums
from setwise.spelling import brief
from setwise.targets.target import Target
from setwise.taxonomy import forest_levels, tree_parents
from setwise.threads import for_rows
from setwise.validation import label_matrix, score_matrix


@dataclass(frozen=True, eq=False)
class Paths(Listing, Space):
    """Label sets that are a node of a forest and its ancestors.

    z of the path to node i is 2 (sum of h along the path) - sum of all h, by one pass from the
    roots; sums over the nodes below each node by one pass back. O(l) a row. Any scores of the
    nodes are reached by some h, so here label-wise scores lose nothing.

    Parameters
    ----------
    parents : array of shape (n_labels,), or Taxonomy
        The parent of each label, -1 for a root.
    leaves_only : bool, default False
        Only paths that end in a node without children.

    Examples
    --------
    >>> Paths([-1, 0, 0], leaves_only=True).enumerate()
    array([[1, 1, 0],
           [1, 0, 1]], dtype=uint8)
    """

    parents: Any
    leaves_only: bool = False
    n_labels: int = field(init=False, repr=False)
    log_size: float = field(init=False, repr=False)
    nodes: Nodes = field(init=False, repr=False)
    is_end: Array = field(init=False, repr=False)
    _ends: Array = field(init=False, repr=False)
    # The depth of each label, and its node.
    _depth: Array = field(init=False, repr=False)
    _place: Array = field(init=False, repr=False)
    is_path = True
    is_list = True
    is_closed = True

    def __post_init__(self):
        parents = tree_parents(self.parents)
        ends, nodes = np.arange(len(parents)), Nodes.of(parents)
        if self.leaves_only:
            ends = np.setdiff1d(ends, parents)
        depth = forest_levels(parents) + 1
        vars(self).update(
            parents=parents, n_labels=len(parents), log_size=float(np.log(len(ends))),
            nodes=nodes, is_end=np.isin(nodes.labels, ends), _ends=ends,
            _depth=depth.astype(np.min_scalar_type(depth.max())),
            _place=np.argsort(nodes.labels)[1:],
        )  # fmt: skip

    @property
    def sizes(self) -> Array:
        """The depths that occur, a root having depth 1."""
        return np.unique(self._depth[self._ends]).astype(np.int64)

    def marginals(self, scores) -> Array:
        """P(label on the path) = probability of the paths that end below it, (n, l)."""
        return self._law(score_matrix(scores, self.n_labels))[1]

    def most_likely(self, scores) -> Array:
        """The heaviest path; ties: the lower label index of its end, (n, l)."""
        weights = self.weights(score_matrix(scores, self.n_labels).astype(np.float64))
        return self.sets_ending_in(self._ends[np.argmax(weights, axis=1)])

    @property
    def sets(self) -> Array:
        """The path to each node (or leaf) in the order of labels, (K, l)."""
        return self.sets_ending_in(self._ends)

    def enumerate(self) -> Array:
        """The path to each node (or leaf) in the order of labels, (K, l)."""
        return self.sets

    def contains(self, sets) -> Array:
        """Whether the set is one of the paths, (n,)."""
        return self._last_nodes(label_matrix(sets, self.n_labels, "sets")) >= 0

    def are_paths(self, sets: Array) -> Array:
        """Whether the set is a node and its ancestors, a leaf or not, (n,)."""
        return self._last_nodes(sets, np.ones_like(self.is_end)) >= 0

    @property
    def count(self) -> int:
        """How many paths there are."""
        return len(self._ends)

    def sums(self, present: Array, absent: Array) -> Array:
        """``present`` along each path plus ``absent`` off it, (n, K)."""
        total = absent.sum(axis=1, keepdims=True)
        off = total - self._along(from_roots_rows, absent)[:, self._ends]
        # What is left of a difference may be rounding, where the path takes all there is.
        off = np.where(np.abs(off) <= 1e-14 * np.abs(total), 0.0, off)
        return self._along(from_roots_rows, present)[:, self._ends] + off

    def weights(self, scores: Array) -> Array:
        """z of each path, (n, K)."""
        along = self._along(from_roots_rows, scores)[:, self._ends]
        return 2.0 * along - scores.sum(axis=1, keepdims=True)

    def aggregate(self, weights: Array) -> tuple[Array, Array]:
        """Sums over the paths of weights times y'; no parameters."""
        at_ends = np.zeros((len(weights), self.n_labels))
        at_ends[:, self._ends] = weights
        below = self._along(to_roots_rows, at_ends)
        return 2.0 * below - weights.sum(axis=1, keepdims=True), np.empty((len(weights), 0))

    def expectation(self, target: Target | str) -> Expectation:
        """As every space; sums over labels by passes of their own."""
        paired = self.paired(target)
        if paired.form == "additive":
            return HierarchyExpectation(paired, self, self)
        return super().expectation(paired)

    def moments(self, scores: Array, *, features: bool = False) -> Moments:
        """A and the marginals."""
        log_partition, on = self._law(scores)
        return Moments(log_partition, on, 1.0 - on, np.empty((len(scores), 0)))

    def negative_log_likelihood(
        self, scores: Array, sets: Array, parameters: bool = True
    ) -> tuple[Array, Array, Array]:
        """By one pass down and one up; inf and 0 for a set that is none of the paths."""
        n, precise = len(scores), scores.astype(np.float64, copy=False)
        value, by_score = np.empty(n), np.empty_like(precise)
        last = self._last_nodes(sets)
        for_rows(likelihood_rows, n, precise, last, self.nodes, self.is_end, value, by_score)
        return value, by_score.astype(scores.dtype, copy=False), np.empty((n, 0))

    # What `HierarchyExpectation` asks of a law over the nodes of a forest.

    @property
    def additive_pass(self) -> tuple[Any, Any]:
        """The kernel for sums over labels, and what it takes."""
        return additive_rows, (self.nodes, self.is_end)

    @property
    def uniform_marginals(self) -> Array:
        """The share of all paths that hold each label, (l,)."""
        return self._law(np.zeros((1, self.n_labels)))[1][0]

    def by_parameters(self, by_score: Array) -> Array:
        """None: paths have no parameters."""
        return np.empty((len(by_score), 0))

    def start_scores(self, sets: Array, weights: Array) -> Array:
        """Scores at which the distribution is near that of weighted sets: see `Space`.

        P(end) asks for 2 h = log P(end) - log P(path ends at the parent).
        """
        parents, count = self.parents, label_sums(sets, weights)
        child = np.flatnonzero(parents >= 0)
        is_end = ~np.isin(np.arange(len(parents)), parents) | (not self.leaves_only)
        ending = count.copy()
        np.subtract.at(ending, parents[child], count[child])
        weight = np.where(is_end, np.log(np.maximum(ending, 0.0) + 0.5), 0.0)
        scores = weight.copy()
        scores[child] -= weight[parents[child]]
        return scores / 2.0

    def diameter(self, lengths: Array) -> float:
        """The largest total length on which two of the paths differ."""
        largest = 0.0
        # The two longest ways down to an end from each node; -inf where there is none.
        longest = np.full(self.n_labels + 1, -np.inf)
        longest[self._ends] = 0.0
        for label in self.nodes.labels[:0:-1]:
            parent = self.parents[label]
            reach = longest[label] + lengths[label]
            if np.isfinite(longest[parent]):
                largest = max(largest, longest[parent] + reach)
            longest[parent] = max(longest[parent], reach)
        return float(largest)

    def sets_ending_in(self, ends: Array) -> Array:
        """The path to each given node, (len(ends), l)."""
        sets = np.zeros((len(ends), self.n_labels), dtype=np.uint8)
        node, rows = np.array(ends), np.arange(len(ends))
        while len(rows):
            sets[rows, node] = 1
            node = self.parents[node]
            rows, node = rows[node >= 0], node[node >= 0]
        return sets

    def _along(self, kernel, values: Array) -> Array:
        """Sums of the values along the path to each node, or over the nodes below it, (n, l)."""
        sums = np.array(values, dtype=np.float64, order="C")
        for_rows(kernel, len(sums), self.nodes.labels[1:], self.parents, sums)
        return sums

    def _law(self, scores: Array) -> tuple[Array, Array]:
        """A and P(label), (n,) and (n, l)."""
        log_sum, out = np.empty(len(scores)), np.empty_like(scores)
        for_rows(marginal_rows, len(scores), scores, self.nodes, self.is_end, log_sum, out)
        return log_sum - scores.sum(axis=1, dtype=np.float64), out

    def _last_nodes(self, sets: Array, is_end: Array | None = None) -> Array:
        """The node in which each set's path ends, -1 if it is none of the paths, (n,).

        It can only end in the deepest label.
        """
        deepest = np.argmax(sets * self._depth, axis=1)
        last, ends = self._place[deepest], self.is_end if is_end is None else is_end
        is_path = (sets == self.sets_ending_in(deepest)).all(axis=1)
        return np.where(is_path & ends[last], last, -1)

    __repr__ = brief

    def __str__(self) -> str:
        kind = ", leaves only" if self.leaves_only else ""
        return f"Paths of {self.n_labels} labels{kind}"

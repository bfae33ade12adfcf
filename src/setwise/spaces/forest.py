"""Label sets with interactions along the edges of a forest: chains, trees, hierarchies."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from setwise.spaces.expectation import Expectation, Mean, additive_mean
from setwise.spaces.forest_kernels import (
    Tree,
    likelihood_rows,
    moments_rows,
    most_likely_rows,
    sum_moments_rows,
)
from setwise.spaces.hierarchy import ClosedLaw, HierarchyExpectation
from setwise.spaces.nodes import LANES, Nodes
from setwise.spaces.quadrature import DOUBLE_ERROR, Rules, jacobi, uniform
from setwise.spaces.space import FEW, Array, Moments, Space, refuse_large, tempered_values
from setwise.sparse import entries_of, label_sums
from setwise.spelling import brief
from setwise.targets.measure import ZERO_DENOMINATOR, Fraction, Of
from setwise.targets.target import Target
from setwise.taxonomy import are_closed, steps_up, tree_parents
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
    n_labels: int = field(init=False, repr=False)
    log_size: float = field(init=False, repr=False)
    sizes: Array = field(init=False, repr=False)
    is_closed: bool = field(init=False, repr=False)
    nodes: Nodes = field(init=False, repr=False)
    closed_law: ClosedLaw | None = field(init=False, repr=False)
    feature_group = 4  # the states of an edge
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
        nodes = Nodes.of(parents)
        law = ClosedLaw.of(parents, nodes, potentials)
        vars(self).update(
            parents=parents, potentials=potentials, n_labels=len(parents), is_closed=self.closed,
            nodes=nodes, closed_law=law, sizes=np.arange(len(parents) + 1),
        )  # fmt: skip
        vars(self).update(log_size=float(law.log_counts[0]) if law else self._count())

    @classmethod
    def chain(cls, n_labels: int, potentials=None) -> Forest:
        """Label i hangs on label i - 1: the paper's automaton, with weights between neighbours."""
        return cls(np.arange(n_labels) - 1, potentials)

    @property
    def parameters(self) -> Array:
        """The potentials, flat, (4 l,)."""
        return self.potentials.ravel().copy()

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

    def most_likely(self, scores) -> Array:
        """Max-product; on a tie a label is left out, parents decided before children, (n, l)."""
        checked, tree = score_matrix(scores, self.n_labels), self._tree(self.potentials)
        out = np.empty(checked.shape, dtype=np.uint8)
        for_rows(most_likely_rows, len(out), checked, tree, tree.potentials, out)
        return out

    def enumerate(self) -> Array:
        """All label sets that no potential excludes, (|Y|, l)."""
        refuse_large(self)
        # Label by label, parents first, dropping excluded beginnings.
        sets = np.zeros((1, self.n_labels), dtype=np.uint8)
        for label in self.nodes.labels[1:]:
            with_label = sets.copy()
            with_label[:, label] = 1
            sets, parent = np.vstack([sets, with_label]), self.parents[label]
            if parent >= 0:
                sets = sets[self.potentials[label, sets[:, label], sets[:, parent]] > -np.inf]
        return sets[np.lexsort(sets.T[::-1])]

    def contains(self, sets) -> Array:
        """Whether no potential excludes the set, (n,)."""
        sets = label_matrix(sets, self.n_labels, "sets")
        if self.closed_law is not None:
            edges = np.column_stack([self.parents, np.arange(self.n_labels)])
            return are_closed(entries_of(sets), steps_up(edges, self.n_labels))
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

    def marginals(self, scores: ArrayLike) -> Array:
        """P(label in the set), (n, l).

        Of closed sets it is half the slope of -log P of the set without labels, by the kernel that
        training has compiled.
        """
        if self.closed_law is None:
            return super().marginals(scores)
        checked = score_matrix(scores, self.n_labels)
        return (
            self.negative_log_likelihood(checked, np.zeros(checked.shape, np.uint8), False)[1] / 2
        )

    def moments(
        self, scores: Array, values: tuple[Array, Array] | None = None, *, features: bool = False
    ) -> Moments:
        """Marginals and, with ``values`` = (on, off) of shape (n, l), the moments of their sum.

        A score of +-inf fixes its label; where no set of the space agrees with the fixed labels,
        the log-partition is -inf and every moment 0.
        """
        n, n_labels = scores.shape
        law, pairs = _room(n, n_labels, features)
        sums, sum_pairs = _room(n if values else 0, n_labels, features and values is not None)
        # The weights of closed sets, one against another, know no fixed labels.
        closed = self.closed_law is not None and bool(np.isfinite(scores).all())
        tree = self._tree(None if closed else self.potentials)
        # (A kernel each: the second takes longer to compile, and few need it.)
        if values is None:
            for_rows(moments_rows, n, scores, tree, law, pairs, least=8 * LANES)
        else:
            room = law, pairs, sums, sum_pairs
            for_rows(sum_moments_rows, n, scores, tree, values, *room, least=8 * LANES)
        if self.closed_law is not None and closed:
            law[0][:] += self.closed_law.constant - scores.sum(axis=1)
        return Moments(*law, _flat(pairs), *sums, _flat(sum_pairs))

    def mean(
        self, target: Target, scores: Array, y_true: Array, of: Of, parameters: bool = True
    ) -> Mean:
        """Sums over labels by the moments of a sum, quotients at shifted scores, others by a list.

        Quotients on a small space by the list too: that takes fewer passes, and no differences.
        """
        if target.form == "additive":
            return additive_mean(self, target, scores, y_true, of, parameters)
        measure = target.measure(self.n_labels, of)
        if isinstance(measure, Fraction) and not self.has_at_most(FEW):
            return shifted_mean(self, measure, scores, y_true, parameters)
        return super().mean(target, scores, y_true, of, parameters)

    def negative_log_likelihood(
        self, scores: Array, sets: Array, parameters: bool = True
    ) -> tuple[Array, Array, Array]:
        """By one pass up and one down; inf for a set outside the support."""
        (n, n_labels), precise = scores.shape, scores.astype(np.float64, copy=False)
        value, by_score = np.empty(n), np.empty_like(precise)
        by_pair = np.empty((n, n_labels if parameters else 0, 2, 2))
        tree = self._tree(self.potentials if self.closed_law is None else None)
        for_rows(likelihood_rows, n, precise, sets, tree, value, by_score, by_pair, least=8 * LANES)
        return value, by_score.astype(scores.dtype, copy=False), _flat(by_pair)

    def log_probability(self, scores: Array, sets: Array) -> Array:
        """log s(y') of one set a row, -inf outside the support, (n,)."""
        return -self.negative_log_likelihood(scores, sets, False)[0]

    def start_scores(self, sets: Array, weights: Array) -> Array:
        """Scores at which the distribution is near that of weighted sets: see `Space`.

        On closed sets P(label | parent) = r asks for 2 h = logit r + sum over children log(1 - r').
        The potentials of an edge, where there are any, hold how frequent the label below it is.
        """
        scores, child = super().start_scores(sets, weights), np.flatnonzero(self.parents >= 0)
        if not self.is_closed:
            if np.nan_to_num(self.parameters, neginf=0.0).any():
                scores[child] = 0.0
            return scores
        count, above = label_sums(sets, weights), np.full(self.n_labels, weights.sum())
        above[child] = count[self.parents[child]]
        share = (count + 0.5) / (above + 1.0)
        scores = np.log(share) - np.log1p(-share)
        np.add.at(scores, self.parents[child], np.log1p(-share[child]))
        return scores / 2.0

    __repr__ = brief

    def __str__(self) -> str:
        kind = ", closed=True" if self.closed else ""
        return f"Forest of {self.n_labels} labels{kind}"

    def _tree(self, potentials: Array | None) -> Tree:
        """What kernels take; without ``potentials`` that of closed sets."""
        if potentials is None:
            assert self.closed_law is not None
            return self.closed_law.tree
        by_node = np.concatenate([np.zeros((1, 2, 2)), potentials[self.nodes.labels[1:]]])
        by_node[self.nodes.above == 0] = 0.0
        return Tree(*self.nodes, by_node, np.empty(0))

    def _count(self) -> float:
        """log of the number of sets; refused if there are none."""
        flat = copy(self)
        vars(flat).update(potentials=tempered_values(self.potentials, 0.0))
        size = float(flat.moments(np.zeros((1, self.n_labels))).log_partition[0])
        if not np.isfinite(size):
            raise ValueError("potentials exclude every label set: a Forest needs at least one")
        return size


def shifted_mean(
    space: Forest, measure: Fraction, scores: Array, y_true: Array, parameters: bool
) -> Mean:
    """E[N / D] and its joint means by shifting scores: a pass for each node of a rule for 1/D.

    On any space E_h[t^(a·b)] = exp(A(h + a log(t)/2) - A(h)) t^(sum a / 2): a power of a linear
    count is a change of scores. So E[N / D] is a sum over the nodes t of weight * E[N t^D], the
    moments of N at shifted scores, and of what D = 0 contributes, where a score of +-inf fixes a
    label. D = start + the steps of labels that count, see `Rules`; it has no concentrated law here
    (a forest may favour small and large sets together), so the rule holds for all its values.
    """
    plain = space.moments(scores, features=parameters)
    zeros = np.zeros(len(scores)), np.zeros(scores.shape), np.zeros(plain.features.shape)
    total = Mean(plain.log_partition, *zeros)
    if len(scores) == 0:
        return total
    rules, is_true = Rules(measure, scores.shape[1], DOUBLE_ERROR), y_true == 1
    start, high, zero, least = rules.ends(y_true.sum(axis=1, dtype=np.int64))
    step, flip, on, off = (
        np.where(is_true, *pair) for pair in (rules.step, rules.flip, rules.on, rules.off)
    )
    signed, values = np.where(flip, -step, step), (np.where(flip, off, on), np.where(flip, on, off))
    x_nodes, weights = _rule(rules, start, high, zero)
    for x, weight in zip(x_nodes, weights, strict=True):
        m = space.moments(scores - 0.5 * x * signed, values, features=parameters)
        exponent = m.log_partition - plain.log_partition - x * (start + 0.5 * step.sum(axis=1))
        total = _add(total, m, weight * np.exp(exponent), least, 1.0)
    if zero.any():
        # D = 0 when no label with a step counts: take out what the rule made of that, and put the
        # convention in.
        side = np.where(zero[:, None], -np.sign(signed), 0.0)
        fixed = np.where(side == 0.0, scores, np.where(side > 0, np.inf, -np.inf))
        m = space.moments(fixed, values, features=parameters)
        exponent = m.log_partition + (side * scores).sum(axis=1) - plain.log_partition
        probability, excess = np.where(zero, np.exp(exponent), 0.0), weights.sum()
        total = _add(total, m, probability, measure.empty - excess * least, -excess)
    return total


def _rule(rules: Rules, start: Array, high: Array, zero: Array) -> tuple[Array, Array]:
    """Nodes x (t = e^-x) and weights for 1/D on all values that D takes in these rows."""
    x, w = uniform(rules.step, start, high, zero)
    most = high.max()
    units = np.concatenate([start, high, rules.step]) * rules.units
    whole = np.abs(units - np.round(units)).max() < ZERO_DENOMINATOR
    if whole and most * rules.units <= 2 * len(x):
        # All values of D are whole numbers of units, for which a Gauss rule is exact.
        t, w = jacobi(max(int(np.ceil(most * rules.units / 2.0)), 1), 0.0)
        return -np.log(t) * rules.units, w / t * rules.units
    return x, w


def _add(total: Mean, m: Moments, weight: Array, constant: Array, factor: float) -> Mean:
    """total + weight * (constant + factor * N), in mean and in both joint means."""
    base, gain = (weight * constant)[:, None], (weight * factor)[:, None]
    return Mean(
        total.log_partition,
        total.value + weight * (constant + factor * m.total),
        total.scores + base * (m.on - m.off) + gain * (m.total_on - m.total_off),
        total.parameters + base * m.features + gain * m.total_features,
    )


def _room(n: int, n_labels: int, features: bool) -> tuple[tuple[Array, Array, Array], Array]:
    """Room for the law of so many rows, and for that of edges where it is asked for."""
    pairs = np.empty((n, n_labels if features else 0, 2, 2))
    return (np.empty(n), np.empty((n, n_labels)), np.empty((n, n_labels))), pairs


def _flat(pairs: Array) -> Array:
    """What belongs to edges as parameters, (n, 4 l); (n, 0) where it was not asked for."""
    return pairs.reshape(len(pairs), 4 * pairs.shape[1])

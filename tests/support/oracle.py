"""The oracle: every quantity of setwise by enumeration, straight from the formulas.

It shares no code with the package and knows no shortcut. A label set is a 0/1 row, a space is the
list of its label sets with the number g(y') each carries, a target is a pair of scalar functions,
and a surrogate is the sum over label sets it is defined as. Everything small runs in extended
precision (`np.longdouble`), so that exponentials of several hundred keep at least twelve digits;
results leave as float64.

Letters of the paper: y' predicted set, y true set, h scores, z(y') = sum_i y'_i h_i + g(y') with y'
in {-1,+1}, s(y') = exp(z(y') - A), A the log-partition, u = 1 - L the utility, E_0 the uniform
mean.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np

EXTENDED = np.longdouble
MINUS_INFINITY = float("-inf")


@cache
def all_sets(n_labels: int) -> np.ndarray:
    """All 2^n label sets as 0/1 rows, in counting order: 00, 01, 10, 11."""
    sets = np.array(list(itertools.product((0, 1), repeat=n_labels)), dtype=np.int64)
    sets = sets.reshape(-1, n_labels)
    sets.setflags(write=False)
    return sets


def as_float(values) -> np.ndarray:
    """Extended precision to float64; what is too large becomes inf without a warning."""
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(values, dtype=EXTENDED).astype(np.float64)


# ------------------------------------------------------------------------------------------- spaces


@dataclass(frozen=True)
class Space:
    """The support of a space: its label sets, how z depends on the scores, and g with its
    parameters.

    z = score_features @ scores + offset, and offset = parameter_features @ parameters over the
    finite parameters; a set that would use an infinite one is not in the support.
    """

    sets: np.ndarray  # (m, l)
    score_features: np.ndarray  # (m, n_scores): y' in +-1, or the identity's rows for joint scores
    offset: np.ndarray  # (m,): g(y')
    parameter_features: np.ndarray  # (m, p): how often g(y') uses each parameter

    @property
    def size(self) -> int:
        return len(self.sets)

    @property
    def log_size(self) -> float:
        """The log of the number of label sets in the support."""
        return math.log(self.size)

    def contains(self, sets) -> np.ndarray:
        members = {tuple(row) for row in self.sets.tolist()}
        return np.array([tuple(row) in members for row in np.asarray(sets, dtype=int).tolist()])

    def z(self, scores) -> np.ndarray:
        """z(y') = sum_i y'_i h_i + g(y') for each set of the support (joint: scores + bias)."""
        return self.score_features @ np.asarray(scores, dtype=EXTENDED) + self.offset


def _space(sets, signs, offsets, uses) -> Space:
    """Keep the sets whose g is above minus infinity."""
    offsets = np.asarray(offsets, dtype=EXTENDED)
    kept = offsets > MINUS_INFINITY
    return Space(
        sets=np.asarray(sets)[kept],
        score_features=np.asarray(signs, dtype=EXTENDED)[kept],
        offset=offsets[kept],
        parameter_features=np.asarray(uses, dtype=EXTENDED).reshape(len(offsets), -1)[kept],
    )


def cube(n_labels: int) -> Space:
    """Every label set, g = 0, no parameters."""
    sets = all_sets(n_labels)
    return _space(sets, 2 * sets - 1, np.zeros(len(sets)), np.zeros((len(sets), 0)))


def sized(n_labels: int, bias: Sequence[float]) -> Space:
    """g(y') = bias[|y'|]; sizes beyond the given ones are impossible."""
    sets = all_sets(n_labels)
    uses = [[int(sum(row) == size) for size in range(len(bias))] for row in sets.tolist()]
    offsets = [bias[sum(row)] if sum(row) < len(bias) else MINUS_INFINITY for row in sets.tolist()]
    return _space(sets, 2 * sets - 1, offsets, uses)


def slice_of(n_labels: int, size: int) -> Space:
    """The label sets with exactly `size` labels, g = 0."""
    sets = np.array([row for row in all_sets(n_labels).tolist() if sum(row) == size])
    return _space(sets, 2 * sets - 1, np.zeros(len(sets)), np.zeros((len(sets), 0)))


def forest(parents: Sequence[int], potentials=None, closed: bool = False) -> Space:
    """g(y') = sum over non-roots of potentials[child, child state, parent state].

    With `closed` a child that is on while its parent is off makes g minus infinity. What the
    potentials hold at roots is ignored. Parameters are all 4 l entries in row-major order.
    """
    n_labels = len(parents)
    table = (
        np.zeros((n_labels, 2, 2)) if potentials is None else np.asarray(potentials, dtype=float)
    )
    sets, offsets, uses = all_sets(n_labels), [], []
    for row in sets.tolist():
        offset, used = EXTENDED(0), np.zeros((n_labels, 2, 2))
        for child, parent in enumerate(parents):
            if parent < 0:
                continue
            used[child, row[child], row[parent]] = 1
            offset = offset + EXTENDED(table[child, row[child], row[parent]])
            if closed and row[child] == 1 and row[parent] == 0:
                offset = EXTENDED(MINUS_INFINITY)
        offsets.append(offset)
        uses.append(used.ravel())
    return _space(sets, 2 * sets - 1, offsets, uses)


def ancestors(parents: Sequence[int], node: int) -> list[int]:
    """The node itself, its parent, and so on up to the root."""
    chain = [node]
    while parents[chain[-1]] >= 0:
        chain.append(parents[chain[-1]])
    return chain


def paths(parents: Sequence[int], leaves_only: bool = False) -> Space:
    """One label set for each node: the node and its ancestors; with `leaves_only` for each leaf."""
    n_labels = len(parents)
    nodes = [node for node in range(n_labels) if not (leaves_only and node in set(parents))]
    sets = np.zeros((len(nodes), n_labels), dtype=np.int64)
    for position, node in enumerate(nodes):
        sets[position, ancestors(parents, node)] = 1
    return _space(sets, 2 * sets - 1, np.zeros(len(sets)), np.zeros((len(sets), 0)))


def catalog(sets, bias=None, joint: bool = False) -> Space:
    """The listed sets, g = bias of the row; joint scores give every row a score of its own."""
    sets = np.asarray(sets, dtype=np.int64)
    bias = np.zeros(len(sets)) if bias is None else np.asarray(bias, dtype=float)
    rows = np.eye(len(sets))
    return _space(sets, rows if joint else 2 * sets - 1, bias, rows)


def backoff(base: Space, sets, bonus) -> Space:
    """The sets of the base; a listed one uses its bonus beside the parameters of the base."""
    rows = [tuple(row) for row in np.asarray(sets, dtype=int).tolist()]
    listed = [[int(tuple(own) == row) for row in rows] for own in base.sets.tolist()]
    added = np.asarray(listed, dtype=EXTENDED) @ np.asarray(bonus, dtype=EXTENDED)
    uses = np.hstack([base.parameter_features, np.asarray(listed, dtype=EXTENDED)])
    return _space(base.sets, base.score_features, base.offset + added, uses)


# --------------------------------------------------------------------------- sums over label sets


def by_itself(space) -> Space:
    """A space as it describes itself: its listed sets, their features and its parameters."""
    sets, parameters = space.enumerate(), np.asarray(space.parameters, dtype=EXTENDED)
    uses = np.asarray(space.features(sets), dtype=EXTENDED)
    finite = np.isfinite(parameters)
    signs = np.eye(len(sets)) if space.is_joint else 2.0 * sets - 1.0
    return _space(sets, signs, uses[:, finite] @ parameters[finite], uses)


def log_sum_exp(values) -> np.longdouble:
    """log sum exp, shifted by the largest value."""
    values = np.asarray(values, dtype=EXTENDED)
    largest = values.max()
    return largest + np.log(np.exp(values - largest).sum())


def log_partition(space: Space, scores, q: float = 1.0) -> np.longdouble:
    """A_q(h) = log sum_{y'} exp(q z(y'))."""
    return log_sum_exp(EXTENDED(q) * space.z(scores))


def set_probability(space: Space, scores) -> np.ndarray:
    """s(y') = exp(z(y') - A)."""
    z = space.z(scores)
    return np.exp(z - log_sum_exp(z))


def marginals(space: Space, scores) -> np.ndarray:
    """The probability under s that each label is in the set."""
    return set_probability(space, scores) @ space.sets.astype(EXTENDED)


def uniform_mean(values) -> np.longdouble:
    """E_0: the plain mean over the support, without g."""
    return np.asarray(values, dtype=EXTENDED).mean(axis=0)


# ------------------------------------------------------------------------------------------ targets


@dataclass(frozen=True)
class Target:
    """A loss and its utility, each from its own formula, so that neither loses digits near 0.

    `loss(y_pred, y_true)` and `utility(y_pred, y_true)` take two tuples of 0/1.
    """

    loss: Callable
    utility: Callable

    def losses(self, sets, y_true) -> np.ndarray:
        """L(y', y) for each row y' of `sets`."""
        true = tuple(int(label) for label in y_true)
        return np.array(
            [self.loss(tuple(row), true) for row in np.asarray(sets).tolist()], dtype=EXTENDED
        )

    def utilities(self, sets, y_true) -> np.ndarray:
        """u(y', y) for each row y' of `sets`."""
        true = tuple(int(label) for label in y_true)
        return np.array(
            [self.utility(tuple(row), true) for row in np.asarray(sets).tolist()], dtype=EXTENDED
        )


def confusion(y_pred, y_true) -> tuple[int, int, int, int]:
    """(tp, fp, fn, tn), counted one label at a time."""
    pairs = list(zip(y_pred, y_true, strict=True))
    return pairs.count((1, 1)), pairs.count((1, 0)), pairs.count((0, 1)), pairs.count((0, 0))


def of_counts(loss: Callable, utility: Callable) -> Target:
    """Functions of (tp, fp, fn, tn), each asked once for the same counts."""
    loss, utility = cache(loss), cache(utility)
    return Target(lambda a, b: loss(*confusion(a, b)), lambda a, b: utility(*confusion(a, b)))


def hamming(weights=None) -> Target:
    """L = sum_i w_i 1[y'_i != y_i] / sum_i w_i."""

    def total(y_pred, y_true, differs):
        weight = [1.0] * len(y_true) if weights is None else weights
        chosen = [
            EXTENDED(w)
            for w, a, b in zip(weight, y_pred, y_true, strict=True)
            if (a != b) == differs
        ]
        return sum(chosen, EXTENDED(0)) / sum((EXTENDED(w) for w in weight), EXTENDED(0))

    return Target(lambda a, b: total(a, b, True), lambda a, b: total(a, b, False))


def cost_sensitive(miss, false_alarm) -> Target:
    """L = sum over missed labels of miss_i + over false alarms of false_alarm_i, over the most."""

    def total(y_pred, y_true, lost):
        pairs = list(zip(miss, false_alarm, strict=True))
        most = sum((EXTENDED(max(pair)) for pair in pairs), EXTENDED(0))
        costs = [
            EXTENDED(0 if a == b else pair[0] if b else pair[1])
            for pair, a, b in zip(pairs, y_pred, y_true, strict=True)
        ]
        terms = (
            costs
            if lost
            else [EXTENDED(max(pair)) - c for pair, c in zip(pairs, costs, strict=True)]
        )
        return sum(terms, EXTENDED(0)) / most

    return Target(lambda a, b: total(a, b, True), lambda a, b: total(a, b, False))


def subset() -> Target:
    """L = max_i 1[y'_i != y_i]."""
    return Target(lambda a, b: EXTENDED(a != b), lambda a, b: EXTENDED(a == b))


def linear_fractional(numerator, denominator, empty: float = 1.0) -> Target:
    """L = (a0 + a1 tp + a2 fp + a3 fn + a4 tn) / (b0 + b1 tp + b2 fp + b3 fn + b4 tn); 0/0 has
    utility `empty`.
    """
    above = [EXTENDED(value) for value in numerator]
    below = [EXTENDED(value) for value in denominator]
    rest = [b - a for a, b in zip(above, below, strict=True)]

    def part(coefficients, counts):
        return sum((c * n for c, n in zip(coefficients, (1, *counts), strict=True)), EXTENDED(0))

    def loss(*counts):
        size = part(below, counts)
        return part(above, counts) / size if size != 0 else 1 - EXTENDED(empty)

    def utility(*counts):
        size = part(below, counts)
        return part(rest, counts) / size if size != 0 else EXTENDED(empty)

    return of_counts(loss, utility)


def precision(empty: float = 0.0) -> Target:
    """L = fp / (tp + fp); nothing predicted has utility `empty`."""
    return linear_fractional((0, 0, 1, 0, 0), (0, 1, 1, 0, 0), empty)


def recall(empty: float = 0.0) -> Target:
    """L = fn / (tp + fn); nothing true has utility `empty`."""
    return linear_fractional((0, 0, 0, 1, 0), (0, 1, 0, 1, 0), empty)


def of_rates(mean: Callable) -> Target:
    """U = the mean of the shares that are right of the true, and of the false, if there are any."""

    def utility(tp, fp, fn, tn):
        parts = ((tp, tp + fn), (tn, tn + fp))
        return mean([EXTENDED(right) / size for right, size in parts if size])

    return of_counts(lambda *counts: 1 - utility(*counts), utility)


def balanced_accuracy() -> Target:
    """1 - their arithmetic mean."""
    return of_rates(lambda shares: sum(shares) / len(shares))


def g_mean() -> Target:
    """1 - their geometric mean."""
    return of_rates(lambda shares: np.prod(shares) ** (EXTENDED(1) / len(shares)))


def f_beta(beta: float = 1.0, empty: float = 1.0) -> Target:
    """L = 1 - (1 + b^2) |y' & y| / (b^2 |y| + |y'|); nothing true and nothing predicted has utility
    `empty`.
    """
    square = EXTENDED(beta) ** 2

    def parts(tp, fp, fn, tn):
        return (1 + square) * tp, square * fn + fp, square * (tp + fn) + (tp + fp)

    def loss(*counts):
        _, wrong, size = parts(*counts)
        return wrong / size if size != 0 else 1 - EXTENDED(empty)

    def utility(*counts):
        right, _, size = parts(*counts)
        return right / size if size != 0 else EXTENDED(empty)

    return of_counts(loss, utility)


def jaccard(empty: float = 1.0) -> Target:
    """L = 1 - |y' & y| / |y' or y|; two empty sets have utility `empty`."""

    def share(count_of, y_pred, y_true, at_empty):
        union = sum(1 for a, b in zip(y_pred, y_true, strict=True) if a or b)
        chosen = sum(1 for a, b in zip(y_pred, y_true, strict=True) if (a or b) and count_of(a, b))
        return EXTENDED(chosen) / union if union else EXTENDED(at_empty)

    return Target(
        lambda a, b: share(lambda p, t: p != t, a, b, 1 - EXTENDED(empty)),
        lambda a, b: share(lambda p, t: p == t, a, b, empty),
    )


def precision_at_k(k: int) -> Target:
    """L = 1 - |y' & y| / k, for sets of size k."""

    def utility(y_pred, y_true):
        assert sum(y_pred) == k, "precision@k is defined on sets of size k"
        return EXTENDED(confusion(y_pred, y_true)[0]) / k

    return Target(lambda a, b: EXTENDED(confusion(a, b)[1]) / k, utility)


def recall_at_k(k: int, empty: float = 1.0) -> Target:
    """L = 1 - |y' & y| / |y|, for sets of size k; no true label has utility `empty`."""

    def utility(y_pred, y_true):
        assert sum(y_pred) == k, "recall@k is defined on sets of size k"
        return (
            EXTENDED(confusion(y_pred, y_true)[0]) / sum(y_true) if any(y_true) else EXTENDED(empty)
        )

    def loss(y_pred, y_true):
        return (
            EXTENDED(confusion(y_pred, y_true)[2]) / sum(y_true)
            if any(y_true)
            else 1 - EXTENDED(empty)
        )

    return Target(loss, utility)


def edge_distance(y_pred, y_true, lengths) -> Fraction:
    """The total length of the edges above the labels of the symmetric difference, exactly."""
    return sum(
        (Fraction(w) for w, a, b in zip(lengths, y_pred, y_true, strict=True) if a != b),
        Fraction(0),
    )


def diameter(sets, lengths) -> Fraction:
    """The largest edge distance between two of the sets."""
    pairs = itertools.combinations(np.asarray(sets).tolist(), 2)
    exact = [Fraction(w) for w in lengths]
    return max((edge_distance(*pair, exact) for pair in pairs), default=Fraction(0))


def tree_distance(parents, lengths=None, normaliser=None) -> Target:
    """L = length of the edges in the symmetric difference / normaliser (the sum of all lengths
    unless given). As fractions: a utility of 0 is 0, whatever it is multiplied by.
    """
    exact = [Fraction(1)] * len(parents) if lengths is None else [Fraction(w) for w in lengths]
    largest = sum(exact) if normaliser is None else Fraction(normaliser)

    def loss(y_pred, y_true):
        return edge_distance(y_pred, y_true, exact) / largest

    return Target(lambda a, b: EXTENDED(float(loss(a, b))), lambda a, b: float(1 - loss(a, b)))


def counts(function: Callable) -> Target:
    """L = function(tp, fp, fn, tn), called with one count at a time."""

    def loss(*counts):
        tp, fp, fn, tn = (np.array([count]) for count in counts)
        return EXTENDED(np.asarray(function(tp, fp, fn, tn), dtype=float)[0])

    return of_counts(loss, lambda *counts: 1 - loss(*counts))


def table(sets, losses) -> Target:
    """L = losses[row of y', row of y]."""
    row_of = {tuple(row): position for position, row in enumerate(np.asarray(sets).tolist())}

    def loss(y_pred, y_true):
        return EXTENDED(losses[row_of[tuple(y_pred)]][row_of[tuple(y_true)]])

    return Target(loss, lambda a, b: 1 - loss(a, b))


def tree_table(parents, lengths=None) -> np.ndarray:
    """Path lengths between the nodes of one tree, divided by the longest (Floyd and Warshall's
    triple loop).
    """
    n_nodes = len(parents)
    distance = np.full((n_nodes, n_nodes), np.inf)
    np.fill_diagonal(distance, 0.0)
    for child, parent in enumerate(parents):
        if parent >= 0:
            distance[child, parent] = distance[parent, child] = (
                1.0 if lengths is None else lengths[child]
            )
    for via, start, end in itertools.product(range(n_nodes), repeat=3):
        distance[start, end] = min(distance[start, end], distance[start, via] + distance[via, end])
    return distance / distance.max()


# --------------------------------------------------------------------------------------- surrogates


@dataclass(frozen=True)
class Answer:
    """A loss with its exact gradients for one row, in float64."""

    value: float
    score_gradient: np.ndarray
    parameter_gradient: np.ndarray


def psi(log_v, q: float) -> np.ndarray:
    """Psi_q(v) = (1 - v^-q) / q from log v, by expm1; log v at q = 0."""
    return log_v if q == 0 else -np.expm1(-EXTENDED(q) * log_v) / EXTENDED(q)


def comp_sum(
    space: Space, target: Target, scores, y_true, q: float, scale: str = "paper"
) -> Answer:
    """The paper's sum_{y'} u(y', y) Psi_q(1 / s(y')), or the unit scale E_0[u Psi_q(1 / (|Y| s))].

    Gradient, term by term: d Psi_q(1/s) = -s^q d log s, and d log s(y') = d z(y') - E_s[d z]. On
    the unit scale s is replaced by |Y| s and the sum by the mean.
    """
    z = space.z(scores)
    log_s = z - log_sum_exp(z)
    shift = np.log(EXTENDED(space.size)) if scale == "unit" else EXTENDED(0)
    weight = 1 / EXTENDED(space.size) if scale == "unit" else EXTENDED(1)
    utility = weight * target.utilities(space.sets, y_true)
    slope = -utility * np.exp(EXTENDED(q) * (log_s + shift))
    return _answer(space, (utility * psi(-(log_s + shift), q)).sum(), slope, np.exp(log_s))


def centred(features, weights) -> np.ndarray:
    """feature_k - sum_j weights_j feature_j for weights that sum to one.

    Each column takes two values at most, so the difference is (high - low) times the weight of the
    other value: no digits are lost where nearly all weight is on one side.
    """
    low, high = features.min(axis=0), features.max(axis=0)
    is_high = features == high
    on_high, on_low = weights @ is_high.astype(EXTENDED), weights @ (~is_high).astype(EXTENDED)
    return np.where(is_high, (high - low) * on_low, (low - high) * on_high)


def _answer(space: Space, value, slope, weights) -> Answer:
    """Chain rule through z: sum_k slope_k (feature_k - sum_j weights_j feature_j)."""

    def gradient(features):
        if features.shape[1] == 0:
            return np.zeros(0)
        return as_float(slope @ centred(features, weights))

    return Answer(
        float(as_float(value)),
        gradient(space.score_features),
        gradient(space.parameter_features),
    )


def margin_loss(name: str, u, rho: float = 1.0) -> np.ndarray:
    """Phi(u) of the paper."""
    u = np.asarray(u, dtype=EXTENDED)
    if name == "exponential":
        return np.exp(-u)
    if name == "logistic":
        return np.logaddexp(EXTENDED(0), -u)
    if name == "hinge":
        return np.maximum(0, 1 - u)
    if name == "squared_hinge":
        return np.maximum(0, 1 - u) ** 2
    if name == "rho":
        return np.minimum(np.maximum(0, 1 - u / EXTENDED(rho)), 1)
    raise KeyError(name)


def margin_slope(name: str, u, rho: float = 1.0) -> np.ndarray:
    """Phi'(u), away from the kinks."""
    u = np.asarray(u, dtype=EXTENDED)
    if name == "exponential":
        return -np.exp(-u)
    if name == "logistic":
        return -np.exp(-np.logaddexp(EXTENDED(0), u))
    if name == "hinge":
        return np.where(u < 1, EXTENDED(-1), EXTENDED(0))
    if name == "squared_hinge":
        return -2 * np.maximum(0, 1 - u)
    if name == "rho":
        return np.where((u > 0) & (u < rho), -1 / EXTENDED(rho), EXTENDED(0))
    raise KeyError(name)


MARGIN_KINKS = {"hinge": lambda rho: (1.0,), "rho": lambda rho: (0.0, rho)}


def kink_distance(name: str, u, rho: float = 1.0) -> float:
    """How far the nearest argument is from a point where Phi has no derivative."""
    kinks = MARGIN_KINKS[name](rho) if name in MARGIN_KINKS else ()
    return min((float(np.abs(np.asarray(u) - kink).min()) for kink in kinks), default=math.inf)


def centred_z(space: Space, scores) -> np.ndarray:
    """z - E_0[z]: the constraint sum_{y'} z(y') = 0, built in."""
    z = space.z(scores)
    return z - uniform_mean(z)


def constrained(
    space: Space,
    target: Target,
    scores,
    y_true,
    margin: str,
    rho: float = 1.0,
    scale: str = "paper",
) -> Answer:
    """sum_{y'} L(y', y) Phi(-z(y')) with centred z; the unit scale divides by |Y|."""
    weight = 1 / EXTENDED(space.size) if scale == "unit" else EXTENDED(1)
    loss = weight * target.losses(space.sets, y_true)
    z = centred_z(space, scores)
    slope = -loss * margin_slope(margin, -z, rho)
    uniform = np.full(space.size, 1 / EXTENDED(space.size))
    return _answer(space, (loss * margin_loss(margin, -z, rho)).sum(), slope, uniform)


def binary_relevance(scores, y_true, margin: str) -> Answer:
    """sum_i Phi(y_i h_i), y in +-1."""
    scores = np.asarray(scores, dtype=EXTENDED)
    signs = np.array([1 if label else -1 for label in y_true], dtype=EXTENDED)
    value = sum(margin_loss(margin, signs * scores), EXTENDED(0))
    return Answer(
        float(as_float(value)), as_float(signs * margin_slope(margin, signs * scores)), np.zeros(0)
    )


# ------------------------------------------------------------------------- many labels, on the cube


def poisson_binomial(probability) -> np.ndarray:
    """The law of a sum of independent 0/1 variables, one variable after another."""
    law = np.ones(1)
    for p in np.asarray(probability, dtype=float):
        longer = np.zeros(len(law) + 1)
        longer[:-1] = law * (1 - p)
        longer[1:] += law * p
        law = longer
    return law


def expected_utility_by_counting(probability, y_true, utility_of_counts: Callable) -> float:
    """E[u(tp, fp, fn, tn)] for independent labels: two Poisson-binomial laws against the table of
    u.
    """
    probability, true = np.asarray(probability, dtype=float), np.asarray(y_true) == 1
    hits, alarms = poisson_binomial(probability[true]), poisson_binomial(probability[~true])
    tp, fp = np.meshgrid(np.arange(len(hits)), np.arange(len(alarms)), indexing="ij")
    return float(
        hits @ utility_of_counts(tp, fp, len(hits) - 1 - tp, len(alarms) - 1 - fp) @ alarms
    )


def utility_slope_by_counting(
    probability, y_true, utility_of_counts: Callable, label: int
) -> float:
    """dE[u] / dp_label = E[u | label on] - E[u | label off]: E[u] is linear in each p."""
    ends = []
    for state in (1.0, 0.0):
        fixed = np.array(probability, dtype=float)
        fixed[label] = state
        ends.append(expected_utility_by_counting(fixed, y_true, utility_of_counts))
    return ends[0] - ends[1]


def half_line_rule(
    smallest: float, largest: float, nodes: int = 40
) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre with `nodes` points on each panel [0, a], [a, 2a], [2a, 4a], ... up to
    `largest`.
    """
    points, weights = np.polynomial.legendre.leggauss(nodes)
    edges = [0.0, smallest]
    while edges[-1] < largest:
        edges.append(2 * edges[-1])
    starts, ends = np.array(edges[:-1])[:, None], np.array(edges[1:])[:, None]
    half = (ends - starts) / 2
    return (starts + half * (1 + points)).ravel(), (half * weights).ravel()


def expected_reciprocal_share(
    probability, y_true, constant: float, d_tp: float, d_fp: float
) -> float:
    """E[tp / (constant + d_tp tp + d_fp fp)] for independent labels by a high-order rule.

    1/D = int_0^inf exp(-x D) dx, E[tp exp(-x D)] = sum over true i of p_i e^(-x d_tp) times the
    product of the other labels' factors 1 - p + p e^(-x d). Where tp = 0 the quotient counts as 0.
    """
    probability, true = np.asarray(probability, dtype=float), np.asarray(y_true) == 1
    if not true.any():
        return 0.0
    hit, alarm = probability[true], probability[~true]
    mean = constant + d_tp * hit.sum() + d_fp * alarm.sum()
    x, weights = half_line_rule(0.01 / (mean + 1), 50 / (constant + d_tp))
    total = 0.0
    for node, weight in zip(x, weights, strict=True):
        hits = hit * math.exp(-node * d_tp)
        of_hits, of_alarms = 1 - hit + hits, 1 - alarm + alarm * math.exp(-node * d_fp)
        logs = np.log(of_hits).sum() + np.log(of_alarms).sum()
        total += weight * (hits / of_hits).sum() * math.exp(logs - node * constant)
    return total

"""All label sets: the labels are independent given the scores, O(l) a row for most targets."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import expit

from setwise.lanes import LANES
from setwise.spaces.cube_kernels import (
    AdditiveTable,
    Wanted,
    additive_rows,
    count_true_rows,
    soft_rows,
    state_sums,
)
from setwise.spaces.expectation import (
    Expectation,
    Mean,
    Moment,
    SubsetExpectation,
    Tempered,
    additive,
    times_exp,
)
from setwise.spaces.quadrature import DOUBLE_ERROR, LAGUERRE_TABLE, MEANS, SINGLE_ERROR, Rules
from setwise.spaces.quotient_kernels import FractionTable, fraction_rows
from setwise.spaces.space import Array, Moments, Space, all_sets, refuse_large
from setwise.spaces.symmetric import count_mean
from setwise.targets.measure import Additive, Fraction, Of
from setwise.targets.target import Target
from setwise.threads import for_rows
from setwise.validation import label_matrix, score_matrix, whole_number


@dataclass(frozen=True)
class Cube(Space):
    """All 2^l label sets of l labels.

    z(y') = y' · h, so A(h) = sum_i log(2 cosh h_i) and P(label i) = sigmoid(2 h_i): note the 2.
    O(l) a row. The most likely set has the labels with h_i >= 0 (sgn(0) = +1, as in the paper).

    Examples
    --------
    >>> Cube(3).most_likely([[2.0, -1.0, 0.0]])
    array([[1, 0, 1]], dtype=uint8)
    """

    n_labels: int
    log_size: float = field(init=False, repr=False, compare=False)
    sizes: Array = field(init=False, repr=False, compare=False)
    size_bias: Array = field(init=False, repr=False, compare=False)
    is_independent = True
    carries = frozenset({"additive", "subset", "linear_fractional", "counts"})

    def __post_init__(self):
        n_labels = whole_number(self.n_labels, "n_labels", 1)
        vars(self).update(
            n_labels=n_labels, log_size=n_labels * float(np.log(2.0)),
            sizes=np.arange(n_labels + 1), size_bias=np.zeros(n_labels + 1),
        )  # fmt: skip

    def most_likely(self, scores) -> Array:
        """The labels whose score is not negative, (n, l)."""
        return (score_matrix(scores, self.n_labels) >= 0).astype(np.uint8)

    def enumerate(self) -> Array:
        """All label sets, (2^l, l)."""
        refuse_large(self)
        return all_sets(self.n_labels)

    def contains(self, sets) -> Array:
        """True for every label set, (n,)."""
        return np.ones(len(label_matrix(sets, self.n_labels, "sets")), dtype=bool)

    def sample(self, n_samples: int, generator: np.random.Generator) -> Array:
        """Each label by a fair coin, (n_samples, l)."""
        return generator.integers(0, 2, (n_samples, self.n_labels), dtype=np.uint8)

    def expectation(self, target: Target | str) -> Expectation:
        """By kernels for sums over labels and for quotients, else as every space does."""
        paired = self.paired(target)
        if paired.form == "subset":
            return SubsetExpectation(paired, self)
        return Tempered(paired, self) if paired.form == "table" else CubeExpectation(paired, self)

    def moments(self, scores: Array, *, features: bool = False) -> Moments:
        """The independent marginals."""
        log_partition, _, nothing = self.mean_scores(scores)
        return Moments(log_partition, expit(2.0 * scores), expit(-2.0 * scores), nothing)

    def mean_scores(self, scores: Array, parameters: bool = True) -> tuple[Array, Array, Array]:
        """A = sum of log(2 cosh h), tanh of the scores, and nothing for parameters."""
        size = np.abs(scores)
        log_partition = (size + np.log1p(np.exp(-2.0 * size))).sum(axis=1)
        return log_partition, np.tanh(scores), np.empty((len(scores), 0))

    def mean(
        self, target: Target, scores: Array, y_true: Array, of: Of, parameters: bool = True
    ) -> Mean:
        """Functions of the counts by their joint law, sums by their terms, a table by the list."""
        if target.form == "additive":
            return self._additive_mean(target, scores, y_true, of)
        if target.form == "table":
            return super().mean(target, scores, y_true, of, parameters)
        measure = target.measure(self.n_labels, of)
        _, *mean = count_mean(measure, scores, y_true, np.empty(0))
        return Mean(self.mean_scores(scores)[0], *mean)

    def _additive_mean(self, target: Target, scores: Array, y_true: Array, of: Of) -> Mean:
        """E[u] = constant + scale * E[N]; E[u y'] = E[u] E[y'] + scale * the covariance."""
        measure, n_true = additive(target, self.n_labels, of), true_counts(y_true) * 1.0
        off, on = measure.states(y_true)
        m, scale = self.moments(scores), measure.scale(n_true)
        value = measure.constant(n_true) + scale * (m.on * on + m.off * off).sum(axis=1)
        covariance = scale[:, None] * 2.0 * (on - off) * m.on * m.off
        by_score = value[:, None] * (m.on - m.off) + covariance
        return Mean(m.log_partition, value, by_score, m.features)

    def negative_log_likelihood(
        self, scores: Array, sets: Array, parameters: bool = True
    ) -> tuple[Array, Array, Array]:
        """Sum of log(1 + e^(-2 margin)) over labels, the margin being y_i h_i, and its gradient."""
        sign = 2.0 * sets - 1.0
        lack = -2.0 * sign * scores
        value = np.logaddexp(0.0, lack).sum(axis=1)
        by_score = (-2.0 * sign * expit(lack)).astype(scores.dtype)
        return value, by_score, np.empty((len(scores), 0))

    def __str__(self) -> str:
        return f"Cube({self.n_labels})"


def true_counts(y_true: Array) -> Array:
    """The number of true labels of each row, (n,)."""
    n_true = np.empty(len(y_true), dtype=np.int64)
    for_rows(count_true_rows, len(y_true), y_true, n_true)
    return n_true


def in_lanes(values: Array, dtype: np.dtype) -> Array:
    """Numbers of labels, the last axis, with zeros beyond the last label that fill its lanes."""
    made = np.zeros((*values.shape[:-1], -(-values.shape[-1] // LANES) * LANES), dtype)
    made[..., : values.shape[-1]] = values
    return made


@dataclass(frozen=True)
class CubeExpectation(Expectation):
    """Moments of a sum over labels, a quotient, or any function of the counts, on the cube.

    At q = 0 every target on the cube is cross-entropy with soft labels: the loss needs only
    M(0) = E_0[u] and E_0[u y'_i], which for a function of the counts are three numbers for each
    number of true labels. They are computed once, by the moments at zero scores.

    Scores are what is given times ``unit``; derivatives are those by the scores, times ``share``.
    """

    unit: float = 1.0
    share: float = 1.0
    _uniform: dict[Of, Array] = field(default_factory=dict, repr=False)
    _rules: dict[tuple[Of, bool], Rules] = field(default_factory=dict, repr=False)

    def moment(
        self, scores: Array, y_true: Array, q: float, of: Of = "utility", log_scale: float = 0.0,
        parameters: bool = True,
    ) -> Moment:  # fmt: skip
        if self.target.form == "counts":
            return Tempered(self.target, self.space).moment(scores, y_true, q, of, log_scale)
        return self._signed(1.0, scores, y_true, q, of, log_scale)

    def descent(
        self, scores: Array, y_true: Array, q: float, log_scale: float = 0.0,
        parameters: bool = True,
    ) -> Moment:  # fmt: skip
        if self.target.form == "counts":
            return super().descent(scores, y_true, q, log_scale, parameters)
        return self._signed(-1.0, scores, y_true, q, "utility", log_scale)

    def _signed(
        self, sign: float, scores: Array, y_true: Array, q: float, of: Of, log_scale: float
    ) -> Moment:
        """The moment, its derivatives times a sign."""
        # For q < 0 powers of probabilities outgrow float32.
        work = scores if q >= 0 else scores.astype(np.float64)
        value, slope = np.empty(len(work)), np.empty_like(work)
        n_true = true_counts(y_true)
        if self.target.form == "additive":
            measure, sizes = additive(self.target, self.space.n_labels, of), n_true * 1.0
            values, scale = in_lanes(measure.values, work.dtype), measure.scale(sizes)
            table = AdditiveTable(values, scale, measure.constant(sizes))
            kernel = additive_rows
        else:
            kernel, table = fraction_rows, self._fraction_table(n_true, of, work.dtype)
        wanted = self._wanted(q, work.dtype, log_scale, sign)
        for_rows(kernel, len(work), work, y_true, wanted, table, value, slope)
        return Moment(value, slope, np.empty((len(work), 0)))

    def uniform(self, y_true: Array, of: Of = "utility", log_scale: float = 0.0) -> Array:
        base, _, _, _ = self._pulls(y_true, of)
        return times_exp(base, log_scale)

    def logistic(
        self, scores: Array, y_true: Array, log_scale: float = 0.0, parameters: bool = True
    ) -> Moment:
        """M(0) sum_i log cosh(h_i) - sum_i E_0[u y'_i] h_i, by one pass."""
        base, up, down, weights = self._pulls(y_true, "utility")
        value, slope = np.empty(len(scores)), np.empty_like(scores)
        for_rows(
            soft_rows, len(scores), scores, y_true, self._wanted(0.0, scores.dtype),
            (base, up, down), in_lanes(weights, scores.dtype), value, slope,
        )  # fmt: skip
        if log_scale != 0.0:
            value, slope = times_exp(value, log_scale), times_exp(slope, log_scale)
        return Moment(value, slope, np.empty((len(scores), 0)))

    def of_logits(self, share: float) -> CubeExpectation | None:
        if self.target.form == "counts":
            return None
        return replace(self, unit=0.5 * self.unit, share=0.5 * share * self.share)

    def _wanted(self, q: float, dtype: np.dtype, log_scale=0.0, sign=1.0) -> Wanted:
        unit, one = dtype.type(self.unit), dtype.type(1)
        return Wanted(float(q), unit, one, log_scale, sign * self.share)

    def _fraction_table(self, n_true: Array, of: Of, dtype: np.dtype) -> FractionTable:
        """What the kernel needs of a quotient, for rows of so many true labels."""
        key = (of, dtype == np.float32)
        if key not in self._rules:
            measure = self.target.measure(self.space.n_labels, of)
            assert isinstance(measure, Fraction)
            error = SINGLE_ERROR if key[1] else DOUBLE_ERROR
            self._rules[key] = Rules(measure, self.space.n_labels, error)
        rules = self._rules[key]
        table, sign = rules.table(n_true), np.where(rules.flip, -1.0, 1.0)
        return FractionTable(
            table.slot[n_true], rules.step, sign, rules.on, rules.off, rules.measure.empty,
            np.array(MEANS), *LAGUERRE_TABLE, table,
        )  # fmt: skip

    def _pulls(self, y_true: Array, of: Of) -> tuple[Array, Array, Array, Array]:
        """M(0), and E_0[u y'_i] / weights_i for a true and for a false label, of each row.

        The weights are (2, l), of false and of true labels.
        """
        measure = self.target.measure(self.space.n_labels, of)
        if isinstance(measure, Additive):
            sizes = true_counts(y_true).astype(np.float64)
            scale, (if_false, if_true) = measure.scale(sizes), measure.values.mean(axis=1)
            if np.ptp(if_false) == 0.0 and np.ptp(if_true) == 0.0:
                total = sizes * if_true[0] + (self.space.n_labels - sizes) * if_false[0]
            else:
                total = np.empty(len(y_true))
                for_rows(state_sums, len(y_true), y_true, if_false, if_true, total)
            base = measure.constant(sizes) + scale * total
            return base, scale, scale, (measure.values[:, 1] - measure.values[:, 0]) / 2.0
        n_true = true_counts(y_true)
        table = self.by_count(np.flatnonzero(np.bincount(n_true)), of)
        return *(column[n_true] for column in table.T), np.ones((2, self.space.n_labels))

    def by_count(self, needed: Array, of: Of = "utility") -> Array:
        """For each number of true labels: M(0) and E_0[u y'_i] of a true and of a false label.

        The target sees only counts, so one true set of each size stands for all. (l + 1, 3), filled
        for the numbers that are ``needed``.
        """
        known = self._uniform.get(of)
        if known is None:
            known = np.full((self.space.n_labels + 1, 3), np.nan)
        new = needed[np.isnan(known[needed, 0])]
        if len(new):
            known = known.copy()
            sets = (np.arange(self.space.n_labels) < new[:, None]).astype(np.uint8)
            plain = replace(self, share=1.0)
            flat = plain.moment(np.zeros(sets.shape), sets, 1.0, of)
            last = self.space.n_labels - 1
            known[new, 0] = flat.value
            known[new, 1] = np.where(new > 0, flat.scores[:, 0], 0.0)
            known[new, 2] = np.where(new <= last, flat.scores[:, last], 0.0)
            self._uniform[of] = known
        return known

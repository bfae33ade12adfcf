"""Rules for 1/D = integral of t^(D-1) over [0, 1]: sums of powers that stand for a reciprocal.

A linear-fractional utility is N / D. With 1/D as a sum of powers t^D, its expectation needs only
E[N t^D], which factors over labels. Three rules, chosen by what D can be:

- `jacobi`: Gauss–Jacobi in t with weight t^phi, phi the broken part of the exponents: exact for
  whole-number steps of D up to twice the number of nodes.
- `laguerre`: Gauss–Laguerre in x with t = exp(-x / c), c = E[D]: for a D that is concentrated
  around a large mean.
- `exponential_sum`: a sum of exponentials whose relative error is bounded for EVERY real D in an
  interval, whatever its law; the bound is measured when the rule is made.

On the cube a row's rule is chosen by its number of true labels and the expected D. There D = start
+ sum of the steps of independent labels, so it is concentrated around its mean, and few nodes
suffice. A step below 0 is turned round (the label counts when left out), so that all are >= 0.
In units of the largest step, with ``start`` = s and mean s + mu, two rules compete: Gauss–Jacobi
with weight t^(s - 1), good when mu is small, and Gauss–Laguerre scaled by the mean, good when the
mean is large. How many nodes each needs was measured on the widest laws of D that independent
labels have (`benchmarks/quadrature.py` makes the tables again).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction as Rational
from functools import lru_cache
from math import lcm
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.polynomial.laguerre import laggauss
from scipy.optimize import nnls
from scipy.special import roots_jacobi

from setwise.targets.measure import ZERO_DENOMINATOR, Array, Fraction

# Steps of D that are whole multiples of a common unit, with at most so many units, are rescaled
# to whole numbers, for which a Gauss rule is exact.
MOST_UNITS = 12
UNIFORM_ERROR = 1e-13


@lru_cache(maxsize=4096)
def jacobi(nodes: int, phi: float) -> tuple[Array, Array]:
    """Nodes t and weights w with sum w f(t) = integral of t^phi f(t) over [0, 1]."""
    x, w = roots_jacobi(nodes, 0.0, phi)
    return (1.0 + x) / 2.0, w * np.exp2(-phi - 1.0)


@lru_cache(maxsize=16)
def laguerre(nodes: int) -> tuple[Array, Array]:
    """Nodes x and weights w with sum w f(x) = integral of f over [0, inf)."""
    x, w = laggauss(nodes)
    return x, w * np.exp(x)


def exponential_sum(low: float, high: float) -> tuple[Array, Array]:
    """Nodes x, weights w with sum w exp(-x D) = (1 + e) / D, |e| < 1e-13, for D in [low, high]."""
    x, w = _exponential_sum(int(np.ceil(np.log2(max(high / low, 1.0)))))
    return x / low, w / low


def uniform(
    step: Array, start: Array | float, high: Array | float, zero: Array | bool
) -> tuple[Array, Array]:
    """The exponential sum for all values above 0 of every D between its start and ``high``.

    The least one is the start, or the least step where D can be 0.
    """
    low = float(np.where(zero, step[step > 0].min(initial=1.0), start).min())
    return exponential_sum(low, max(float(np.max(high)), low))


@lru_cache(maxsize=64)
def _exponential_sum(octaves: int) -> tuple[Array, Array]:
    """The rule for D in [1, 2^octaves]: nonnegative least squares over a dense set of nodes.

    Nonnegative weights make the solution sparse and the sum free of cancellation.
    """
    octaves = max(octaves, 1)
    places = np.exp2(np.linspace(0.0, octaves, 30 * octaves + 2))
    x = np.exp(np.linspace(np.log(1e-4 / places[-1]), np.log(34.0), 60 + 22 * octaves))
    relative = places[:, None] * np.exp(-np.outer(places, x)) * x
    w, _ = nnls(relative, np.ones(len(places)))
    w = w * x
    # Where D can be 0 the sum of the weights multiplies rounding: drop those without effect.
    useful = w * np.exp(-x) > 1e-17
    x, w = x[useful], w[useful]
    fine = np.exp2(np.linspace(0.0, octaves, 120 * octaves))
    error = np.abs(fine * (np.exp(-np.outer(fine, x)) @ w) - 1.0).max()
    if error > UNIFORM_ERROR:
        raise ArithmeticError(f"the rule for 1/D on [1, 2^{octaves}] is only good to {error:.1e}")
    return x, w


STARTS = (0.01, 0.1, 0.3, 1.0, 2.0, 5.0, 8.0, 14.0, 20.0, 40.0, 100.0)
MEANS = (0.5, 1.0, 2.0, 4.0, 7.0, 10.0, 14.0, 20.0, 30.0, 40.0, 60.0, 100.0, 200.0, 1000.0)
SINGLE_ERROR, DOUBLE_ERROR = 1e-7, 1e-10
MOST_NODES = 16
# Beyond this start Jacobi weights overflow, and Laguerre rules need three or four nodes.
LARGEST_START = 200.0
# The bin of means from which on D is so concentrated that where it begins does not matter.
LARGE_MEAN = MEANS.index(40.0)

# Nodes needed for that error, [start, mean]; 0 where more than 24.
JACOBI = {
    SINGLE_ERROR: (
        (4, 4, 5, 6, 7, 9, 10, 11, 13, 15, 18, 23, 0, 0),
        (4, 4, 5, 6, 7, 8, 10, 11, 13, 15, 18, 23, 0, 0),
        (4, 4, 5, 6, 7, 8, 10, 11, 13, 15, 18, 23, 0, 0),
        (4, 4, 5, 6, 7, 8, 9, 11, 13, 15, 18, 22, 0, 0),
        (3, 4, 5, 6, 7, 8, 9, 11, 13, 14, 17, 22, 0, 0),
        (3, 4, 4, 5, 6, 7, 8, 10, 12, 13, 16, 21, 0, 0),
        (3, 3, 4, 5, 6, 7, 8, 9, 11, 12, 15, 20, 0, 0),
        (3, 3, 4, 4, 5, 6, 7, 8, 10, 11, 14, 18, 0, 0),
        (3, 3, 3, 4, 5, 5, 6, 7, 9, 10, 12, 16, 24, 0),
        (2, 3, 3, 3, 4, 4, 5, 6, 7, 8, 10, 13, 20, 0),
        (2, 2, 2, 3, 3, 3, 4, 4, 5, 5, 6, 8, 12, 0),
    ),
    DOUBLE_ERROR: (
        (4, 5, 6, 8, 9, 10, 12, 13, 16, 18, 22, 0, 0, 0),
        (4, 5, 6, 8, 9, 10, 12, 13, 16, 18, 21, 0, 0, 0),
        (4, 5, 6, 8, 9, 10, 12, 13, 16, 18, 21, 0, 0, 0),
        (4, 5, 6, 7, 9, 10, 11, 13, 15, 17, 21, 0, 0, 0),
        (4, 5, 6, 7, 9, 10, 11, 13, 15, 17, 21, 0, 0, 0),
        (4, 5, 5, 7, 8, 9, 10, 12, 14, 16, 20, 0, 0, 0),
        (4, 4, 5, 6, 8, 9, 10, 11, 13, 15, 19, 24, 0, 0),
        (4, 4, 5, 6, 7, 8, 9, 10, 12, 14, 17, 22, 0, 0),
        (3, 4, 4, 5, 6, 7, 8, 9, 11, 13, 16, 20, 0, 0),
        (3, 3, 4, 4, 5, 6, 7, 8, 9, 10, 13, 17, 0, 0),
        (3, 3, 3, 4, 4, 5, 5, 6, 6, 7, 9, 11, 17, 0),
    ),
}
LAGUERRE = {
    SINGLE_ERROR: (
        (0, 0, 0, 0, 0, 0, 0, 0, 7, 6, 5, 4, 4, 3),
        (0, 0, 0, 0, 0, 0, 0, 0, 7, 6, 5, 4, 4, 3),
        (18, 18, 0, 0, 0, 0, 0, 15, 7, 6, 5, 4, 4, 3),
        (12, 11, 12, 18, 24, 0, 20, 10, 7, 6, 5, 4, 4, 3),
        (8, 8, 8, 11, 13, 13, 11, 8, 6, 5, 5, 4, 4, 3),
        (5, 6, 6, 6, 7, 7, 7, 6, 6, 5, 5, 4, 3, 3),
        (4, 5, 5, 5, 5, 6, 6, 6, 5, 5, 4, 4, 3, 3),
        (4, 4, 4, 4, 4, 5, 5, 5, 5, 4, 4, 4, 3, 3),
        (3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 3, 3),
        (3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 3, 3),
        (2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3),
    ),
    DOUBLE_ERROR: (
        (0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 8, 6, 5, 4),
        (0, 0, 0, 0, 0, 0, 0, 0, 15, 10, 8, 6, 5, 4),
        (0, 0, 0, 0, 0, 0, 0, 0, 14, 10, 8, 6, 5, 4),
        (19, 18, 17, 0, 0, 0, 0, 0, 12, 9, 7, 6, 5, 4),
        (13, 13, 13, 16, 21, 24, 24, 18, 11, 9, 7, 6, 5, 4),
        (8, 9, 9, 9, 11, 12, 12, 11, 9, 8, 7, 6, 5, 4),
        (7, 7, 7, 8, 8, 9, 9, 9, 8, 8, 7, 6, 5, 4),
        (5, 6, 6, 6, 6, 7, 7, 7, 7, 7, 6, 6, 5, 4),
        (5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 6, 5, 5, 4),
        (4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5, 5, 4),
        (3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4),
    ),
}


class RuleTable(NamedTuple):
    """The rules of the numbers of true labels seen so far, one slot each."""

    slot: Array  # (l + 1,): the slot of each number of true labels, -1 where there is none yet
    start: Array  # (slots,): the least D
    zero: Array  # (slots,): 1 where D can be 0
    least: Array  # (slots,): the least N
    count: Array  # (slots, bins): how many nodes, by the mean of D; negative for Laguerre nodes
    power_true: Array  # (slots, bins, nodes): t^step of a true label at each node t
    power_false: Array  # (slots, bins, nodes): and of a false one
    weight: Array  # (slots, bins, nodes)


@dataclass
class Rules:
    """Rules of one fraction N / D over ``n_labels`` labels, made when first needed.

    ``flip`` says whether true and false labels count when left out; ``step`` are their steps, in
    units of the largest, which is ``unit``. In the same unit, a label adds ``on`` to N when it
    counts and ``off`` when not, beyond the smaller of the two: so N is a sum of terms of one sign,
    and 0 is exactly 0. Each is a pair, (true, false). The least D is ``start`` and the least N is
    ``least``, linear in the counts of labels: (constant, for a true one, for a false one). The
    largest coefficient of D is ``largest``.
    """

    measure: Fraction
    n_labels: int
    error: float

    def __post_init__(self):
        unit, steps = whole_steps(self.measure)
        # A step as large as the largest has so many whole units, if there are any.
        self.units = np.abs(steps).max() or 1.0
        self.unit, self.flip, self.step = unit * self.units, steps < 0, np.abs(steps) / self.units
        (self.least, adds), (self.start, _) = (
            _beyond_least(part / self.unit)
            for part in (self.measure.numerator, self.measure.denominator)
        )
        self.largest = float(np.abs(self.measure.denominator).max() / self.unit)
        self.on, self.off = np.where(self.flip, adds[::-1], adds)
        self._made: dict[int, list[tuple[int, Array]]] = {}
        self._table: RuleTable | None = None
        self._lock = Lock()

    def __reduce__(self):
        # A lock cannot be copied or sent elsewhere; the tables are made again.
        return Rules, (self.measure, self.n_labels, self.error)

    def ends(
        self, n_true: Array, n_known: Array | None = None
    ) -> tuple[Array, Array, Array, Array]:
        """The least D, the largest, whether D can be 0, and the least N, by number of true labels.

        Where D can be 0 it begins there, exactly. All labels are counted, or ``n_known`` of them.
        """
        n_false = (self.n_labels if n_known is None else n_known) - n_true
        start, least = (c[0] + c[1:] @ [n_true, n_false] for c in (self.start, self.least))
        zero = start <= ZERO_DENOMINATOR * self.largest
        start = np.where(zero, 0.0, start)
        above = np.abs(self.measure.numerator).max() / self.unit * self.n_labels
        least = np.where(np.abs(least) <= ZERO_DENOMINATOR * above, 0.0, least)
        return start, start + self.step @ [n_true, n_false], zero, least

    def table(self, n_true: Array) -> RuleTable:
        """The table, with all the given numbers of true labels in it."""
        with self._lock:
            needed = np.flatnonzero(np.bincount(n_true)) if len(n_true) else np.array([0])
            if self._table is None or (self._table.slot[needed] < 0).any():
                new = np.array([n for n in needed.tolist() if n not in self._made])
                make = Reciprocal(self.step, self.error).rules
                for n, *ends in zip(new, *(part.tolist() for part in self.ends(new)), strict=True):
                    self._made[int(n)] = make(*ends[:3])
                known = np.array(list(self._made))
                slot = np.full(self.n_labels + 1, -1)
                slot[known] = np.arange(len(known))
                start, _, zero, least = self.ends(known)
                rules = tabulated(list(self._made.values()))
                self._table = RuleTable(slot, start, zero * 1.0, least, *rules)
            return self._table


def _beyond_least(coefficients: Array) -> tuple[Array, Array]:
    """c · (1, tp, fp, fn, tn) as what labels add at least, and what they add beyond that.

    The first is (c_0, least of a true label, least of a false one); the second, (2, 2), what a
    label adds beyond that in the set and out of it, for (true, false) ones.
    """
    states = coefficients[1:].reshape(2, 2)
    least = states.min(axis=0)
    beyond = states - least
    beyond[beyond <= ZERO_DENOMINATOR * np.abs(coefficients).max()] = 0.0
    return np.concatenate([coefficients[:1], least]), beyond


@dataclass(frozen=True)
class Reciprocal:
    """Rules for 1/D, D = start + a sum of steps of two kinds, to a relative error.

    ``step`` are the two steps in units of the larger; ``whole`` says that D - start is a whole
    number of them.
    """

    step: Array
    error: float
    whole: bool = True

    def rules(self, start: float, high: float, zero: bool) -> list[tuple[int, Array]]:
        """For each bin of the mean of D - start: the number of nodes and the nodes.

        The nodes are the powers t^step of both kinds and the weights, (3, nodes). A negative count
        stands for that many Laguerre nodes, which are scaled when the mean is known. ``zero``: D
        can be 0, and the rule is for the values above.
        """
        made: dict[tuple[str, int], Array] = {}
        rules = []
        for level in range(len(MEANS) + 1):
            kind, count = self._choice(start, high, zero, level)
            if (kind, count) not in made:
                made[kind, count] = self._nodes(kind, count, start, high, zero)
            nodes = made[kind, count]
            rules.append((-count if kind == "laguerre" else nodes.shape[1], nodes))
        return rules

    def _choice(self, start: float, high: float, zero: bool, level: int) -> tuple[str, int]:
        """The rule with the fewest nodes for means in a bin, and their number."""
        unit_steps = self.whole and set(self.step.tolist()) <= {0.0, 1.0}
        base = 1.0 if zero else start
        place = int(np.searchsorted(STARTS, base * (1 + 1e-12), side="right")) - 1
        last = len(MEANS) - 1
        edges = LAGUERRE[self.error][max(place, 0)][max(level - 1, 0) : min(level, last) + 1]
        far = max(edges) if min(edges) > 0 and place >= 0 else MOST_NODES + 1
        if zero and not unit_steps and level <= LARGE_MEAN:
            # D begins at its smallest step, for which no row was measured.
            far = MOST_NODES + 1
        near = MOST_NODES + 1
        if unit_steps and start <= LARGEST_START:
            # Exact for all counts that can occur, or as many as the bin needs.
            degree = high - base
            near = max(int(np.ceil((degree + 1.0) / 2.0)), 1)
            needed = JACOBI[self.error][max(place, 0)][min(level, last)]
            near = min(near, needed) if needed and level <= last else near
        if near <= MOST_NODES and (near < far or (near == far and base < 5.0)):
            return "jacobi", near
        return ("laguerre", far) if far <= MOST_NODES else ("uniform", 0)

    def _nodes(self, kind: str, count: int, start: float, high: float, zero: bool) -> Array:
        """Powers for a true and a false label and weights, (3, nodes); none stored for Laguerre."""
        if kind == "laguerre":
            return np.empty((3, 0))
        if kind == "jacobi":
            t, w = jacobi(count, 0.0 if zero else start - 1.0)
            return np.array([t ** self.step[0], t ** self.step[1], w / t if zero else w])
        x, w = uniform(self.step, start, high, zero)
        return np.exp([-x * self.step[0], -x * self.step[1], np.log(w) - x * start])


def tabulated(made: list[list[tuple[int, Array]]]) -> tuple[Array, Array, Array, Array]:
    """Rules as arrays: counts [row, bin of the mean], powers and weights [row, bin, node]."""
    width = max(nodes.shape[1] for rules in made for _, nodes in rules)
    tables = np.zeros((3, len(made), len(MEANS) + 1, width))
    for row, rules in enumerate(made):
        for level, (_, nodes) in enumerate(rules):
            tables[:, row, level, : nodes.shape[1]] = nodes
    counts = np.array([[count for count, _ in rules] for rules in made])
    return counts, tables[0], tables[1], tables[2]


def _laguerre_table() -> tuple[Array, Array]:
    """Row m holds the m nodes and weights of the Laguerre rule, (17, 16) each."""
    x, w = np.zeros((2, MOST_NODES + 1, MOST_NODES))
    for nodes in range(1, MOST_NODES + 1):
        x[nodes, :nodes], w[nodes, :nodes] = laguerre(nodes)
    return x, w


LAGUERRE_TABLE = _laguerre_table()


def whole_steps(measure: Fraction) -> tuple[float, Array]:
    """The unit to divide by, and the steps of D for a true and a false label in that unit.

    The steps are whole numbers if they are commensurable; otherwise the unit is the larger step.
    """
    below = measure.denominator
    steps = np.array([below[1] - below[3], below[2] - below[4]])
    largest = np.abs(steps).max()
    tiny = ZERO_DENOMINATOR * np.abs(below).max()
    if largest <= tiny:
        return 1.0, np.zeros(2)
    steps = np.where(np.abs(steps) <= tiny, 0.0, steps)
    ratios = [Rational(float(step / largest)).limit_denominator(MOST_UNITS) for step in steps]
    if all(abs(float(r) * largest - step) <= tiny for r, step in zip(ratios, steps, strict=True)):
        units = lcm(*(r.denominator for r in ratios))
        return float(largest / units), np.array([float(r * units) for r in ratios])
    return float(largest), steps / largest

"""The best label set where the distribution is a list, or known by label and size.

Over a list, the expected loss of each candidate is a matrix product of posterior and losses. For
targets whose optimum needs only some sums, the best of all 2^l label sets follows from
P(label, size): recall@k, and F-beta (Waegeman, Dembczynski, Jachnik, Cheng and Hüllermeier, 2014).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from setwise.decoders.decisions import TIE, Decisions
from setwise.distributions import Distribution, Independent
from setwise.kernels import view_kernel
from setwise.spaces.listing import sums_over
from setwise.spaces.space import all_sets, smaller_first
from setwise.spaces.symmetric import largest_first
from setwise.sparse import row_ranges
from setwise.targets.measure import Additive, Array, Fraction, Measure, OfCounts, RowIndex
from setwise.targets.target import Target, predicted_size, utility_quotient
from setwise.threads import for_rows

# Candidates whose losses are computed at a time.
CANDIDATES = 1024
# So many losses are kept for a list that is decoded again.
MOST_KEPT = 2**23
# Sets less likely than this in every row add less than rounding to an expected loss.
NOTHING = 2.0**-60
# Up to sets of so many labels, losses are looked up by the counts: their number cubed.
MOST_TABLED = 100
# From so many labels on, not all label sets are compared.
MOST_LABELS = 12


@dataclass(frozen=True)
class Candidates:
    """Label sets in a list, and sums over the labels of each."""

    sets: Array

    def sums(self, present: Array, absent: Array) -> Array:
        """``present`` over the labels of each set plus ``absent`` over the others, (n, K)."""
        return sums_over(self.sets, present, absent)


def kept_losses(measure: Measure, sets: Array, candidates: Array) -> Array | None:
    """The loss of each candidate against each of the sets, (K, candidates); None of too many."""
    if len(sets) * len(candidates) > MOST_KEPT:
        return None
    return measure.matrix(Candidates(candidates), sets)


def best_among(
    measure: Measure, posterior: Array, sets: Array, candidates: Array | Iterator[Array],
    losses: Array | None = None,
) -> Decisions:  # fmt: skip
    """The candidate of least expected loss under a posterior over ``sets``; ties: the earlier.

    ``candidates`` are label sets, or parts of a list of them, with their `kept_losses` if there are
    any; K^2 multiplications a row.
    """
    likely = (posterior > NOTHING).any(axis=0)
    if not likely.all():
        posterior, sets = posterior[:, likely], sets[likely]
        losses = None if losses is None else losses[likely]
    n, rows = len(posterior), np.arange(len(posterior))
    chosen = np.zeros((n, sets.shape[1]), np.uint8)
    best, second = np.full(n, np.inf), np.full(n, np.inf)
    parts: Any = candidates
    if isinstance(candidates, np.ndarray):
        parts = _parts(candidates) if losses is None else [candidates]
    for part in parts:
        risk = posterior @ (measure.matrix(Candidates(part), sets) if losses is None else losses)
        place = np.argmax(risk <= risk.min(axis=1, keepdims=True) + TIE, axis=1)
        least = risk[rows, place]
        risk[rows, place] = np.inf
        better = least < best - TIE
        second = np.minimum(np.minimum(second, risk.min(axis=1)), np.where(better, best, least))
        best = np.where(better, least, best)
        chosen[better] = part[place[better]]
    return Decisions(chosen, best, second)


def with_edits(sets: Array, allowed: Callable[[Array], Array] | None) -> Iterator[Array]:
    """The listed sets, then those that differ from one in one label and are ``allowed``.

    In the order of the list and of the labels, none twice; by default all are allowed.
    """
    yield from _parts(sets)
    seen = {row.tobytes() for row in np.packbits(sets, axis=1)}
    for row in sets:
        edited = row ^ np.eye(len(row), dtype=np.uint8)
        edited = edited if allowed is None else edited[allowed(edited)]
        keys = [key.tobytes() for key in np.packbits(edited, axis=1)]
        new = [place for place, key in enumerate(keys) if key not in seen]
        seen.update(keys)
        if new:
            yield from _parts(edited[new])


def or_ranked(found: Decisions, measure: OfCounts, posterior: Array, sets: Array) -> Decisions:
    """The better of what was found over the list and of the k most probable labels of a row.

    For every k up to the size of the largest listed set; it costs K times as many sums a row.
    """
    n_labels, size = sets.shape[1], sets.sum(axis=1, dtype=np.int64)
    most, index, marginals = int(size.max()), RowIndex.of(sets), posterior @ sets
    if most == 0:
        return found
    losses = _by_counts(measure, most, n_labels) if most <= MOST_TABLED else None
    chosen, best, second = (part.copy() for part in found)
    columns = np.arange(1, most + 1)
    for row, chance in enumerate(posterior):
        order = np.argsort(-marginals[row], kind="stable")[:most]
        tops = np.zeros((most, n_labels), np.uint8)
        tops[:, order] = np.tri(most, dtype=np.uint8)
        likely = chance > NOTHING
        hits = np.cumsum(sets[likely][:, order], axis=1, dtype=np.int64)
        true = size[likely, None]
        if losses is None:
            counts = hits, columns - hits, true - hits, n_labels - columns - true + hits
            risk = chance[likely] @ measure.of_counts(*counts)
        else:
            risk = chance[likely] @ losses[hits, columns, true]
        # (Listed ones have been compared.)
        risk[index.find(tops) >= 0] = np.inf
        place = int(np.argmin(risk))
        other = np.partition(risk, 1)[1] if most > 1 else np.inf
        if risk[place] < best[row] - TIE:
            chosen[row], second[row] = tops[place], min(best[row], other)
            best[row] = risk[place]
        else:
            second[row] = min(second[row], risk[place])
    return Decisions(chosen, best, second)


def _by_counts(measure: OfCounts, most: int, n_labels: int) -> Array:
    """The loss by the numbers of hits, of predicted labels and of true ones, up to ``most``."""
    tp, k, true = np.ogrid[: most + 1, : most + 1, : most + 1]
    # Counts that cannot be have the loss of the nearest that can.
    tp = np.clip(tp, np.maximum(k + true - n_labels, 0), np.minimum(k, true))
    counts = tp, k - tp, true - tp, n_labels - k - true + tp
    return measure.of_counts(*(count.astype(np.float64) for count in counts))


def _parts(sets: Array) -> Iterator[Array]:
    for first in range(0, len(sets), CANDIDATES):
        yield sets[first : first + CANDIDATES]


@dataclass(frozen=True)
class EverySet:
    """All 2^l label sets, smaller sets first, then those of lower labels, against each other."""

    measure: Measure
    sets: Array

    is_by_marginals = False
    leaves_out_impossible = False

    @classmethod
    def of(cls, target: Target, n_labels: int) -> EverySet:
        """For a target that is defined on every label set."""
        if n_labels > MOST_LABELS:
            raise ValueError(
                f"{target} can be decoded from marginals for at most {MOST_LABELS} labels, as all "
                f"label sets are compared; use decode_catalog with listed label sets"
            )
        sets = all_sets(n_labels)
        sets = sets[smaller_first(sets)]
        measure = target.measure(n_labels, "loss")
        try:
            measure.matrix(Candidates(sets[:1]), sets)
        except ValueError as error:
            raise ValueError(
                f"{target} does not list all {2**n_labels} label sets, which independent marginals "
                f"make possible ({error}); use decode_catalog with its label sets"
            ) from None
        return cls(measure, sets)

    def decide(self, values: Array, second: bool) -> Decisions:
        """The best of all label sets for independent labels."""
        return self.best(Independent(values))

    def best(self, given: Distribution) -> Decisions:
        """The best of all label sets, some rows at a time."""
        parts = (given[rows] for rows in row_ranges(len(given), len(self.sets)))
        chances = (self._posterior(part) for part in parts)
        return Decisions.joined(
            [best_among(self.measure, chance, self.sets, self.sets) for chance in chances]
        )

    def of_sets(self, values: Array, sets: Array) -> Array:
        """The expected loss of given sets, (n,)."""
        losses = [self.measure.rows(np.broadcast_to(y, self.sets.shape), self.sets) for y in sets]
        return np.einsum("ij,ij->i", self._posterior(Independent(values)), np.array(losses))

    def _posterior(self, distribution: Distribution) -> Array:
        """The probability of every label set, (n, 2^l)."""
        shape = len(distribution), distribution.n_labels
        logs = [distribution.log_probability(np.broadcast_to(y, shape)) for y in self.sets]
        return np.exp(np.stack(logs, axis=1))


def best_by_label_sizes(target: Target, given: Distribution) -> Decisions | None:
    """The best of all label sets from P(label, size), some rows at a time; None where it is not.

    For precision@k and recall@k, and for utilities that are a multiple of tp over positive
    multiples of both sizes, as F-beta is: c tp / (a |y'| + b |y|), D = a (tp + fp) + b (tp + fn).
    """
    utility, size = utility_quotient(target), predicted_size(target)
    if size is None and not (utility is not None and _divides_by_sizes(utility)):
        return None
    n_labels, parts = given.n_labels, []
    measure: Any = target.measure(n_labels, "utility")
    for rows in row_ranges(len(given), n_labels * (n_labels + 1)):
        found = given[rows].label_sizes()
        if found is None:
            return None
        if size is None:
            parts.append(_best_quotient(measure, *found))
        else:
            parts.append(_best_of_size(measure, size, *found))
    return Decisions.joined(parts)


def _divides_by_sizes(utility: Fraction) -> bool:
    constant, tp, fp, fn, tn = utility.denominator
    only_hits = utility.numerator[1] > 0.0 and not utility.numerator[[0, 2, 3, 4]].any()
    return bool(only_hits and constant == tn == 0.0 and min(fp, fn) > 0.0 and tp == fp + fn)


def _best_of_size(measure: Additive, size: int, joint: Array, chance: Array) -> Decisions:
    """The ``size`` labels of highest expected utility, from P(label, size) and P(size).

    For a utility that is a constant and a weight for each hit, both by the number of true labels.
    """
    n_true = np.arange(chance.shape[1], dtype=np.float64)
    values = np.einsum("s,nsi->ni", measure.scale(n_true), joint) * measure.values[1, 1]
    order = np.argsort(-values, axis=1, kind="stable")
    ranked = np.take_along_axis(values, order, axis=1)
    sets = np.zeros(values.shape, np.uint8)
    np.put_along_axis(sets, order[:, :size], 1, axis=1)
    risk = 1.0 - chance @ measure.constant(n_true) - ranked[:, :size].sum(axis=1)
    if size == values.shape[1]:
        return Decisions(sets, risk, np.full(len(values), np.inf))
    return Decisions(sets, risk, risk + ranked[:, size - 1] - ranked[:, size])


def _best_quotient(utility: Fraction, joint: Array, chance: Array) -> Decisions:
    """The best of all label sets for c tp / (a |y'| + b |y|).

    A set of k labels has the expected utility sum_i W_ik over them, W_ik = sum_s P(i, s) c /
    (a k + b s): the k largest are best. The sum over all labels of W_ik falls with k, and the
    search ends where it is below the best found.
    """
    n, n_labels = len(joint), joint.shape[2]
    chosen, best, second = np.zeros((n, n_labels), np.uint8), np.empty(n), np.empty(n)
    weights = utility.numerator[1], utility.denominator[2], utility.denominator[3]
    inputs = np.ascontiguousarray(joint), chance, weights, utility.empty
    for_rows(
        best_quotient_rows, n, *inputs, chosen, best, second, least=8,
        room=lambda: (np.empty(n_labels), *np.empty((2, n_labels), np.int64)),
    )  # fmt: skip
    return Decisions(chosen, 1.0 - best, 1.0 - second)


@view_kernel
def best_quotient_rows(
    start, stop, joint, chance, weights, empty, chosen, best, second, value, order, taken
):  # fmt: skip
    """Decide each row; see `_best_quotient`. On ties the smaller set, then the lower labels.

    ``joint`` (n, K + 1, l), ``chance`` (n, K + 1), ``weights`` (c, a, b); out: ``chosen`` (n, l),
    and the utilities ``best`` and ``second`` (n,); room for labels: the last three, (l,) each.
    """
    largest, n_labels = joint.shape[1] - 1, joint.shape[2]
    hits, predicted, true = weights
    for row in range(start, stop):
        high, next_high = empty * chance[row, 0], -np.inf
        for k in range(1, n_labels + 1):
            most = 0.0
            for s in range(1, largest + 1):
                most += chance[row, s] * s * hits / (true * s + predicted * k)
            if most < next_high - TIE:
                break
            for i in range(n_labels):
                value[i] = 0.0
            for s in range(1, largest + 1):
                factor, line = hits / (true * s + predicted * k), joint[row, s]
                for i in range(n_labels):
                    value[i] += line[i] * factor
            largest_first(value, k + 1 if k < n_labels else k, order, taken)
            utility = 0.0
            for j in range(k):
                utility += value[order[j]]
            if utility > high + TIE:
                high, next_high = utility, max(high, next_high)
                for j in range(n_labels):
                    chosen[row, order[j]] = j < k
            else:
                next_high = max(next_high, utility)
            if k < n_labels:
                next_high = max(next_high, utility - value[order[k - 1]] + value[order[k]])
        best[row], second[row] = high, next_high

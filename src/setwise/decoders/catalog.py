"""The best label set for a posterior over listed label sets.

Over the list, the expected loss of each listed set is a matrix product of posterior and losses. For
targets whose optimum needs only some sums of the posterior, the best of all 2^l label sets follows
too: sums over labels from the marginals, F-beta from the joint law of each label and the size of
the set (Waegeman, Dembczynski, Jachnik, Cheng and Hüllermeier, 2014).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from setwise.decoders.decisions import TIE, Decisions
from setwise.kernels import kernel
from setwise.spaces.catalog import Catalog
from setwise.spaces.symmetric import largest_first
from setwise.targets.measure import Array, Measure
from setwise.threads import for_rows

# Listed sets whose losses are computed at a time.
CANDIDATES = 1024


def best_among(measure: Measure, posterior: Array, sets: Array, candidates: Array) -> Decisions:
    """The candidate of least expected loss under a posterior over ``sets``; ties: the earlier."""
    return _best_of(measure, posterior, sets, _parts(candidates))


def best_edited(
    measure: Measure, posterior: Array, sets: Array, allowed: Callable[[Array], Array] | None = None
) -> Decisions:
    """The best of the listed sets and of those allowed that differ from one in one label.

    ``allowed`` says of each set whether it may be predicted; by default all may.

    Ties: the earlier of the list, then the others in the order of the list and of the labels. All
    of them are compared: K^2 l multiplications a row for K listed sets.
    """
    return _best_of(measure, posterior, sets, _with_edits(sets, allowed))


def best_f_beta(beta: float, empty: float, posterior: Array, sets: Array) -> Decisions:
    """The set of least expected F-beta loss among all label sets.

    With P_is = P(label i present, set of size s), a set of k labels has the expected utility
    sum_i W_ik, W_ik = sum_s P_is (1 + beta²) / (beta² s + k): the k largest are best. The sum over
    all labels of W_ik falls with k, and the search ends where it is below the best found.
    """
    n, n_labels = len(posterior), sets.shape[1]
    chosen = np.zeros((n, n_labels), np.uint8)
    best, second = np.empty(n), np.empty(n)
    rows, labels = np.nonzero(sets)
    begins = np.searchsorted(rows, np.arange(len(sets) + 1))
    for_rows(
        f_beta_rows, n, posterior, begins, labels, float(beta) ** 2, float(empty),
        chosen, best, second, least=8,
    )  # fmt: skip
    return Decisions(chosen, 1.0 - best, 1.0 - second)


def best_of_size(values: Array, size: int, constant: Array) -> Decisions:
    """The ``size`` labels of highest value; their sum and the constant are the utility."""
    order = np.argsort(-values, axis=1, kind="stable")
    ranked = np.take_along_axis(values, order, axis=1)
    sets = np.zeros(values.shape, np.uint8)
    np.put_along_axis(sets, order[:, :size], 1, axis=1)
    risk = 1.0 - constant - ranked[:, :size].sum(axis=1)
    if size == values.shape[1]:
        return Decisions(sets, risk, np.full(len(values), np.inf))
    return Decisions(sets, risk, risk + ranked[:, size - 1] - ranked[:, size])


def _parts(sets: Array) -> Iterator[Array]:
    for first in range(0, len(sets), CANDIDATES):
        yield sets[first : first + CANDIDATES]


def _with_edits(sets: Array, allowed: Callable[[Array], Array] | None) -> Iterator[Array]:
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


def _best_of(measure: Measure, posterior: Array, sets: Array, parts: Iterator[Array]) -> Decisions:
    """The best of the candidates, the earliest of those that are equal."""
    n = len(posterior)
    rows = np.arange(n)
    chosen = np.zeros((n, sets.shape[1]), np.uint8)
    best, second = np.full(n, np.inf), np.full(n, np.inf)
    for part in parts:
        risk = posterior @ measure.matrix(Catalog(part), sets)
        place = np.argmin(risk, axis=1)
        place = np.argmax(risk <= risk[rows, place][:, None] + TIE, axis=1)
        least = risk[rows, place]
        risk[rows, place] = np.inf
        better = least < best - TIE
        second = np.minimum(np.minimum(second, risk.min(axis=1)), np.where(better, best, least))
        best = np.where(better, least, best)
        chosen[better] = part[place[better]]
    return Decisions(chosen, best, second)


@kernel
def f_beta_rows(start, stop, posterior, begins, labels, square, empty, chosen, best, second):
    """Decide each row; see `best_f_beta`. ``labels`` of listed set k are begins[k] : begins[k + 1].

    On ties the smaller set, then the lower labels.
    """
    n_sets, n_labels = posterior.shape[1], chosen.shape[1]
    largest = 0
    for k in range(n_sets):
        largest = max(largest, begins[k + 1] - begins[k])
    joint, law = np.empty((n_labels, largest + 1)), np.empty(largest + 1)
    value, order = np.empty(n_labels), np.empty(n_labels, np.int64)
    for row in range(start, stop):
        joint[:] = 0.0
        law[:] = 0.0
        for k in range(n_sets):
            size, mass = begins[k + 1] - begins[k], posterior[row, k]
            law[size] += mass
            if mass > 0.0:
                for place in range(begins[k], begins[k + 1]):
                    joint[labels[place], size] += mass
        high, next_high = empty * law[0], -np.inf
        for k in range(1, n_labels + 1):
            most = 0.0
            for s in range(1, largest + 1):
                most += law[s] * s * (1.0 + square) / (square * s + k)
            if most < next_high - TIE:
                break
            for i in range(n_labels):
                value[i] = 0.0
            for s in range(1, largest + 1):
                factor = (1.0 + square) / (square * s + k)
                for i in range(n_labels):
                    value[i] += joint[i, s] * factor
            largest_first(value, min(k + 1, n_labels), order)
            utility = 0.0
            for j in range(k):
                utility += value[order[j]]
            if utility > high + TIE:
                high, next_high = utility, max(high, next_high)
                chosen[row] = 0
                for j in range(k):
                    chosen[row, order[j]] = 1
            else:
                next_high = max(next_high, utility)
            if k < n_labels:
                next_high = max(next_high, utility - value[order[k - 1]] + value[order[k]])
        best[row], second[row] = high, next_high

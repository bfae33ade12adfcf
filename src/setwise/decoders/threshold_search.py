"""The search for thresholds: scored entries of a matrix, and the best cut of their ranking.

Entries that share a threshold are ranked by falling score; a cut predicts the first so many of
them, and never parts equal scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from setwise.decoders.population import POPULATIONS, ZERO_SHARE, Average, By, Utilities, utility_at
from setwise.kernels import kernel
from setwise.sparse import entries_of, places_among, refuse_entries, tidied, tidy_sets
from setwise.targets import Target
from setwise.targets.measure import Array
from setwise.threads import for_rows
from setwise.validation import label_matrix, real_vector, require_entries, same_rows, score_matrix

# A cut with more predictions must be better by more than this.
EQUAL = 1e-12


class RankedEntries(NamedTuple):
    """Entries in groups that share a threshold, those of a group by falling score.

    Group g has the entries ``start[g]`` to ``start[g + 1]`` and the populations ``owned[g]`` to
    ``owned[g + 1]``. An entry stands for ``size`` of one score in one population, of which ``true``
    are true, or are expected to be.
    """

    start: Array
    owned: Array
    score: Array
    size: Array
    true: Array
    population: Array

    def thresholds(self, taken: Array) -> tuple[Array, Array]:
        """A threshold for each group that takes its first so many entries, and its bounds (2, m).

        It stands halfway between the scores left and right of the cut, above the lower and not
        above the upper one. Above all scores it is +inf, below all of them -inf.
        """
        place, last = self.start[:-1] + taken, len(self.score) - 1
        lower = np.where(place < self.start[1:], self.score[np.minimum(place, last)], -np.inf)
        upper = np.where(taken > 0, self.score[np.maximum(place - 1, 0)], np.inf)
        return halfway(lower, upper), np.stack([lower, upper])


def halfway(lower: Array, upper: Array) -> Array:
    """Halfway between two scores, above the lower one."""
    middle = lower / 2.0 + upper / 2.0
    return np.where((lower < middle) | np.isinf(lower), middle, upper)


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Scores and what is true of them, (n, l): 0 or 1, or a probability; rows may have weights.

    Both matrices are dense, or both tidy CSR: an entry that is not stored has score 0 and is false.
    The weights (n,) are above 0; by default a row counts once. ``missed`` (l,) is the weight of
    what is true of entries that are not stored, where that is known.
    """

    scores: Any
    true: Any
    weight: Array | None = None
    missed: Array | None = None

    def __getitem__(self, rows) -> ScoredRows:
        weight, scores = None if self.weight is None else self.weight[rows], self.scores[rows]
        return ScoredRows(scores, scores if self.true is self.scores else self.true[rows], weight)

    @property
    def mass(self) -> float:
        """The weight of all rows."""
        return float(self.shape[0] if self.weight is None else self.weight.sum())

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and labels."""
        return self.scores.shape

    @cached_property
    def entries(self) -> tuple[Array, Array, Array]:
        """Label, score and weight of what is true of each entry that has a score or is true.

        Of dense matrices label by label, of sparse ones row by row.
        """
        (n, n_labels), scores, true = self.shape, self.scores, self.true
        if isinstance(scores, np.ndarray):
            label = np.repeat(np.arange(n_labels, dtype=np.int32), n)
            score, truth = (np.array(m.T, np.float64, order="C").ravel() for m in (scores, true))
            return label, score, self._weighted(truth)
        label, score = scores.indices, scores.data.astype(np.float64, copy=False)
        if true is scores:
            return label, score, self._weighted(score)
        place, found = self._found
        label, score = (
            np.insert(old, place[~found], new)
            for old, new in ((label, true.indices[~found]), (score, 0.0))
        )
        truth = np.zeros(len(score))
        truth[place + np.cumsum(~found) - ~found] = true.data
        return label, score, self._weighted(truth)

    @cached_property
    def _found(self) -> tuple[Array, Array]:
        """Where each true entry stands, or would stand, among the scores; and whether it does."""
        return places_among(self.scores, self.true)

    @cached_property
    def ends(self) -> Array:
        """Where the entries of each row of sparse matrices begin and end, (n + 1,)."""
        if self.true is self.scores:
            return self.scores.indptr
        is_new = np.append(0, np.cumsum(~self._found[1]))
        return self.scores.indptr + is_new[self.true.indptr]

    @cached_property
    def row(self) -> Array:
        """The row of each entry."""
        n, n_labels = self.shape
        if isinstance(self.scores, np.ndarray):
            return np.tile(np.arange(n, dtype=np.int32), n_labels)
        return np.repeat(np.arange(n, dtype=np.int32), np.diff(self.ends))

    def _weighted(self, truth: Array) -> Array:
        return truth if self.weight is None else truth * self.weight[self.row]

    @cached_property
    def sizes(self) -> Array:
        """The weight of each entry."""
        return np.ones(len(self.entries[0])) if self.weight is None else self.weight[self.row]

    def populations(self, by: By) -> tuple[Array, int, float]:
        """The population of each entry, how many there are, and the weight of the cells in each."""
        label, (n, n_labels) = self.entries[0], self.shape
        if by == "all":
            return np.zeros(len(label), np.int32), 1, self.mass * n_labels
        if by == "label":
            return label.astype(np.int32, copy=False), n_labels, self.mass
        return self.row, n, float(n_labels)

    def counts(self, thresholds: Array, by: By) -> Array:
        """tp, fp, fn, tn of each population where a score reaches its label's threshold, (4, m)."""
        (label, score, true), (population, count, size) = self.entries, self.populations(by)
        tp, fn, predicted, scored = np.zeros((4, count))
        entries = label, population, score, self.sizes, true
        count_entries(entries, np.array(thresholds, np.float64), tp, fn, predicted, scored)
        # A threshold that is not above 0 is reached by every entry that is not stored.
        mass, always = self.mass, thresholds <= 0
        every = {"all": mass * always.sum(), "label": mass * always, "row": always.sum()}[by]
        predicted += every - scored
        return np.stack([tp, predicted - tp, fn, size - predicted - fn])

    def ranking(self, by: By, own: bool) -> RankedEntries:
        """The entries ranked together, or with ``own`` those of each label by themselves."""
        (_, score, true), (population, count, cells) = self.entries, self.populations(by)
        size, is_dense = self.sizes, isinstance(self.scores, np.ndarray)
        if not is_dense:
            # What is not stored stands as one entry of score 0 a population.
            rest = cells - np.bincount(population, size, minlength=count)
            some = np.flatnonzero(rest > ZERO_SHARE * cells)
            score, true = (np.append(part, np.zeros(len(some))) for part in (score, true))
            size, some = np.append(size, rest[some]), some.astype(np.int32)
            population = np.append(population, some)
        if own and is_dense:
            order, start = label_order(score, count), self.shape[0] * np.arange(count + 1)
        else:
            order, start = np.argsort(-score), np.array([0, len(score)])
        if own and not is_dense:
            # (Labels in the narrowest type are sorted by radix.)
            label = population[order].astype(np.min_scalar_type(count))
            order = order[np.argsort(label, kind="stable")]
            start = np.append(0, np.cumsum(np.bincount(population, minlength=count)))
        size = size if self.weight is None and is_dense else size.take(order)
        parts = score.take(order), size, true.take(order), population.take(order)
        return RankedEntries(start, np.arange(count + 1) if own else np.array([0, count]), *parts)


@kernel
def count_entries(entries, thresholds, tp, fn, predicted, always):
    """Sums over the entries of each population: see `ScoredRows.counts`.

    ``always`` counts those whose threshold is not above 0.
    """
    label, population, score, size, true = entries
    for i in range(len(score)):
        j, threshold = population[i], thresholds[label[i]]
        hit = 1.0 if score[i] >= threshold else 0.0
        tp[j] += hit * true[i]
        fn[j] += (1.0 - hit) * true[i]
        predicted[j] += hit * size[i]
        always[j] += size[i] if threshold <= 0.0 else 0.0


def label_order(score: Array, n_labels: int) -> Array:
    """The places of as many scores of each label by label and falling score."""
    table = score.reshape(n_labels, -1)
    order = np.empty(table.shape, np.int64)

    def run(start: int, stop: int) -> None:
        first = table.shape[1] * np.arange(start, stop)[:, None]
        order[start:stop] = np.argsort(-table[start:stop], axis=1) + first

    for_rows(run, n_labels, least=1)
    return order.ravel()


def labelled(scores: Any, y_true: Any, sample_weight: Any = None) -> ScoredRows:
    """Scores with their true label sets, checked."""
    is_sparse = hasattr(scores, "tocsr")
    table = sparse_scores(scores, None) if is_sparse else score_matrix(scores, None)
    require_entries(table.shape, "scores")
    if is_sparse and hasattr(y_true, "tocsr"):
        true: Any = _sparse(tidy_sets(y_true, "y_true"), table.shape[1], "y_true")
    else:
        true = label_matrix(y_true, table.shape[1])
        true = entries_of(true) if is_sparse else true
    same_rows(scores=table, y_true=true)
    return weighted(table, true, sample_weight)


def weighted(table: Any, true: Any, sample_weight: Any) -> ScoredRows:
    """A sample of checked matrices, with weights that are checked here; rows of weight 0 go."""
    if sample_weight is None:
        return ScoredRows(table, true)
    weight = real_vector(sample_weight, table.shape[0], "sample_weight")
    if not (weight.min() >= 0.0 and weight.max() > 0.0):
        raise ValueError("sample_weight must not be below 0 anywhere, nor 0 everywhere")
    return ScoredRows(table, true, weight)[np.flatnonzero(weight)]


def sparse_scores(scores: Any, n_labels: int | None) -> Any:
    """Scores as tidy CSR, finite and not below 0."""
    table = _sparse(tidied(scores, "scores"), n_labels, "scores")
    refuse_entries(table, ~np.isfinite(table.data), "scores", "be finite")
    above = "not be below 0 unless dense (what is not stored counts as 0)"
    refuse_entries(table, table.data < 0, "scores", above)
    return table


def _sparse(table: Any, n_labels: int | None, name: str) -> Any:
    if n_labels not in (None, table.shape[1]):
        raise ValueError(
            f"{name} must have shape (n, {n_labels}), one column for each label, "
            f"but its shape is {table.shape}"
        )
    return table


# --------------------------------------------------------------------------------------- the cuts


def best_thresholds(
    sample: ScoredRows, metric: Target, average: Average, own: bool
) -> tuple[Array, Array]:
    """The best threshold of each label, or for all, and the bounds of each, (2, l) or (2, 1)."""
    by = POPULATIONS[average]
    ranking, total = sample.ranking("label" if own else by, own), sample.populations(by)[2]
    if own and by == "all":
        return ranking.thresholds(_best_together(ranking, metric, total))
    count, taken = int(ranking.owned[-1]), np.zeros(len(ranking.start) - 1, np.int64)
    positives = np.bincount(ranking.population, ranking.true, minlength=count)
    # Utilities in fixed point: their sum then depends on no order and gathers no rounding.
    share = int(ranking.owned[1])
    unit = 2.0 ** (61 - share.bit_length())
    settings = Utilities.of(metric, positives, total), unit, int(np.ceil(EQUAL * share * unit))
    for_rows(best_cut_rows, len(taken), ranking, *settings, taken, least=1)
    # A label without a positive example is never predicted.
    return ranking.thresholds(np.where(positives > 0, taken, 0) if own else taken)


@kernel
def best_cut_rows(first, last, ranking, utilities, unit, margin, taken):
    """How many entries of each group to take, (groups,), for the largest mean utility.

    Passing an entry changes the utility of its own population alone. Utilities count in ``unit``,
    and more predictions must be better by ``margin``.
    """
    score, population, true = ranking.score, ranking.population, ranking.true
    count = ranking.owned[-1]
    tp, predicted, values = np.zeros(count), np.zeros(count), np.zeros(count, np.int64)
    for group in range(first, last):
        start, stop, level = ranking.start[group], ranking.start[group + 1], 0
        for j in range(ranking.owned[group], ranking.owned[group + 1]):
            values[j] = np.int64(np.rint(utility_at(utilities, j, 0.0, 0.0) * unit))
            level += values[j]
        best = level
        for i in range(start, stop):
            j = population[i]
            tp[j] += true[i]
            predicted[j] += ranking.size[i]
            value = np.int64(np.rint(utility_at(utilities, j, tp[j], predicted[j]) * unit))
            level += value - values[j]
            values[j] = value
            if level > best + margin and (i + 1 == stop or score[i + 1] != score[i]):
                best = level
                taken[group] = i + 1 - start


def _best_together(ranking: RankedEntries, metric: Target, total: float) -> Array:
    """How many entries of each label to take where the counts of all labels are summed, (l,).

    At the largest quotient v each label takes the cut where numerator - v · denominator, a linear
    function of its (tp, fp), is largest: a corner of the hull of its cuts. The pieces between
    corners have a falling share of true entries on the upper side and a rising one on the lower,
    and all labels stop at the same share. So one pass over the pieces of all labels, by their
    share, meets the best choice; of pieces of one share the smaller ones come first.
    """
    positives, n_labels, found = ranking.true.sum(), len(ranking.start) - 1, []
    utilities = Utilities.of(metric, np.array([positives]), total)
    for side in (1.0, -1.0):
        label, entries = np.empty((2, len(ranking.score)), np.int64)
        size, true = np.empty((2, len(ranking.score)))
        count = hull_pieces(ranking, side, label, entries, size, true)
        label, entries, size, true = (part[:count] for part in (label, entries, size, true))
        place = np.arange(count) - np.searchsorted(label, label)
        order = np.lexsort((size, place, -side * true / size))
        tp, predicted = (np.append(0.0, np.cumsum(part[order])) for part in (true, size))
        values = utilities.at(tp, predicted)
        cut = int(np.argmax(values >= values.max() - EQUAL))
        taken = np.bincount(label[order[:cut]], entries[order[:cut]], n_labels)
        found.append((values.max(), predicted[cut], taken.astype(np.int64)))
    largest = max(value for value, _, _ in found)
    return min((f for f in found if f[0] >= largest - EQUAL), key=lambda f: f[1])[2]


@kernel
def hull_pieces(ranking, side, label, entries, size, true):
    """The pieces of each label's cuts between corners of their upper (side 1) or lower (-1) hull.

    Pools neighbours while the share of true entries rises (falls); none without a positive. Out:
    the label of each piece, its entries, how many they stand for and how many are true; returns
    the number of pieces.
    """
    score, count = ranking.score, 0
    for j in range(len(ranking.start) - 1):
        first, positives, is_new = count, 0.0, True
        for i in range(ranking.start[j], ranking.start[j + 1]):
            if is_new:
                label[count], entries[count], size[count], true[count] = j, 0, 0.0, 0.0
                count += 1
            entries[count - 1] += 1
            size[count - 1] += ranking.size[i]
            true[count - 1] += ranking.true[i]
            positives += ranking.true[i]
            is_new = i + 1 == ranking.start[j + 1] or score[i + 1] != score[i]
            while is_new and count - first > 1:
                a, b = count - 2, count - 1
                if side * (true[a] * size[b] - true[b] * size[a]) >= 0.0:
                    break
                entries[a] += entries[b]
                size[a] += size[b]
                true[a] += true[b]
                count -= 1
        count = count if positives > 0.0 else first
    return count

"""The search for thresholds: populations of scored entries, and the best cut of each.

A population is a label over all rows (macro average), a row over all labels (instance average), or
every entry of the matrix (micro average). Its decisions are counted first and judged once, by a
quotient of their counts. Its entries are sorted by score; cumulative sums then give the counts of
every cut, after which all entries of a higher score are predicted and no other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, Protocol

import numpy as np
from scipy.sparse import csr_array

from setwise.kernels import kernel
from setwise.sparse import places_among, refuse_entries, rows_of, tidied
from setwise.targets import LinearFractional, Target, get_target
from setwise.targets.measure import ROUNDING, Array
from setwise.targets.target import predicted_size, utility_quotient
from setwise.validation import (
    label_matrix,
    probability_matrix,
    require_entries,
    same_rows,
    score_matrix,
)

Average = Literal["micro", "macro", "instance"]
By = Literal["all", "label", "row"]
POPULATIONS: dict[Average, By] = {"micro": "all", "macro": "label", "instance": "row"}

# A denominator that is this share of its terms is 0 and only rounding.
ZERO_SHARE = 1e-13
# A cut with more predictions must be better by more than this.
TIE = 1e-12
# Entries whose labels are looked at together: few enough to stay in the processor's cache.
BLOCK = 2**16


# --------------------------------------------------------------------------------------- measures


class Metric(Protocol):
    """A utility of a population."""

    def quotient(self, positives: Array, total: int) -> Quotient:
        """The utility of populations of ``total`` entries, with so many ``positives`` each."""
        ...


@dataclass(frozen=True)
class Quotient:
    """(above · k) / (below · k) with k = (1, tp, fp, fn, tn); ``empty`` at 0/0.

    The coefficients have one row for all populations, (1, 5), or one for each, (m, 5).
    """

    above: Array
    below: Array
    empty: float

    def of_counts(self, counts: Array, population: Array | None = None) -> Array:
        """The utility of tp, fp, fn, tn, (4, k), each column of its ``population``."""
        ratios = self.ratios(counts, population)
        return np.where(np.isnan(ratios), self.empty, ratios)

    def ratios(self, counts: Array, population: Array | None = None) -> Array:
        """The same with NaN at 0/0."""
        above, below = self.above.T, self.below.T
        if population is not None and len(self.above) > 1:
            above, below = above[:, population], below[:, population]
        top = above[0] + sum(a * count for a, count in zip(above[1:], counts, strict=True))
        bottom = below[0] + sum(b * count for b, count in zip(below[1:], counts, strict=True))
        size = np.abs(below)
        terms = size[0] + sum(b * count for b, count in zip(size[1:], counts, strict=True))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(np.abs(bottom) <= ZERO_SHARE * terms, np.nan, top / bottom)

    def gains(self, value: Array | float) -> tuple[Array, Array]:
        """What predicting an entry adds to numerator - value · denominator: if false, if true."""
        net = self.above - np.reshape(value, (-1, 1)) * self.below
        return net[:, 2] - net[:, 4], net[:, 1] - net[:, 3]


@dataclass(frozen=True)
class TargetMetric:
    """The utility of a linear-fractional target, with the counts of a population."""

    target: Target

    def quotient(self, positives: Array, total: int) -> Quotient:
        """The same for all populations; refused unless 0 <= numerator <= denominator.

        Both are linear, so it is enough that this holds where all entries are tp, or all fp, fn, or
        tn. The numerator is then 0 where the denominator is, which Dinkelbach's iteration relies
        on.
        """
        fraction: Any = utility_quotient(self.target)
        corners = np.hstack([np.ones((4, 1)), total * np.eye(4)])
        above, below = corners @ fraction.numerator, corners @ fraction.denominator
        slack = ROUNDING * np.abs(corners) @ np.abs(fraction.denominator)
        inside = (below >= 0) & (above >= -slack) & (above <= below + slack)
        if not inside.all():
            worst = int(np.argmin(inside))
            raise ValueError(
                f"the utility of {self.target} must have 0 <= numerator <= denominator for all "
                f"counts of {total} entries, but where all of them are "
                f"{('tp', 'fp', 'fn', 'tn')[worst]} its numerator is {above[worst]:g} and its "
                f"denominator {below[worst]:g}"
            )
        return Quotient(fraction.numerator[None], fraction.denominator[None], fraction.empty)

    def __str__(self) -> str:
        return str(self.target)


@dataclass(frozen=True)
class BalancedAccuracy:
    """Mean of the recall of the positives and that of the negatives, tp/P and tn/N.

    Where P or N is 0 the other part alone counts, as in scikit-learn. P and N do not depend on the
    prediction, so this is linear in the counts.
    """

    def quotient(self, positives: Array, total: int) -> Quotient:
        """One for each population."""
        parts = np.stack([positives, total - positives], axis=1).astype(np.float64)
        present = parts > 0
        weights = present / np.maximum(present.sum(axis=1, keepdims=True), 1)
        above, below = np.zeros((len(parts), 5)), np.zeros((len(parts), 5))
        above[:, [1, 4]] = weights / np.where(present, parts, 1.0)
        below[:, 0] = 1.0
        return Quotient(above, below, 1.0)

    def __str__(self) -> str:
        return "balanced accuracy"


# Losses: the share of the predicted that is false, the share of the true that is missed.
METRICS: dict[str, Metric] = {
    "precision": TargetMetric(LinearFractional([0, 0, 1, 0, 0], [0, 1, 1, 0, 0])),
    "recall": TargetMetric(LinearFractional([0, 0, 0, 1, 0], [0, 1, 0, 1, 0])),
    "balanced_accuracy": BalancedAccuracy(),
}


def get_metric(metric: Any) -> Metric:
    """The population measure of that name, or of that target."""
    if isinstance(metric, str) and metric in METRICS:
        return METRICS[metric]
    known = ", ".join(repr(name) for name in METRICS)
    try:
        target = get_target(metric)
    except ValueError as error:
        raise ValueError(
            f"metric must be {known}, or a target with linear-fractional utility such as 'f1', "
            f"'jaccard' or 'hamming', by name or as an object, but it is {metric!r}"
        ) from error
    if predicted_size(target) is not None or utility_quotient(target) is None:
        raise ValueError(
            f"metric must be a quotient of linear functions of the counts tp, fp, fn, tn, but "
            f"{target} is not one (its form is {target.form!r}); such are {known}, FBeta, Jaccard, "
            f"LinearFractional and Hamming without weights"
        )
    return TargetMetric(target)


# ------------------------------------------------------------------------------------ the entries


@dataclass(frozen=True, eq=False)
class Scored:
    """The entries of an n by l matrix that have a score, label by label.

    Those of label j stand from ``start[j]`` to ``start[j + 1]``, with their ``row``, ``score`` and
    what is ``true`` of them: 0 or 1, or a probability. Any other entry has score 0; where it is
    true it is in ``missed`` = (rows, labels, values). A dense matrix has a score everywhere.
    """

    shape: tuple[int, int]
    start: Array
    row: Array
    score: Array
    true: Array
    missed: tuple[Array, Array, Array]

    @classmethod
    def of(cls, scores: Any, true: Any) -> Scored:
        """From two arrays, or two tidy CSR matrices; see `setwise.sparse.tidied`."""
        n, n_labels = scores.shape
        if isinstance(scores, np.ndarray):
            row, start = np.tile(np.arange(n, dtype=np.int32), n_labels), np.arange(n_labels + 1)
            nothing = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
            score, truth = np.ravel(scores.T), np.ravel(true.T)
            return cls(scores.shape, n * start, row, score, truth, nothing)
        place, found = places_among(scores, true)
        stored = np.zeros(scores.nnz)
        stored[place[found]] = true.data[found]
        by_label = scores.tocsc()
        truth = csr_array((stored, scores.indices, scores.indptr), shape=scores.shape).tocsc().data
        missed = rows_of(true)[~found], true.indices[~found], true.data[~found].astype(np.float64)
        start = by_label.indptr.astype(np.int64)
        return cls(scores.shape, start, by_label.indices, by_label.data, truth, missed)

    def take(self, rows: Array) -> Scored:
        """The same of some rows."""
        place = np.full(self.shape[0], -1)
        place[rows] = np.arange(len(rows))
        kept, missed = place[self.row] >= 0, place[self.missed[0]] >= 0
        start = np.concatenate([[0], np.cumsum(kept)])[self.start]
        row, label, value = (part[missed] for part in self.missed)
        return Scored(
            (len(rows), self.shape[1]), start, place[self.row[kept]], self.score[kept],
            self.true[kept], (place[row], label, value),
        )  # fmt: skip

    def size(self, by: By) -> int:
        """How many entries each population has."""
        return {"all": self.shape[0] * self.shape[1], "label": self.shape[0]}.get(by, self.shape[1])

    def count(self, by: By) -> int:
        """How many populations there are."""
        return {"all": 1, "label": self.shape[1]}.get(by, self.shape[0])

    def counts(self, thresholds: Array, by: By) -> Array:
        """tp, fp, fn, tn of each population where a score reaches its label's threshold, (4, m)."""
        label, count = self._labels(slice(0, self.shape[1])), self.count(by)
        predicted, always = self.score >= thresholds[label], thresholds <= 0
        row_missed, label_missed, missed = self.missed
        of_stored = _population(self.row, label, by)
        of_missed = _population(row_missed, label_missed, by)

        def total(population: Array, weights: Array) -> Array:
            return np.bincount(population, weights, minlength=count).astype(np.float64)

        hit = always[label_missed]
        tp = total(of_stored, self.true * predicted) + total(of_missed, missed * hit)
        fn = total(of_stored, self.true * ~predicted) + total(of_missed, missed * ~hit)
        # A threshold that is not above 0 is reached by every entry without a score.
        n_always = {"all": self.shape[0] * always.sum(), "label": self.shape[0] * always}
        unscored = n_always.get(by, always.sum()) - total(of_stored, always[label])
        n_predicted = total(of_stored, predicted) + unscored
        return np.stack([tp, n_predicted - tp, fn, self.size(by) - n_predicted - fn])

    def ranking(self, by: By, labels: slice | None = None) -> Ranking:
        """Entries of some labels, or all, by population and falling score."""
        labels = slice(0, self.shape[1]) if labels is None else labels
        part = slice(self.start[labels.start], self.start[labels.stop])
        count = labels.stop - labels.start if by == "label" else self.count(by)
        own = _population(self.row[part], self._labels(labels) - labels.start, by)
        row, label, missed = self.missed
        here = (label >= labels.start) & (label < labels.stop)
        lost = _population(row[here], label[here] - labels.start, by)
        # What has no score stands as one entry of score 0 a population.
        rest = self.size(by) - np.bincount(own, minlength=count)
        some = np.flatnonzero(rest)
        population = np.concatenate([own, some])
        score = np.concatenate([self.score[part], np.zeros(len(some), self.score.dtype)])
        size = np.concatenate([np.ones(len(own)), rest[some]])
        unscored = np.bincount(lost, missed[here], minlength=count)[some]
        true = np.concatenate([self.true[part].astype(np.float64), unscored])
        start = np.concatenate([[0], np.cumsum(np.bincount(population, minlength=count))])
        order = np.argsort(population, kind="stable") if len(some) or by == "row" else None
        order = _falling(score, start, order)
        return Ranking.of(start, score[order], size[order], true[order], float(self.size(by)))

    def blocks(self) -> Iterator[slice]:
        """Ranges of labels with a bounded number of entries."""
        step = max(1, BLOCK * self.shape[1] // (len(self.score) + self.shape[1]))
        for first in range(0, self.shape[1], step):
            yield slice(first, min(first + step, self.shape[1]))

    def _labels(self, labels: slice) -> Array:
        """The label of each entry of some labels."""
        lengths = np.diff(self.start[labels.start : labels.stop + 1])
        return np.repeat(np.arange(labels.start, labels.stop, dtype=np.int32), lengths)


def _falling(score: Array, start: Array, order: Array | None) -> Array:
    """The order by falling score within each population, given one by population."""
    order = np.arange(len(score)) if order is None else order
    for first, stop in pairwise(start):
        part = order[first:stop]
        order[first:stop] = part[np.argsort(score[part])[::-1]]
    return order


def _population(row: Array, label: Array, by: By) -> Array:
    return {"all": np.zeros_like(row), "label": label}.get(by, row)


def labelled(scores: Any, y_true: Any) -> Scored:
    """Scores with their true label sets, checked."""
    is_sparse = hasattr(scores, "tocsr")
    table = sparse_scores(scores, None) if is_sparse else score_matrix(scores, None)
    require_entries(table.shape, "scores")
    true: Any = y_true
    if is_sparse and hasattr(y_true, "tocsr"):
        true = tidied(y_true, "y_true")
        if true.shape[1] != table.shape[1]:
            raise ValueError(
                f"y_true must have shape (n, {table.shape[1]}), one 0/1 column for each label, "
                f"but its shape is {true.shape}"
            )
        refuse_entries(true, true.data != 1, "y_true", "hold only 0 and 1")
    else:
        true = label_matrix(y_true, table.shape[1])
        true = csr_array(true) if is_sparse else true
    same_rows(np.empty(table.shape[0]), np.empty(true.shape[0]))
    return Scored.of(table, true)


def expected(probability: Any) -> Scored:
    """Probabilities, as scores and as the expectation of what is true."""
    table = probability_matrix(probability)
    return Scored.of(table, table)


def sparse_scores(scores: Any, n_labels: int | None) -> Any:
    """Scores as tidy CSR, finite and not below 0."""
    table = tidied(scores, "scores")
    if n_labels is not None and table.shape[1] != n_labels:
        raise ValueError(
            f"scores must have shape (n, {n_labels}), one column for each label, "
            f"but its shape is {table.shape}"
        )
    refuse_entries(table, ~np.isfinite(table.data), "scores", "be finite")
    above = "not be below 0 unless dense (what is not stored counts as 0)"
    refuse_entries(table, table.data < 0, "scores", above)
    return table if table.dtype in (np.float32, np.float64) else table.astype(np.float64)


# --------------------------------------------------------------------------------------- the cuts


@dataclass(frozen=True)
class Ranking:
    """Entries of m populations, those of population j from ``start[j]`` on, by falling score.

    ``tp`` and ``taken`` are the sums of what is true, and of entries, up to each of them in its
    population; ``positives`` (m,) all that is true, ``total`` the entries of each population.
    """

    start: Array
    score: Array
    tp: Array
    taken: Array
    positives: Array
    total: float

    @classmethod
    def of(cls, start: Array, score: Array, size: Array, true: Array, total: float) -> Ranking:
        """From entries that stand for ``size`` of equal score, of which ``true`` are true."""
        tp, taken = np.empty(len(score)), np.empty(len(score))
        running_sums(true, start, tp)
        running_sums(size, start, taken)
        return cls(start, score, tp, taken, tp[start[1:] - 1], total)

    @property
    def owner(self) -> Array:
        """The population of each entry."""
        return np.repeat(np.arange(len(self.positives)), np.diff(self.start))

    def counts(self, tp: Array, taken: Array, owner: Array) -> Array:
        """tp, fp, fn, tn of cuts that take so many, (4, k)."""
        positives, fp = self.positives[owner], taken - tp
        return np.stack([tp, fp, positives - tp, (self.total - positives) - fp])

    def cuts(self) -> Cuts:
        """All cuts of each population, nothing first."""
        ends = np.ones(len(self.score), dtype=np.bool_)
        np.not_equal(self.score[:-1], self.score[1:], out=ends[:-1])
        ends[self.start[1:] - 1] = True
        places = np.flatnonzero(ends)
        first = np.searchsorted(places, self.start)
        position = np.insert(places + 1, first[:-1], self.start[:-1])
        owner = np.repeat(np.arange(len(first) - 1), np.diff(first) + 1)
        some, stop = position > self.start[owner], self.start[owner + 1]
        tp, taken = (np.where(some, sums[position - 1], 0.0) for sums in (self.tp, self.taken))
        last = len(self.score) - 1
        lower = np.where(position < stop, self.score[np.minimum(position, last)], -np.inf)
        upper = np.where(some, self.score[position - 1], np.inf)
        gaps = np.stack([lower, upper]).astype(np.float64)
        return Cuts(first + np.arange(len(first)), owner, tp, taken - tp, gaps)


@dataclass(frozen=True)
class Cuts:
    """What each population can choose from, the fewest predictions first.

    Population j has the cuts from ``start[j]`` to ``start[j + 1]``, with their counts ``tp`` and
    ``fp`` and the ``gaps`` (2, k) of the scores: a threshold lies above the lower end, and at or
    below the upper. Above all scores that is +inf, below all of them the lower end is -inf.
    """

    start: Array
    owner: Array
    tp: Array
    fp: Array
    gaps: Array

    @staticmethod
    def joined(parts: list[Cuts]) -> Cuts:
        """The populations of several, one after the other."""
        lengths = np.concatenate([np.diff(part.start) for part in parts])
        start = np.concatenate([[0], np.cumsum(lengths)])
        owner = np.repeat(np.arange(len(lengths)), lengths)
        tp, fp = (np.concatenate([getattr(part, name) for part in parts]) for name in ("tp", "fp"))
        return Cuts(start, owner, tp, fp, np.concatenate([part.gaps for part in parts], axis=1))

    def best(self, value: Array, slack: float = 0.0) -> Array:
        """All cuts whose value is the largest of their population, up to ``slack``."""
        largest = np.maximum.reduceat(value, self.start[:-1])
        return np.flatnonzero(value >= largest[self.owner] - slack)

    def first(self, among: Array) -> Array:
        """The first cut of each population among these."""
        return among[np.searchsorted(among, self.start[:-1])]

    def gain(self, if_false: Array, if_true: Array) -> Array:
        """A linear function of the counts of each cut."""
        return if_false * self.fp + if_true * self.tp

    def corners(self, positives: Array) -> Cuts:
        """The cuts that a linear function of (tp, fp) can prefer; nothing without a positive.

        These are nothing, everything, and the corners of the path the counts take: along a straight
        piece a linear function is largest at an end. The cut after each is kept too, for where the
        denominator is 0 at a corner.
        """
        is_first = np.zeros(len(self.tp), dtype=np.bool_)
        is_first[self.start[:-1]] = True
        kept = is_first.copy()
        kept[self.start[1:] - 1] = True
        step_tp, step_fp = np.diff(self.tp), np.diff(self.fp)
        kept[1:-1] |= step_tp[:-1] * step_fp[1:] != step_fp[:-1] * step_tp[1:]
        kept[1:] |= kept[:-1]
        kept &= is_first | (positives[self.owner] > 0)
        start = np.concatenate([[0], np.cumsum(kept)])[self.start]
        owner, tp, fp = self.owner[kept], self.tp[kept], self.fp[kept]
        return Cuts(start, owner, tp, fp, self.gaps[:, kept])


@kernel
def running_sums(values, start, sums):
    """Sums of values (k,) that begin anew with each population, start (m + 1,)."""
    for j in range(len(start) - 1):
        total = 0.0
        for i in range(start[j], start[j + 1]):
            total += values[i]
            sums[i] = total


def label_gaps(scored: Scored, metric: Metric) -> Array:
    """The gap of each label's best threshold where each label counts for itself, (2, l)."""
    parts = []
    for labels in scored.blocks():
        ranking = scored.ranking("label", labels)
        cuts = ranking.cuts()
        quotient = metric.quotient(ranking.positives, scored.shape[0])
        counts = ranking.counts(cuts.tp, cuts.tp + cuts.fp, cuts.owner)
        best = cuts.first(cuts.best(quotient.of_counts(counts, cuts.owner), TIE))
        # A label without a positive example is never predicted.
        parts.append(cuts.gaps[:, np.where(ranking.positives > 0, best, cuts.start[:-1])])
    return np.concatenate(parts, axis=1)


def shared_gap(scored: Scored, metric: Metric, by: By) -> Array:
    """The gap of the best threshold for all labels, (2, 1).

    Passing an entry changes the utility of its population alone; the changes are summed from the
    highest score down.
    """
    ranking = scored.ranking(by)
    owner, count = ranking.owner, len(ranking.positives)
    quotient = metric.quotient(ranking.positives, scored.size(by))
    # Utilities in fixed point: their sum then depends on no order and gathers no rounding.
    unit = 2.0 ** (61 - count.bit_length())
    nothing = ranking.counts(np.zeros(count), np.zeros(count), np.arange(count))
    before = np.rint(quotient.of_counts(nothing, np.arange(count)) * unit).astype(np.int64)
    counts = ranking.counts(ranking.tp, ranking.taken, owner)
    change = np.rint(quotient.of_counts(counts, owner) * unit).astype(np.int64)
    change[1:] -= np.where(owner[1:] == owner[:-1], change[:-1], before[owner[1:]])
    change[0] -= before[0]
    order = np.argsort(-ranking.score, kind="stable")
    score, level = ranking.score[order], np.cumsum(change[order])
    ends = np.append(np.flatnonzero(score[1:] != score[:-1]), len(score) - 1)
    levels = np.append(0, level[ends])
    cut = int(np.argmax(levels >= levels.max() - int(np.ceil(TIE * count * unit))))
    lower = score[0] if cut == 0 else score[ends[cut - 1] + 1] if cut < len(ends) else -np.inf
    return np.array([[lower], [score[ends[cut - 1]] if cut else np.inf]], dtype=np.float64)


def coupled_gaps(scored: Scored, metric: Metric) -> Array:
    """The gap of each label's threshold where all counts are pooled, (2, l)."""
    parts, positives = [], 0.0
    for labels in scored.blocks():
        ranking = scored.ranking("label", labels)
        parts.append(ranking.cuts().corners(ranking.positives))
        positives += ranking.positives.sum()
    cuts, total = Cuts.joined(parts), scored.size("all")
    quotient = metric.quotient(np.array([positives]), total)
    return cuts.gaps[:, best_choice(cuts, quotient, positives, total)]


def best_choice(cuts: Cuts, quotient: Quotient, positives: float, total: float) -> Array:
    """The cut of each population that makes the quotient of the summed counts largest.

    Dinkelbach's iteration: for a value v the populations separate in numerator - v · denominator;
    the quotient of what they choose is the next v. The values increase and come from a finite set,
    and where they stop no choice is better.
    """

    def counts(choice: Array) -> Array:
        tp, fp = cuts.tp[choice].sum(), cuts.fp[choice].sum()
        return np.array([[tp], [fp], [positives - tp], [total - positives - fp]])

    def ratio(choice: Array) -> float:
        return quotient.ratios(counts(choice))[0]

    below = quotient.below[0]
    growth = below[2] - below[4], below[1] - below[3]
    choice = cuts.first(cuts.best(cuts.gain(*growth)))
    value = ratio(choice)
    if np.isnan(value):  # the denominator is 0 whatever is chosen
        return cuts.start[:-1]
    while ratio(better := cuts.first(cuts.best(cuts.gain(*quotient.gains(value))))) > value:
        choice, value = better, ratio(better)
    # Among equals the fewest predictions; and where the denominator can be 0, that too.
    slack = TIE * (below @ np.append(1.0, counts(choice))) / (len(cuts.start) - 1)
    equal = cuts.best(cuts.gain(*quotient.gains(value)), slack)
    fewest, least = cuts.first(equal), cuts.first(cuts.best(-cuts.gain(*growth)))
    candidates = [fewest, choice, least]
    if np.isnan(ratio(fewest)):
        candidates.append(_with_denominator(cuts, fewest, equal, growth))
    values = [quotient.of_counts(counts(candidate))[0] for candidate in candidates]
    reached = [c for c, v in zip(candidates, values, strict=True) if v >= max(values) - TIE]
    return min(reached, key=lambda choice: (cuts.tp[choice] + cuts.fp[choice]).sum())


def _with_denominator(cuts: Cuts, choice: Array, among: Array, growth) -> Array:
    """The choice with one cut changed, by the fewest predictions that make the quotient exist."""
    owner = cuts.owner[among]
    more_tp = cuts.tp[among] - cuts.tp[choice[owner]]
    more_fp = cuts.fp[among] - cuts.fp[choice[owner]]
    grows = growth[0] * more_fp + growth[1] * more_tp > 0
    changed = choice.copy()
    if grows.any():
        one = np.argmin(np.where(grows, more_tp + more_fp, np.inf))
        changed[owner[one]] = among[one]
    return changed

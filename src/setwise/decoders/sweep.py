"""The sweep: scores from the highest down, and the best place to stop.

Entries stand in segments, each with one threshold to be found. An entry belongs to a population (a
label, a row, or everything), and what is maximised is the mean utility of the populations of the
segment. Passing an entry changes the counts of one population, so a sweep costs O(1) an entry.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from setwise.decoders.population import POPULATIONS, Average, By, Metric, Quotient, utility
from setwise.decoders.sample import Ranking, Sample
from setwise.kernels import kernel
from setwise.targets.measure import Array
from setwise.threads import for_rows

# A cut with more predictions must be better by more than this.
TIE = 1e-12


def best_cuts(ranking: Ranking, quotient: Quotient, total: float) -> Array:
    """How many entries of each segment the best cut takes, (segments,).

    ``quotient`` is the utility of one population, ``total`` the number of entries of each. Of equal
    values the cut with the fewest predictions is taken.
    """
    taken = np.zeros(len(ranking.start) - 1, dtype=np.int64)
    share = int(np.diff(ranking.owned).max())
    # Utilities in fixed point: their sum then depends on no order and gathers no rounding.
    unit = 2.0 ** (61 - share.bit_length())
    sweep(
        *(ranking.start, ranking.owned, ranking.population, ranking.size, ranking.true),
        *(ranking.ends, quotient.above, quotient.below, quotient.empty, float(total)),
        *(unit, int(np.ceil(TIE * share * unit)), taken),
    )
    return taken


def halfway(gaps: Array) -> Array:
    """A threshold in each gap: lower < threshold <= upper, or infinite where an end is."""
    lower, upper = gaps
    middle = lower / 2.0 + upper / 2.0
    return np.where((lower < middle) | np.isinf(lower), middle, upper)


@dataclass(frozen=True)
class Options:
    """What each label can choose from: the counts of its decisions.

    Label j has the options ``start[j]`` to ``start[j + 1]``. Among equals the first is taken.
    """

    start: Array
    tp: Array
    fp: Array

    @staticmethod
    def joined(parts: list[Options]) -> Options:
        """The labels of several, one after the other."""
        lengths = np.concatenate([np.diff(part.start) for part in parts])
        return Options(
            np.concatenate([[0], np.cumsum(lengths)]),
            np.concatenate([part.tp for part in parts]),
            np.concatenate([part.fp for part in parts]),
        )

    def best(self, if_false: Array, if_true: Array, slack: float = 0.0) -> Array:
        """All options whose gain is the largest of their label, up to ``slack``."""
        gain = if_false * self.fp + if_true * self.tp
        largest = np.maximum.reduceat(gain, self.start[:-1])
        return np.flatnonzero(gain >= np.repeat(largest - slack, np.diff(self.start)))

    def first(self, among: Array) -> Array:
        """The first option of each label among these."""
        return among[np.searchsorted(among, self.start[:-1])]


def corner_options(ranking: Ranking) -> tuple[Options, Array]:
    """The cuts of each segment that a linear function of (tp, fp) can prefer, and their gaps.

    These are nothing, everything, and the corners of the path the counts take: along a straight
    piece a linear function is largest at an end. The cut after each is kept too, for where the
    denominator is 0 at a corner. A label without a positive example is never predicted.
    """
    ends, segments = np.flatnonzero(ranking.ends), np.arange(len(ranking.start) - 1)
    first = np.searchsorted(ends, ranking.start)
    position = np.insert(ends + 1, first[:-1], ranking.start[:-1])
    owner = np.repeat(segments, np.diff(first) + 1)
    begin, stop = ranking.start[owner], ranking.start[owner + 1]
    tp, size = (_sums(part, begin, position) for part in (ranking.true, ranking.size))
    fp = size - tp
    kept = (position == begin) | (position == stop)
    step_tp, step_fp = np.diff(tp), np.diff(fp)
    kept[1:-1] |= step_tp[:-1] * step_fp[1:] != step_fp[:-1] * step_tp[1:]
    kept[1:] |= kept[:-1]
    kept &= (position == begin) | (ranking.positives[owner] > 0)
    start = np.searchsorted(owner[kept], np.arange(len(ranking.start)))
    gaps = ranking.gaps(owner[kept], (position - begin)[kept])
    return Options(start, tp[kept], fp[kept]), gaps


def _sums(part: Array, begin: Array, stop: Array) -> Array:
    """Sums of whole numbers over ranges."""
    total = np.concatenate([[0.0], np.cumsum(part)])
    return total[stop] - total[begin]


def best_choice(options: Options, quotient: Quotient, positives: float, total: float) -> Array:
    """The option of each label that makes the quotient of the summed counts largest.

    Dinkelbach's iteration: for a value v the labels separate in numerator - v · denominator; the
    quotient of what they choose is the next v. The values increase and come from a finite set, and
    where they stop no choice is better.
    """

    def counts(choice: Array) -> Array:
        tp, fp = options.tp[choice].sum(), options.fp[choice].sum()
        return np.array([[tp], [fp], [positives - tp], [total - positives - fp]])

    def ratio(choice: Array) -> float:
        return quotient.ratios(counts(choice))[0]

    below = quotient.below[0]
    growth = below[2] - below[4], below[1] - below[3]
    choice = options.first(options.best(*growth))
    value = ratio(choice)
    if np.isnan(value):  # the denominator is 0 whatever is chosen
        return options.start[:-1]
    while ratio(better := options.first(options.best(*quotient.gains(value)))) > value:
        choice, value = better, ratio(better)
    # Among equals the fewest predictions; and where the denominator can be 0, that too.
    slack = TIE * (below @ np.append(1.0, counts(choice))) / (len(options.start) - 1)
    equal = options.best(*quotient.gains(value), slack=slack)
    fewest, least = options.first(equal), options.first(options.best(-growth[0], -growth[1]))
    candidates = [fewest, choice, least]
    if np.isnan(ratio(fewest)):
        candidates.append(_with_denominator(options, fewest, equal, growth))
    values = [quotient.of_counts(counts(candidate))[0] for candidate in candidates]
    reached = [c for c, v in zip(candidates, values, strict=True) if v >= max(values) - TIE]
    return min(reached, key=lambda choice: (options.tp[choice] + options.fp[choice]).sum())


def _with_denominator(options: Options, choice: Array, among: Array, growth) -> Array:
    """The choice with one label changed, by the fewest predictions that make the quotient exist."""
    owner = np.searchsorted(options.start, among, side="right") - 1
    more_tp = options.tp[among] - options.tp[choice[owner]]
    more_fp = options.fp[among] - options.fp[choice[owner]]
    grows = growth[0] * more_fp + growth[1] * more_tp > 0
    changed = choice.copy()
    if grows.any():
        one = np.argmin(np.where(grows, more_tp + more_fp, np.inf))
        changed[owner[one]] = among[one]
    return changed


def solve(sample: Sample, metric: Metric, average: Average, own: bool) -> Array:
    """The best thresholds on a sample, (l,): each label's own, or one repeated."""
    if not own:
        return np.full(sample.shape[1], halfway(shared_gap(sample, metric, POPULATIONS[average])))
    gaps = label_gaps if average == "macro" else coupled_gaps
    return halfway(gaps(sample, metric))


def shared_gap(sample: Sample, metric: Metric, by: By) -> Array:
    """The gap of the best threshold for all labels, (2, 1)."""
    ranking, total = sample.whole(by), population_size(sample, by)
    taken = best_cuts(ranking, metric.quotient(ranking.positives, total), total)
    return ranking.gaps(np.zeros(1, dtype=np.int64), taken)


def label_gaps(sample: Sample, metric: Metric) -> Array:
    """The gap of each label's best threshold where each label counts for itself, (2, l)."""
    n_rows, n_labels = sample.shape
    gaps, step = np.empty((2, n_labels)), sample.labels_at_once

    def work(first: int, last: int) -> None:
        for part in _blocks(first, last, step):
            ranking = sample.columns(part.start, part.stop)
            positives = ranking.positives
            taken = best_cuts(ranking, metric.quotient(positives, n_rows), n_rows)
            # A label without a positive example is never predicted.
            gaps[:, part] = ranking.gaps(np.arange(len(taken)), np.where(positives > 0, taken, 0))

    for_rows(work, n_labels, least=1)
    return gaps


def coupled_gaps(sample: Sample, metric: Metric) -> Array:
    """The gap of each label's threshold where all counts are pooled, (2, l)."""
    n_rows, n_labels = sample.shape
    parts = [
        corner_options(sample.columns(part.start, part.stop))
        for part in _blocks(0, n_labels, sample.labels_at_once)
    ]
    options = Options.joined([options for options, _ in parts])
    # The last option of a label takes all its entries.
    positives = options.tp[options.start[1:] - 1].sum()
    total = n_rows * n_labels
    quotient = metric.quotient(np.array([positives]), total)
    choice = best_choice(options, quotient, positives, total)
    return np.concatenate([gaps for _, gaps in parts], axis=1)[:, choice]


def _blocks(first: int, last: int, step: int) -> Iterator[slice]:
    for start in range(first, last, step):
        yield slice(start, min(start + step, last))


def population_size(sample: Sample, by: By) -> int:
    """How many entries each population has."""
    n_rows, n_labels = sample.shape
    return {"all": n_rows * n_labels, "label": n_rows, "row": n_labels}[by]


@kernel
def sweep(
    start, owned, population, size, true, ends, above, below, empty, total, unit, margin, taken
):
    """How many entries of each segment to take."""
    for segment in range(len(taken)):
        first, stop = start[segment], start[segment + 1]
        base, n_populations = owned[segment], owned[segment + 1] - owned[segment]
        positives, tp = np.zeros(n_populations), np.zeros(n_populations)
        predicted, values = np.zeros(n_populations), np.zeros(n_populations, np.int64)
        # Summed in the order of the sweep, so that expected counts too end at exactly 0.
        for i in range(first, stop):
            positives[population[i] - base] += true[i]
        level = 0
        for j in range(n_populations):
            row = base + j if len(above) > 1 else 0
            value = utility(
                above[row], below[row], empty, 0.0, 0.0, positives[j], total - positives[j]
            )
            values[j] = np.int64(np.rint(value * unit))
            level += values[j]
        best = level
        for i in range(first, stop):
            j = population[i] - base
            row = base + j if len(above) > 1 else 0
            tp[j] += true[i]
            predicted[j] += size[i]
            fp = predicted[j] - tp[j]
            fn, tn = positives[j] - tp[j], (total - positives[j]) - fp
            value = np.int64(
                np.rint(utility(above[row], below[row], empty, tp[j], fp, fn, tn) * unit)
            )
            level += value - values[j]
            values[j] = value
            if ends[i] and level > best + margin:
                best = level
                taken[segment] = i + 1 - first

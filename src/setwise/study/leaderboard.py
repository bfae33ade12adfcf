"""Who is best for which target, which others are as good for all one can tell; and by level.

`leaderboard` orders the methods of each target; `in_hierarchy` has the figures of each level of a
taxonomy and of all, where every label set is taken with what stands above its labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np

from setwise.evaluation import ByLevel, PerLabel, per_label
from setwise.evaluation.figure import aligned, described, interval, number, too_few_resamples
from setwise.evaluation.label_sets import closed, loss_statistic, row_distances
from setwise.evaluation.sample import Sample
from setwise.evaluation.statistics import (
    Bootstrap,
    Statistic,
    Title,
    holm,
    p_values,
    row_means,
)
from setwise.study.results import Outcome, Results, unit_of
from setwise.targets import Target, get_target
from setwise.targets.target import judges_all_rows, method_of


@dataclass(frozen=True)
class Standing:
    """One method on the leaderboard of one target.

    Attributes
    ----------
    method, target : str
        Their names.
    value : float
        The mean loss of the held-out rows; lower is better, and 1 - value is the mean utility. Of
        a measure of all rows together, such as "macro_f1", 1 - its value.
    low, high : float or None
        Ends of its bootstrap interval; None without a bootstrap.
    difference : float
        ``value`` less that of the best method; 0 for the best.
    difference_low, difference_high : float or None
        Ends of the bootstrap interval of the difference, both methods on the same resamples.
    p : float or None
        Two-sided bootstrap p-value of "no different from the best"; None for the best itself.
    adjusted_p : float or None
        The same after Holm's correction for all pairs of methods of this target.
    is_best_or_tied : bool
        Whether it is the best, or not significantly worse: ``adjusted_p`` above 1 - confidence.
        Without a bootstrap, whether it is as low as the best.
    distance : float or None
        Of a tree distance, ``value`` in units of length; None for other targets.
    unit : str or None
        What ``distance`` is counted in: "edges" where all lengths are 1, else "units of length".

    Examples
    --------
    >>> from setwise.study import Study
    >>> X, Y = [[0.0], [1.0]] * 4, [[1, 0], [0, 1]] * 4
    >>> study = Study(X, Y, methods=["binary_relevance"], targets=["f1"], folds=2)
    >>> board = leaderboard(study.run(), n_bootstrap=0)
    >>> board[0].target, board[0].difference, board[0].is_best_or_tied
    ('f1', 0.0, True)
    """

    method: str
    target: str
    value: float
    low: float | None
    high: float | None
    difference: float
    difference_low: float | None
    difference_high: float | None
    p: float | None
    adjusted_p: float | None
    is_best_or_tied: bool
    distance: float | None = None
    unit: str | None = None


@dataclass(frozen=True)
class Leaderboard(Sequence[Standing]):
    """The standings of all methods, target by target, the best first; printed, a table.

    Attributes
    ----------
    standings : tuple of Standing
        In the order of the study's targets; of equal values, in that of its methods.
    n_rows, n_labels : int
        Size of the held-out data.
    n_bootstrap : int
        Number of resamples behind intervals and p-values; 0 if there are none.
    confidence : float
        Level of the intervals, and 1 - level of the tests.

    Examples
    --------
    >>> from setwise.study import Study
    >>> X, Y = [[0.0], [1.0]] * 4, [[1, 0], [0, 1]] * 4
    >>> study = Study(X, Y, methods=["binary_relevance"], targets=["f1"], folds=2)
    >>> board = leaderboard(study.run(), n_bootstrap=0)
    >>> len(board), board.n_rows
    (1, 8)
    """

    standings: tuple[Standing, ...]
    n_rows: int
    n_labels: int
    n_bootstrap: int
    confidence: float

    def __getitem__(self, place: Any) -> Any:
        return self.standings[place]

    def __len__(self) -> int:
        return len(self.standings)

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets that have standings, in order."""
        return tuple(dict.fromkeys(standing.target for standing in self.standings))

    def of(self, target: str) -> tuple[Standing, ...]:
        """The standings of one target, the best first."""
        return tuple(standing for standing in self.standings if standing.target == target)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        head = described(self.n_rows, self.n_labels, self.n_bootstrap, self.confidence)
        if not self.standings:
            return f"{head}\nno method has finished all folds of a target yet"
        far = any(standing.unit is not None for standing in self)
        titles = ["", "loss", "", "tree distance, as predicted", "less best", "", "p", "adjusted p"]
        lines = [[*titles, ""]]
        for target in self.targets:
            lines += [[target], *map(_cells, self.of(target))]
        if not far:
            lines = [line[:3] + line[4:] for line in lines]
        notes, most = ["* the best"], max(len(self.of(target)) for target in self.targets)
        if self.n_bootstrap:
            notes[0] += (
                f", or not significantly worse: adjusted p (Holm, all pairs of methods of a "
                f"target) above {1.0 - self.confidence:.4g}"
            )
            n_pairs = most * (most - 1) // 2
            notes += too_few_resamples(n_pairs, self.n_bootstrap, self.confidence)
        return "\n".join([head, aligned(lines), *notes])


def _cells(of: Standing) -> list[str]:
    """A row of the table."""
    far = "" if of.unit is None else f"{of.distance:.4g} {of.unit}"
    tests = ["", "", ""]
    if of.p is not None:
        apart = interval(of.difference_low, of.difference_high)
        tests = [apart, f"{of.p:.4f}", f"{of.adjusted_p:.4f}"]
    own = [f"  {of.method}", number(of.value), interval(of.low, of.high), far]
    return [*own, number(of.difference), *tests, "*" if of.is_best_or_tied else ""]


def leaderboard(
    results: Results, *, n_bootstrap: int = 5000, confidence: float = 0.95, seed: Any = 0
) -> Leaderboard:
    """Order the methods of each target by their mean loss, and test each against the best.

    The bootstrap is that of `setwise.evaluation`: with the same number of resamples and the same
    seed, values and intervals are those of `evaluate`, and p is that of `compare`.

    Parameters
    ----------
    results : Results
        Of a study, finished or not; what has not finished all folds is not on it.
    n_bootstrap : int, default 5000
        Number of resamples of the held-out rows; 0 for values alone. For m methods, fewer than
        m (m - 1) / 2 / (1 - confidence) cannot show any difference.
    confidence : float, default 0.95
        Level of the intervals; the tests are at 1 - confidence.
    seed : int, Generator or None, default 0
        Of the resamples.

    Notes
    -----
    The best method is found on the same rows as the differences to it, so it looks a little better
    than it is. The correction therefore counts all pairs of a target's methods: whichever pair is
    then looked at, the chance that any of a target's methods is wrongly called different stays
    below 1 - confidence, as far as the p-values are right. Targets are not corrected for.

    Rows of all folds are resampled together, as they are. That speaks of other rows from the same
    source, not of training again on others.

    Examples
    --------
    >>> from setwise.study import Study
    >>> X, Y = [[0.0], [1.0]] * 4, [[1, 0], [0, 1]] * 4
    >>> study = Study(X, Y, methods=["binary_relevance"], targets=["f1"], folds=2)
    >>> board = leaderboard(study.run(), n_bootstrap=0)
    >>> board[0].method, round(board[0].value, 2)
    ('binary_relevance', 0.0)
    """
    bootstrap = Bootstrap(n_bootstrap, confidence, seed)
    y_true: Any = results.y_true
    by_target = [[o for o in results.outcomes if o.target == target] for target in results.targets]
    boards = [outcomes for outcomes in by_target if outcomes]
    losses = [_losses(y_true, outcomes) for outcomes in boards]
    judged = bootstrap.judged(losses, *y_true.shape) if boards else []
    standings: list[Standing] = []
    for outcomes, (values, replicates) in zip(boards, judged, strict=True):
        standings += _standings(outcomes, values, replicates, bootstrap, results.scales)
    n_rows, n_labels = y_true.shape
    resamples, confidence = bootstrap.n_resamples, bootstrap.confidence
    return Leaderboard(tuple(standings), n_rows, n_labels, resamples, confidence)


def losses_of(outcome: Outcome, y_true: Any) -> Any:
    """The loss of each row, (n,)."""
    y_pred: Any = outcome.y_pred
    own = outcome.losses
    if own is not None:
        return own
    return method_of(get_target(outcome.target), "row_losses")(y_pred, y_true)


def _losses(y_true: Any, outcomes: Sequence[Any]) -> list[Statistic]:
    """The loss of each outcome of a target, on the rows as they are or resampled.

    A measure of all rows together is that of the rows of all folds; one that has no name, which the
    results do not hold, is the mean over folds to first order.
    """
    titles = [Title(outcome.method, "target", "lower") for outcome in outcomes]
    target = whole_measure(outcomes[0].target)
    if target is None:
        return [row_means(titles, np.column_stack([losses_of(o, y_true) for o in outcomes]))]
    samples = (Sample(outcome.y_pred.astype(np.int64), y_true) for outcome in outcomes)
    parts = zip(titles, samples, strict=True)
    return [loss_statistic(title, target, sample) for title, sample in parts]


def whole_measure(name: str) -> Target | None:
    """The target of that name where it judges all rows together, else None."""
    try:
        target = get_target(name)
    except ValueError:
        return None
    return target if judges_all_rows(target) else None


def _standings(
    outcomes: Sequence[Outcome], values: Any, replicates: Any, bootstrap: Bootstrap, scales: Any
) -> list[Standing]:
    """The standings of one target, from mean losses and their replicates (methods, resamples)."""
    best, scale = int(np.argmin(values)), scales.get(outcomes[0].target)
    differences = values - values[best]
    intervals = bootstrap.intervals(values, replicates, 0.0, 1.0)
    apart = bootstrap.intervals(differences, replicates - replicates[best], -np.inf, np.inf)
    tests: dict[int, tuple[float, float]] = {}
    pairs = list(combinations(range(len(values)), 2)) if bootstrap.n_resamples else []
    if pairs:
        first, second = np.array(pairs).T
        plain = p_values(values[second] - values[first], replicates[second] - replicates[first])
        for pair, p, adjusted in zip(pairs, plain.tolist(), holm(plain).tolist(), strict=True):
            if best in pair:
                tests[sum(pair) - best] = p, adjusted
    standings = []
    for place in np.argsort(values, kind="stable").tolist():
        p, adjusted = tests.get(place, (None, None))
        worse = differences[place] > 0.0
        if adjusted is not None:
            worse = adjusted <= 1.0 - bootstrap.confidence
        method, value = outcomes[place].method, float(values[place])
        difference: Any = (float(differences[place]), *apart[place], p, adjusted, not worse)
        far: Any = () if scale is None else (scale.distance(value), scale.unit)
        own: Any = (method, outcomes[place].target, value, *intervals[place])
        standings.append(Standing(*own, *difference, *far))
    return standings


# ---------------------------------------------------------------------------- in a hierarchy


@dataclass(frozen=True)
class InHierarchy:
    """One outcome, where both label sets of a row are taken with all above their labels.

    Attributes
    ----------
    method, target : str
        Their names.
    labels : PerLabel
        The figures of each label.
    levels : ByLevel
        The figures of each level.
    closed : float
        The share of predictions that had all above their labels.
    distance : float
        The mean length of the edges on which prediction and truth differ: those of the target if
        it is a tree distance, else of the hierarchy; where labels have several parents, of the
        edges of the spanning tree.
    unit : str
        What the distance is counted in.

    Examples
    --------
    >>> from setwise import Taxonomy
    >>> from setwise.study import Study
    >>> X, Y, tree = [[0], [1]] * 4, [[1, 1, 0], [1, 0, 1]] * 4, Taxonomy.from_parents([-1, 0, 0])
    >>> study = Study(X, Y, methods=["catalog"], targets=["f1"], folds=2, taxonomy=tree)
    >>> found = in_hierarchy(study.run())
    >>> found[0].distance, found[0].unit
    (0.0, 'edges')
    """

    method: str
    target: str
    labels: PerLabel
    levels: ByLevel
    closed: float
    distance: float
    unit: str

    @property
    def precision(self) -> float | None:
        """Of all levels together: hierarchical precision; None where nothing is predicted."""
        return self._ratio(self.levels.both, self.levels.predicted)

    @property
    def recall(self) -> float | None:
        """Hierarchical recall; None where nothing is true."""
        return self._ratio(self.levels.both, self.levels.support)

    @property
    def f1(self) -> float | None:
        """Hierarchical F1; None where nothing is true and nothing predicted."""
        return self._ratio(2 * self.levels.both, self.levels.predicted + self.levels.support)

    @staticmethod
    def _ratio(above: Any, below: Any) -> float | None:
        return float(above.sum() / below.sum()) if below.any() else None

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, ready for JSON."""
        told = ("method", "target", "precision", "recall", "f1", "closed", "distance", "unit")
        figures = {name: getattr(self, name) for name in told}
        return {**figures, "f1_by_level": self.levels.f1.tolist()}


def in_hierarchy(results: Results) -> tuple[InHierarchy, ...]:
    """Every outcome in the hierarchy of the study, in their order; none without a hierarchy.

    Examples
    --------
    >>> from setwise import Taxonomy
    >>> from setwise.study import Study
    >>> X, Y, tree = [[0], [1]] * 4, [[1, 1, 0], [1, 0, 1]] * 4, Taxonomy.from_parents([-1, 0, 0])
    >>> study = Study(X, Y, methods=["catalog"], targets=["f1"], folds=2, taxonomy=tree)
    >>> found = in_hierarchy(study.run())
    >>> found[0].method, found[0].closed
    ('catalog', 1.0)
    """
    taxonomy, found = results.taxonomy, []
    if taxonomy is None:
        return ()
    true, edges = closed(results.y_true, taxonomy), taxonomy.spanning_tree().lengths
    for outcome in results.outcomes:
        predicted, scale = closed(outcome.y_pred, taxonomy), results.scales.get(outcome.target)
        lengths = edges if scale is None or scale.lengths is None else np.array(scale.lengths)
        labels = per_label(predicted, true, zero_division=results.zero_division)
        found.append(
            InHierarchy(
                outcome.method,
                outcome.target,
                labels,
                ByLevel.of(labels, taxonomy, results.zero_division),
                closed=float(taxonomy.is_closed(outcome.y_pred).mean()),
                distance=float(row_distances(predicted, true, lengths).mean()),
                unit=unit_of(lengths),
            )
        )
    return tuple(found)

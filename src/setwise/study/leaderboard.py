"""Who is best for which target, which others are as good for all one can tell; and by level.

`leaderboard` orders the methods of each target; `in_hierarchy` has the figures of each level of a
taxonomy and of all, where every label set is taken with what stands above its labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise.evaluation import ByLevel, PerLabel, per_label
from setwise.evaluation.figure import aligned, described, interval, number, too_few_resamples
from setwise.evaluation.label_sets import closed, row_distances
from setwise.evaluation.statistics import (
    Bootstrap,
    Statistic,
    Title,
    holm,
    p_values,
    row_means,
)
from setwise.study.results import Outcome, Results, Scale, losses_of, said, unit_of
from setwise.targets import get_target


@dataclass(frozen=True)
class Standing:
    """One method on the leaderboard of one target.

    Attributes
    ----------
    method, target : str
        Their names.
    value : float
        The mean loss of the held-out rows; lower is better, and 1 - value is the mean utility.
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

    def __iter__(self) -> Iterator[Standing]:
        return iter(self.standings)

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
        distance = ["tree distance, as predicted"] if far else []
        lines = [["", "loss", "", *distance, "less best", "", "p", "adjusted p", ""]]
        for target in self.targets:
            lines.append([target])
            lines += [_line(standing, far) for standing in self.of(target)]
        return "\n".join([head, aligned(lines), *self._notes()])

    def _notes(self) -> list[str]:
        if not self.n_bootstrap:
            return ["* the best"]
        level = 1.0 - self.confidence
        notes = [
            f"* the best, or not significantly worse: adjusted p (Holm, all pairs of methods of a "
            f"target) above {level:.4g}"
        ]
        most = max(len(self.of(target)) for target in self.targets)
        n_pairs = most * (most - 1) // 2
        return notes + too_few_resamples(n_pairs, self.n_bootstrap, self.confidence)


def _line(standing: Standing, far: bool) -> list[str]:
    """The cells of a standing; with that of the distance where any has one."""
    distance = "" if standing.unit is None else said(standing.distance or 0.0, standing.unit)
    return [
        f"  {standing.method}",
        number(standing.value),
        interval(standing.low, standing.high),
        *([distance] if far else []),
        number(standing.difference),
        "" if standing.p is None else interval(standing.difference_low, standing.difference_high),
        "" if standing.p is None else f"{standing.p:.4f}",
        "" if standing.adjusted_p is None else f"{standing.adjusted_p:.4f}",
        "*" if standing.is_best_or_tied else "",
    ]


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
    """
    bootstrap = Bootstrap(n_bootstrap, confidence, seed)
    shape: Any = results.y_true.shape
    n_rows, n_labels = shape
    asked = [[o for o in results.outcomes if o.target == target] for target in results.targets]
    boards = [outcomes for outcomes in asked if outcomes]
    statistics = [_mean_losses(outcomes, results) for outcomes in boards]
    standings: list[Standing] = []
    if boards:
        replicates = bootstrap.replicates(statistics, n_rows, n_labels)
        parts = np.split(replicates, np.cumsum([len(outcomes) for outcomes in boards])[:-1])
        for outcomes, statistic, part in zip(boards, statistics, parts, strict=True):
            values = statistic.at(np.ones((n_rows, 1)))[:, 0]
            scale = results.scales.get(outcomes[0].target)
            standings += _standings(outcomes, values, part, bootstrap, scale)
    return Leaderboard(
        tuple(standings), n_rows, n_labels, bootstrap.n_resamples, bootstrap.confidence
    )


def _losses(outcome: Outcome, results: Results) -> NDArray[np.float64]:
    if outcome.losses is not None:
        return outcome.losses
    return losses_of(get_target(outcome.target), outcome.y_pred, results.y_true)


def _mean_losses(outcomes: Sequence[Outcome], results: Results) -> Statistic:
    """The mean loss of each outcome of a target, on the rows as they are or resampled."""
    titles = tuple(Title(outcome.method, "target", "lower") for outcome in outcomes)
    losses = np.column_stack([_losses(outcome, results) for outcome in outcomes])
    return row_means(titles, losses)


def _standings(
    outcomes: Sequence[Outcome],
    values: NDArray[Any],
    replicates: NDArray[Any],
    bootstrap: Bootstrap,
    scale: Scale | None,
) -> list[Standing]:
    """The standings of one target, from mean losses and their replicates (methods, resamples)."""
    best = int(np.argmin(values))
    differences = values - values[best]
    intervals = bootstrap.intervals(replicates)
    apart = bootstrap.intervals(replicates - replicates[best])
    p, adjusted = _against(best, values, replicates, bootstrap)
    standings = []
    for place in np.argsort(values, kind="stable").tolist():
        tied = differences[place] <= 0.0
        if adjusted[place] is not None:
            tied = adjusted[place] > 1.0 - bootstrap.confidence
        standings.append(
            Standing(
                method=outcomes[place].method,
                target=outcomes[place].target,
                value=float(values[place]),
                low=intervals[place][0],
                high=intervals[place][1],
                difference=float(differences[place]),
                difference_low=apart[place][0],
                difference_high=apart[place][1],
                p=p[place],
                adjusted_p=adjusted[place],
                is_best_or_tied=bool(tied),
                distance=scale and scale.distance(float(values[place])),
                unit=scale and scale.unit,
            )
        )
    return standings


def _against(
    best: int, values: NDArray[Any], replicates: NDArray[Any], bootstrap: Bootstrap
) -> tuple[list[float | None], list[float | None]]:
    """P-value, plain and adjusted over all pairs, of each method against the best."""
    p: list[float | None] = [None] * len(values)
    adjusted: list[float | None] = [None] * len(values)
    pairs = list(combinations(range(len(values)), 2))
    if bootstrap.n_resamples == 0 or not pairs:
        return p, adjusted
    first, second = np.array(pairs).T
    plain = p_values(values[second] - values[first], replicates[second] - replicates[first])
    for pair, before, after in zip(pairs, plain.tolist(), holm(plain).tolist(), strict=True):
        if best in pair:
            other = pair[0] if pair[1] == best else pair[1]
            p[other], adjusted[other] = before, after
    return p, adjusted


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
        return _ratio(self.levels.both.sum(), self.levels.predicted.sum())

    @property
    def recall(self) -> float | None:
        """Hierarchical recall; None where nothing is true."""
        return _ratio(self.levels.both.sum(), self.levels.support.sum())

    @property
    def f1(self) -> float | None:
        """Hierarchical F1; None where nothing is true and nothing predicted."""
        levels = self.levels
        return _ratio(2 * levels.both.sum(), (levels.predicted + levels.support).sum())

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, ready for JSON."""
        return {
            "method": self.method,
            "target": self.target,
            "precision": self.precision,
            "recall": self.recall,
            "f1": self.f1,
            "f1_by_level": self.levels.f1.tolist(),
            "closed": self.closed,
            "distance": self.distance,
            "unit": self.unit,
        }


def in_hierarchy(results: Results) -> tuple[InHierarchy, ...]:
    """Every outcome in the hierarchy of the study, in their order; none without a hierarchy."""
    if results.taxonomy is None:
        return ()
    true = closed(results.y_true, results.taxonomy)
    return tuple(_figures(outcome, results, true) for outcome in results.outcomes)


def _figures(outcome: Outcome, results: Results, true: Any) -> InHierarchy:
    taxonomy: Any = results.taxonomy
    predicted = closed(outcome.y_pred, taxonomy)
    labels, lengths = per_label(predicted, true), _lengths(outcome.target, results)
    return InHierarchy(
        method=outcome.method,
        target=outcome.target,
        labels=labels,
        levels=ByLevel.of(labels, taxonomy),
        closed=float(taxonomy.is_closed(outcome.y_pred).mean()),
        distance=float(row_distances(predicted, true, lengths).mean()),
        unit=unit_of(lengths),
    )


def _lengths(target: str, results: Results) -> NDArray[np.float64]:
    """Of each label's edge: those of the target if it has some, else of the hierarchy, (l,)."""
    taxonomy: Any = results.taxonomy
    scale = results.scales.get(target)
    own = None if scale is None else scale.lengths
    return taxonomy.spanning_tree().lengths if own is None else np.array(own)


def _ratio(above: Any, below: Any) -> float | None:
    return float(above / below) if below else None

"""Two predictions for the same rows: is the second better than the first?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

import numpy as np

from setwise.evaluation.evaluation import (
    checked_options,
    evaluation_of,
    statistics_of,
    titles_of,
)
from setwise.evaluation.figure import (
    Better,
    Evaluation,
    Group,
    aligned,
    described,
    found,
    interval,
    number,
)
from setwise.evaluation.sample import checked_sample, one_order
from setwise.evaluation.statistics import Array, Bootstrap, Statistic

# Differences this close count as equal in the p-value: they differ by rounding only.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Difference:
    """One figure for two predictions, and their difference.

    Attributes
    ----------
    name, group, better
        As in `Figure`.
    a, b : float
        The figure of the first and of the second prediction.
    value : float
        b - a.
    low, high : float or None
        Ends of the bootstrap interval of the difference; None without a bootstrap.
    p : float or None
        Two-sided bootstrap p-value of "there is no difference".
    adjusted_p : float or None
        The p-value after Holm's correction for all figures of the comparison.
    significant : bool or None
        Whether ``adjusted_p`` is at most 1 - confidence.
    """

    name: str
    group: Group
    a: float
    b: float
    value: float
    low: float | None
    high: float | None
    p: float | None
    adjusted_p: float | None
    significant: bool | None
    better: Better | None


@dataclass(frozen=True)
class Comparison(Mapping[str, Difference]):
    """The differences between two predictions, by name of the figure; printed, a table.

    Attributes
    ----------
    differences : dict of str to Difference
        For the figures that both have and of which some values are better than others.
    a, b : Evaluation
        Each prediction by itself, on the same resamples.
    """

    differences: dict[str, Difference]
    a: Evaluation
    b: Evaluation

    @property
    def figures(self) -> dict[str, Difference]:
        """The differences by name."""
        return self.differences

    def __getitem__(self, name: str) -> Difference:
        return found(self.differences, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.differences)

    def __len__(self) -> int:
        return len(self.differences)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, ready for JSON."""
        differences = {name: asdict(entry) for name, entry in self.differences.items()}
        return {"differences": differences, "a": self.a.to_dict(), "b": self.b.to_dict()}

    def __str__(self) -> str:
        lines = [["", "a", "b", "b - a", "", "p", "adjusted p", "", ""]]
        for group, members in groupby(self.differences.values(), lambda entry: entry.group):
            lines.append([group])
            lines += [_line(entry) for entry in members]
        a = self.a
        head = described(a.n_rows, a.n_labels, a.n_bootstrap, a.confidence)
        return "\n".join([head, aligned(lines), *self._notes()])

    def _notes(self) -> list[str]:
        """What to know about the p-values."""
        if not self.a.n_bootstrap:
            return []
        level, least = 1.0 - self.a.confidence, len(self) / (self.a.n_bootstrap + 1)
        notes = [f"* adjusted p (Holm, {len(self)} figures) at most {level:.4g}"]
        if least > level:
            notes.append(
                f"  the smallest adjusted p that {self.a.n_bootstrap} resamples can show is "
                f"{min(least, 1.0):.4g}: increase n_bootstrap"
            )
        return notes


def _line(entry: Difference) -> list[str]:
    return [
        f"  {entry.name}",
        number(entry.a),
        number(entry.b),
        number(entry.value),
        interval(entry.low, entry.high),
        "" if entry.p is None else f"{entry.p:.4f}",
        "" if entry.adjusted_p is None else f"{entry.adjusted_p:.4f}",
        "*" if entry.significant else "",
        f"{entry.better} is better",
    ]


def compare(
    y_pred_a: Any,
    y_pred_b: Any,
    y_true: Any,
    *,
    probability_a: Any = None,
    probability_b: Any = None,
    scores_a: Any = None,
    scores_b: Any = None,
    targets: Iterable[Any] = (),
    ks: Sequence[int] | None = None,
    propensity: Any = None,
    taxonomy: Any = None,
    n_bins: int = 15,
    zero_division: float = 1.0,
    n_bootstrap: int = 1000,
    confidence: float = 0.95,
    random_state: Any = 0,
) -> Comparison:
    """Two predictions for the same rows, figure by figure, by a paired bootstrap.

    Both predictions are judged on the same resampled rows, so that what makes rows easy or hard
    for both cancels in the difference b - a.

    Parameters
    ----------
    y_pred_a, y_pred_b : array or sparse matrix of shape (n, n_labels)
        The label sets of the first and the second prediction, 0/1.
    y_true : array or sparse matrix of shape (n, n_labels)
        The true label sets, 0/1.
    probability_a, probability_b, scores_a, scores_b : optional
        Probabilities and scores of each, as in `evaluate`.
    targets, ks, propensity, taxonomy, n_bins, zero_division, n_bootstrap, confidence, random_state
        As in `evaluate`; with ``n_bootstrap=0`` there are neither intervals nor p-values.

    Returns
    -------
    Comparison
        A `Difference` for each figure that both predictions have, mean sizes left out (neither
        larger nor smaller ones are better); and both evaluations.

    Notes
    -----
    With the difference d on the rows as they are, and d_1, ..., d_B on the resamples,

        p = (1 + number of r with |d_r - d| >= |d|) / (B + 1):

    the deviations of the resamples stand for those of d from the true difference, and p is how
    often they would reach d if the true difference were 0. It is at least 1 / (B + 1), and 1 for
    equal predictions.

    Holm's correction orders the m p-values p_1 <= ... <= p_m and makes them
    max over j <= i of (m - j + 1) p_j, at most 1. If all figures at most 1 - confidence after it
    are called different, the chance that any of them is not stays below 1 - confidence, as far as
    the p-values are right; a bootstrap makes them right for many rows. To find anything,
    ``n_bootstrap`` must be at least m / (1 - confidence).

    Intervals are percentiles of d_r, without a correction for their number.

    Examples
    --------
    >>> y_true = [[1, 0, 0], [0, 1, 1], [1, 0, 1], [0, 0, 1]] * 25
    >>> worse = [[1, 1, 0], [0, 1, 0], [1, 0, 1], [0, 1, 1]] * 25
    >>> comparison = compare(worse, y_true, y_true)
    >>> comparison["hamming loss"].value, comparison["hamming loss"].significant
    (-0.25, True)
    """
    sample_a = checked_sample(y_pred_a, y_true, probability_a, scores_a, "_a")
    sample_b = checked_sample(y_pred_b, y_true, probability_b, scores_b, "_b")
    n_rows, n_labels = sample_a.n_rows, sample_a.n_labels
    columns = one_order({"y_pred_a": sample_a.columns, "y_pred_b": sample_b.columns})
    options = checked_options(
        n_labels, targets, ks, propensity, n_bins, zero_division, taxonomy, columns
    )
    bootstrap = Bootstrap(n_bootstrap, confidence, random_state)
    of_a, of_b = statistics_of(sample_a, options), statistics_of(sample_b, options)
    replicates = bootstrap.replicates([*of_a, *of_b], n_rows, n_labels)
    from_a, from_b = np.split(replicates, [len(titles_of(of_a))])
    a = evaluation_of(sample_a, options, of_a, from_a, bootstrap)
    b = evaluation_of(sample_b, options, of_b, from_b, bootstrap)
    names = [name for name, figure in a.items() if name in b and figure.better]
    changes = _by_name(of_b, names, from_b) - _by_name(of_a, names, from_a)
    return Comparison(_differences(names, a, b, changes, bootstrap), a, b)


def _by_name(statistics: Sequence[Statistic], names: list[str], replicates: Array) -> Array:
    """The replicates of the named figures, in the order of the names."""
    rows = {title.name: row for row, title in enumerate(titles_of(statistics))}
    return replicates[[rows[name] for name in names]]


def _differences(
    names: list[str], a: Evaluation, b: Evaluation, replicates: Array, bootstrap: Bootstrap
) -> dict[str, Difference]:
    """The differences of the named figures, from their values and their replicates."""
    values = np.array([b[name].value - a[name].value for name in names])
    tests = _tests(values, replicates, bootstrap)
    intervals = bootstrap.intervals(replicates)
    return {
        name: Difference(
            name=name,
            group=a[name].group,
            a=a[name].value,
            b=b[name].value,
            value=b[name].value - a[name].value,
            low=low,
            high=high,
            p=p,
            adjusted_p=adjusted_p,
            significant=significant,
            better=a[name].better,
        )
        for name, (low, high), (p, adjusted_p, significant) in zip(
            names, intervals, tests, strict=True
        )
    }


def _tests(values: Array, replicates: Array, bootstrap: Bootstrap) -> list[tuple[Any, Any, Any]]:
    """p, adjusted p and significance of each difference; None without resamples."""
    if bootstrap.n_resamples == 0:
        return [(None, None, None)] * len(values)
    p = p_values(values, replicates)
    adjusted = holm(p)
    significant = adjusted <= 1.0 - bootstrap.confidence
    return list(zip(p.tolist(), adjusted.tolist(), significant.tolist(), strict=True))


def p_values(values: Array, replicates: Array) -> Array:
    """Two-sided p-value of each difference, from its replicates around it."""
    deviations = np.abs(replicates - values[:, None])
    as_large = (deviations >= np.abs(values)[:, None] - ROUNDING).sum(axis=1)
    return (1.0 + as_large) / (replicates.shape[1] + 1.0)


def holm(p: Array) -> Array:
    """P-values corrected for their number, in the order given."""
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted

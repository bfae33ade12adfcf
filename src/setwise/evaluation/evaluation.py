"""One call for all figures of a prediction, and one for two predictions of the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from setwise.evaluation import label_sets
from setwise.evaluation.figure import LOSS, Comparison, Difference, Evaluation, Figure
from setwise.evaluation.probability import calibration_statistics
from setwise.evaluation.ranking import checked_propensity, ranking_statistics
from setwise.evaluation.sample import Array, Sample, checked_sample, one_order
from setwise.evaluation.separation import separation_statistic
from setwise.evaluation.statistics import Bootstrap, Statistic, Title, holm, p_values
from setwise.targets import Target, get_target
from setwise.taxonomy import Taxonomy
from setwise.validation import whole_number

DEFAULT_KS = (1, 3, 5)


@dataclass(frozen=True)
class Options:
    """Which figures are taken, checked; see `evaluate`."""

    targets: tuple[Target, ...]
    ks: tuple[int, ...]
    propensity: Array | None
    taxonomy: Taxonomy | None
    n_bins: int
    zero_division: float

    @classmethod
    def of(
        cls, sample: Sample, targets: Any, ks: Any, propensity: Any, taxonomy: Any, n_bins: Any,
        zero_division: Any,
    ) -> Options:  # fmt: skip
        """What is asked of a sample, or a ValueError."""
        n_labels = sample.true.shape[1]
        if propensity is not None:
            propensity = checked_propensity(propensity, n_labels)
        if taxonomy is not None:
            taxonomy = label_sets.checked_taxonomy(taxonomy, n_labels, sample.columns)
        nothing = label_sets.checked_zero_division(zero_division)
        targets, ks = _checked_targets(targets), _checked_ks(ks, n_labels)
        return cls(targets, ks, propensity, taxonomy, whole_number(n_bins, "n_bins", 1), nothing)

    def statistics(self, sample: Sample) -> list[Statistic]:
        """What all figures need of a sample, in the order of the groups."""
        ranked_by = sample.probability if sample.scores is None else sample.scores
        if self.propensity is not None and ranked_by is None:
            raise ValueError("propensity gives psp@k of a ranking: pass probability or scores too")
        nothing = self.zero_division
        found = label_sets.instance_statistics(sample, nothing)
        found.append(label_sets.label_statistic(sample, nothing))
        if self.taxonomy is not None:
            found += label_sets.hierarchy_statistics(sample, self.taxonomy, nothing)
        if ranked_by is not None:
            options = self.ks, self.propensity, nothing
            found += ranking_statistics(ranked_by, sample.true, *options)
            found.append(separation_statistic(ranked_by, sample.true))
        if sample.probability is not None:
            found += calibration_statistics(sample.probability, sample.true, self.n_bins)
        for target in self.targets:
            title = Title(f"{LOSS}{target}", "target", "lower")
            found.append(label_sets.loss_statistic(title, target, sample))
        return found


def _checked_targets(targets: Any) -> tuple[Target, ...]:
    if isinstance(targets, str) or not isinstance(targets, Iterable):
        raise ValueError(f"targets must be a list of targets such as ['f2'], not {targets!r}")
    found = tuple(get_target(target) for target in targets)
    names = [str(target) for target in found]
    if len(set(names)) < len(names):
        raise ValueError(f"targets must have different names, but they are {names}")
    return found


def _checked_ks(ks: Any, n_labels: int) -> tuple[int, ...]:
    if ks is None:
        return tuple(k for k in DEFAULT_KS if k <= n_labels)
    if isinstance(ks, str) or not isinstance(ks, Iterable):
        raise ValueError(f"ks must be a list of whole numbers such as (1, 3, 5), not {ks!r}")
    found = sorted({whole_number(k, "each of ks", 1) for k in ks})
    if found and found[-1] > n_labels:
        raise ValueError(f"ks must be at most {n_labels}, the number of labels, not {found[-1]}")
    return tuple(found)


def evaluate(
    y_pred: Any,
    y_true: Any,
    *,
    probability: Any = None,
    scores: Any = None,
    targets: Iterable[Any] = (),
    ks: Sequence[int] | None = None,
    propensity: Any = None,
    taxonomy: Taxonomy | None = None,
    n_bins: int = 15,
    zero_division: float = 0.0,
    n_bootstrap: int = 1000,
    confidence: float = 0.95,
    random_state: Any = 0,
) -> Evaluation:
    """All figures of predicted label sets, with bootstrap intervals.

    Parameters
    ----------
    y_pred, y_true : array or sparse matrix of shape (n, n_labels)
        Predicted and true label sets, 0/1. Data frames, here and below, must have the same columns
        in the same order; columns that are only counted have no names to compare.
    probability : array or sparse matrix of shape (n, n_labels), optional
        Of each label, in [0, 1]; absent entries are 0. Gives figures of ranking and calibration.
    scores : array or sparse matrix of shape (n, n_labels), optional
        Finite scores to rank labels by in place of the probabilities; absent entries are 0.
    targets : iterable of str or Target
        Further targets. Their mean loss is reported as, for instance, ``"loss: f2"``, under the
        target's own name; of a measure of all rows together, such as "macro_f2", 1 - its value.
    ks : sequence of int, optional
        Numbers of first labels for the figures at k; by default 1, 3 and 5, as labels allow.
    propensity : array of shape (n_labels,), optional
        Propensity of each label, from `propensities`; gives psp@k.
    taxonomy : Taxonomy, optional
        A hierarchy over the labels, in the order of the columns (``taxonomy.over(columns)``); gives
        hierarchical precision, recall and f1, f1 on each level and tree distance.
    n_bins : int, default 15
        Number of bins of the calibration errors.
    zero_division : {0.0, 1.0, nan}, default 0.0
        The value of 0/0, see below; nan leaves such rows and labels out of means.
    n_bootstrap : int, default 1000
        Number of resamples; 0 for values without intervals.
    confidence : float, default 0.95
        Level of the intervals.
    random_state : int, Generator or None, default 0
        Seed of the resamples; with None they differ from call to call.

    Returns
    -------
    Evaluation
        A `Figure` for each name. Where scikit-learn has a figure, the value is its own but for
        rounding. `setwise.report.write` draws it as a page.

    Notes
    -----
    *Instance* figures are means over rows, *micro* figures count all entries together, *macro*
    figures are means over labels. The balanced accuracy of a label that is always or never true is
    the recall of the one class it has. "weighted f1" weights labels by how often they are true.

    *0/0* is ``zero_division`` in every precision, recall, f1 and jaccard, as in scikit-learn with
    that argument, whose default is 0 too; in recall@k for a row without true labels; and in psp@k
    without any. So "instance f1" is scikit-learn's ``f1_score(average="samples")``, and counts a
    row without true and predicted labels as 0, where "loss: f1" of ``targets=["f1"]`` counts it as
    right: targets have a convention of their own, ``empty=1`` by default. With
    ``zero_division=1.0`` both agree. For a row without true labels ndcg@k is 0, label ranking
    average precision 1, ranking loss and coverage error 0.

    *Average precision and ROC AUC* are of the ranking of the rows by each label's scores; micro, of
    all entries together. Macro figures are over the labels that have them: average precision needs
    a row where the label is true, the area also one where it is not. Macro average precision is
    often called mean average precision, mAP. (scikit-learn counts average precision as 0 where no
    row is true, and the mean area as NaN where one label has none.)

    *NaN* is the value of a figure that is not defined, without an interval: a mean with
    ``zero_division=nan`` where everything is 0/0, an area where no label has both classes.

    *Ties.* For precision@k, recall@k and psp@k, of labels with equal scores the lower one comes
    first. ndcg@k is the mean over all orders of equal scores. The other ranking figures count a
    tie against the ranking.

    *Hierarchy.* Both sets are taken with all labels above theirs; hierarchical figures are then
    over all entries (Kiritchenko, Matwin and Famili, 2005), and "tree distance" is the mean length
    of the edges on which they differ, those of the spanning tree where labels have several parents.
    The loss of a `TreeDistance` among the targets is that of the sets as predicted. "closed
    predictions" is the share of predicted sets that had all above their labels.

    *psp@k* is the sum over rows of 1 / propensity over the true labels among the first k, divided
    by the largest sum that k labels in each row could reach.

    *Calibration.* The Brier score is the mean of (p - y)² over all entries. For the calibration
    errors all entries are put into bins of equal width, each with its upper end: the expected one
    is the mean gap between mean probability and frequency, weighted by the entries in a bin, the
    maximum the largest gap.

    *Intervals* are from the Bayesian bootstrap: each resample weights the rows by exponential
    variables. The percentiles of the figure on the resamples are moved so that their median is the
    value. So an interval always covers its value, and no label vanishes from a resample. Average
    precision and ROC AUC are taken to first order in the weights. For macro figures the counts of
    each label are spread by Jeffreys' prior, without which a label that is true in one row seems to
    have no spread. 95 % intervals cover the value for all rows of the source about 92 to 97 times
    in a hundred from 50 rows on; less often those of macro balanced accuracy, average precision and
    ROC AUC where labels are rare, and of calibration errors, which are themselves too large on
    small samples. They speak of other rows from the same source, not of training again.

    *Cost.* A sort of each row's nonzero scores and a search for each among those of true entries;
    ``n_bootstrap`` products of the weights with the label sets. Memory grows with the stored
    entries of sparse arrays.

    Examples
    --------
    >>> print(evaluate([[1, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 0, 1]], n_bootstrap=0))
    2 rows, 3 labels; no intervals
    instance
      hamming loss             0.1667   lower is better
      subset accuracy          0.5000  higher is better
    ...
    """
    sample = checked_sample(y_pred, y_true, probability, scores)
    options = Options.of(sample, targets, ks, propensity, taxonomy, n_bins, zero_division)
    bootstrap = Bootstrap(n_bootstrap, confidence, random_state)
    [(evaluation, _)] = _evaluations([sample], options, bootstrap)
    return evaluation


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
    zero_division: float = 0.0,
    n_bootstrap: int = 1000,
    confidence: float = 0.95,
    random_state: Any = 0,
) -> Comparison:
    """Two predictions for the same rows, figure by figure, by a paired bootstrap.

    Both predictions are judged on the same resampled rows, so that what makes rows easy or hard
    for both cancels in the difference b - a.

    Parameters
    ----------
    y_pred_a, y_pred_b, y_true : array or sparse matrix of shape (n, n_labels)
        The label sets of the first and the second prediction and the true ones, 0/1.
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

    how often the deviations of the resamples, which stand for those of d from the true difference,
    would reach d if the true difference were 0. It is 1 for equal predictions.

    Holm's correction orders the m p-values p_1 <= ... <= p_m and makes them
    max over j <= i of (m - j + 1) p_j, at most 1. If all figures at most 1 - confidence after it
    are called different, the chance that any of them is not stays below 1 - confidence, as far as
    the p-values are right; a bootstrap makes them right for many rows. To find anything,
    ``n_bootstrap`` must be at least m / (1 - confidence). Intervals are not corrected.

    Examples
    --------
    >>> y_true = [[1, 0, 0], [0, 1, 1], [1, 0, 1], [0, 0, 1]] * 25
    >>> worse = [[1, 1, 0], [0, 1, 0], [1, 0, 1], [0, 1, 1]] * 25
    >>> comparison = compare(worse, y_true, y_true)
    >>> comparison["hamming loss"].value, comparison["hamming loss"].significant
    (-0.25, True)
    """
    samples = [
        checked_sample(y_pred_a, y_true, probability_a, scores_a, "_a"),
        checked_sample(y_pred_b, y_true, probability_b, scores_b, "_b"),
    ]
    columns = one_order({"y_pred_a": samples[0].columns, "y_pred_b": samples[1].columns})
    named = replace(samples[0], columns=columns)
    options = Options.of(named, targets, ks, propensity, taxonomy, n_bins, zero_division)
    bootstrap = Bootstrap(n_bootstrap, confidence, random_state)
    (a, on_a), (b, on_b) = _evaluations(samples, options, bootstrap)
    both = [name for name, figure in a.items() if name in b and figure.better]
    names = [name for name in both if not np.isnan(b[name].value - a[name].value)]
    rows_a, rows_b = ([list(own).index(name) for name in names] for own in (a, b))
    changes = on_b[rows_b] - on_a[rows_a]
    return Comparison(_differences(names, a, b, changes, bootstrap), a, b)


def _evaluations(
    samples: Sequence[Sample], options: Options, bootstrap: Bootstrap
) -> list[tuple[Evaluation, Array]]:
    """The evaluation of each sample with the replicates of its figures, on the same resamples."""
    n_rows, n_labels = samples[0].true.shape
    statistics = [options.statistics(sample) for sample in samples]
    judged = bootstrap.judged(statistics, n_rows, n_labels)
    found = []
    for sample, own, (values, replicates) in zip(samples, statistics, judged, strict=True):
        titles = [title for statistic in own for title in statistic.titles]
        intervals = bootstrap.intervals(values, replicates, 0.0, [title.most for title in titles])
        figures = {
            name: Figure(name, group, value, *ends, better)
            for (name, group, better, _), value, ends in zip(
                titles, values.tolist(), intervals, strict=True
            )
        }
        size = n_rows, n_labels, bootstrap.n_resamples, bootstrap.confidence
        found.append((Evaluation(figures, *size, sample, options), replicates))
    return found


def _differences(
    names: list[str], a: Evaluation, b: Evaluation, replicates: Array, bootstrap: Bootstrap
) -> dict[str, Difference]:
    """The differences of the named figures, from their values and their replicates."""
    values = np.array([b[name].value - a[name].value for name in names])
    tests: list[Any] = [(None, None, None)] * len(names)
    if bootstrap.n_resamples:
        p = p_values(values, replicates)
        adjusted = holm(p)
        significant = adjusted <= 1.0 - bootstrap.confidence
        tests = list(zip(p.tolist(), adjusted.tolist(), significant.tolist(), strict=True))
    intervals = bootstrap.intervals(values, replicates, -np.inf, np.inf)
    rows = zip(names, values.tolist(), intervals, tests, strict=True)
    found = {}
    for name, value, ends, test in rows:
        group, better, both = a[name].group, a[name].better, (a[name].value, b[name].value)
        found[name] = Difference(name, group, *both, value, *ends, *test, better=better)
    return found

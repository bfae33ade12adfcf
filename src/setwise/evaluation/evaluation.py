"""One call for all figures of a prediction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from setwise.evaluation.figure import GROUPS, Evaluation, Figure
from setwise.evaluation.hierarchy import checked_taxonomy, hierarchy_statistics
from setwise.evaluation.label_sets import (
    checked_zero_division,
    instance_statistics,
    label_counts,
    target_means,
)
from setwise.evaluation.probability import calibration_statistics
from setwise.evaluation.ranking import (
    checked_propensity,
    propensity_scored,
    ranking_means,
    true_ranks,
)
from setwise.evaluation.sample import Array, Sample, checked_sample
from setwise.evaluation.statistics import Bootstrap, Statistic, Title
from setwise.targets import Target, get_target
from setwise.taxonomy import Taxonomy
from setwise.validation import whole_number

DEFAULT_KS = (1, 3, 5)


@dataclass(frozen=True)
class Options:
    """Which figures are taken, checked; made by `checked_options`."""

    targets: tuple[Target, ...]
    ks: tuple[int, ...]
    propensity: Array | None
    n_bins: int
    zero_division: float
    taxonomy: Taxonomy | None = None


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
    zero_division: float = 1.0,
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
        Probability of each label, in [0, 1]; absent entries are 0. Gives the figures of ranking
        and calibration.
    scores : array or sparse matrix of shape (n, n_labels), optional
        Finite scores by which labels are ranked in place of the probabilities; absent entries
        are 0. Gives the figures of ranking only.
    targets : iterable of str or Target
        Further targets. Their mean loss is reported as, for instance, ``"loss: f2"``.
    ks : sequence of int, optional
        Numbers of first labels for the figures at k; by default those of 1, 3 and 5 that are
        not larger than the number of labels.
    propensity : array of shape (n_labels,), optional
        Propensity of each label, from `propensities`; gives psp@k.
    taxonomy : Taxonomy, optional
        A hierarchy over the labels, in the order of the columns (``taxonomy.over(columns)``); gives
        the figures of label sets with all above their labels: hierarchical precision, recall and
        f1, f1 on each level and tree distance (by the spanning tree where labels have several
        parents).
    n_bins : int, default 15
        Number of bins of the calibration errors.
    zero_division : {0.0, 1.0}, default 1.0
        The value of 0/0, see below.
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
    that argument: for instance a precision where nothing is predicted, or f1 where nothing is true
    and nothing predicted. So it is in recall@k for a row without true labels, and in psp@k without
    any. The default 1 agrees with ``empty=1`` of setwise's targets; scikit-learn's default is 0.
    For a row without true labels ndcg@k is 0, label ranking average precision 1, ranking loss and
    coverage error 0, all as in scikit-learn.

    *Ties.* For precision@k, recall@k and psp@k, of labels with equal scores the lower one comes
    first. ndcg@k is the mean over all orders of equal scores. The other ranking figures count a
    tie against the ranking.

    *Hierarchy.* Both sets are closed first; hierarchical figures are then over all entries
    (Kiritchenko, Matwin and Famili, 2005), and "tree distance" is the mean length of the edges on
    which they differ, those of the spanning tree where labels have several parents. The loss of a
    `TreeDistance` among the targets is that of the sets as predicted. "closed predictions" is the
    share of predicted sets that were closed.

    *psp@k* is the sum over rows of 1 / propensity over the true labels among the first k, divided
    by the largest sum that k labels in each row could reach.

    *Calibration.* The Brier score is the mean of (p - y)² over all entries. For the calibration
    errors all entries are put into bins of equal width, each with its upper end. The expected one
    is the mean gap between mean probability and frequency in a bin, weighted by the entries in it;
    the maximum is the largest gap. Where almost every entry is near 0, so are these figures.

    *Intervals* are the percentiles of the figure over resamples of the rows. They speak of other
    rows from the same source, not of training again. A figure that is not a mean over rows (macro
    above all) is biased on resamples, and its value may lie near an end of its interval.

    *Cost.* A sort of each row's nonzero scores, and ``n_bootstrap`` products of the weights with
    the label sets. Memory grows with the stored entries, and not with n x n_labels for sparse
    arrays.

    Examples
    --------
    >>> evaluation = evaluate([[1, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 0, 1]], targets=["f2"])
    >>> round(evaluation["instance f1"].value, 4)
    0.8333
    >>> print(evaluate([[1, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 0, 1]], n_bootstrap=0))
    2 rows, 3 labels; no intervals
    instance
      hamming loss             0.1667   lower is better
      subset accuracy          0.5000  higher is better
    ...
    """
    sample = checked_sample(y_pred, y_true, probability, scores)
    options = checked_options(
        sample.n_labels, targets, ks, propensity, n_bins, zero_division, taxonomy, sample.columns
    )
    bootstrap = Bootstrap(n_bootstrap, confidence, random_state)
    statistics = statistics_of(sample, options)
    replicates = bootstrap.replicates(statistics, sample.n_rows, sample.n_labels)
    return evaluation_of(sample, options, statistics, replicates, bootstrap)


def checked_options(
    n_labels: int,
    targets: Any,
    ks: Any,
    propensity: Any,
    n_bins: Any,
    zero_division: Any,
    taxonomy: Any = None,
    columns: list[Any] | None = None,
) -> Options:
    """The options of `evaluate`, or a ValueError."""
    return Options(
        targets=_checked_targets(targets),
        ks=_checked_ks(ks, n_labels),
        propensity=None if propensity is None else checked_propensity(propensity, n_labels),
        n_bins=whole_number(n_bins, "n_bins", 1),
        zero_division=checked_zero_division(zero_division),
        taxonomy=None if taxonomy is None else checked_taxonomy(taxonomy, n_labels, columns),
    )


def _checked_targets(targets: Any) -> tuple[Target, ...]:
    if isinstance(targets, str) or not isinstance(targets, Iterable):
        raise ValueError(f"targets must be a list of targets such as ['f2'], not {targets!r}")
    found = tuple(get_target(target) for target in targets)
    names = [str(target) for target in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"targets must have different names, but two are named {twice[0]!r}")
    return found


def _checked_ks(ks: Any, n_labels: int) -> tuple[int, ...]:
    if ks is None:
        return tuple(k for k in DEFAULT_KS if k <= n_labels)
    if isinstance(ks, str) or not isinstance(ks, Iterable):
        raise ValueError(f"ks must be a list of whole numbers such as (1, 3, 5), not {ks!r}")
    found = sorted({whole_number(k, "each of ks", 1) for k in ks})
    if found and found[-1] > n_labels:
        raise ValueError(
            f"each of ks must not be larger than the number of labels, "
            f"but {found[-1]} is larger than {n_labels}"
        )
    return tuple(found)


def statistics_of(sample: Sample, options: Options) -> list[Statistic]:
    """What all figures need of a sample."""
    if options.propensity is not None and sample.ranked_by is None:
        raise ValueError(
            "propensity is used for psp@k, which needs a ranking: pass probability or scores too"
        )
    statistics: list[Statistic] = [
        *instance_statistics(sample, options.zero_division),
        label_counts(sample, options.zero_division),
    ]
    if options.taxonomy is not None:
        statistics += hierarchy_statistics(sample, options.taxonomy, options.zero_division)
    if sample.ranked_by is not None:
        ranks = true_ranks(sample.ranked_by, sample.true)
        statistics.append(ranking_means(ranks, options.ks, options.zero_division))
        if options.propensity is not None and options.ks:
            statistics.append(
                propensity_scored(ranks, options.ks, options.propensity, options.zero_division)
            )
    if sample.probability is not None:
        statistics += calibration_statistics(sample.probability, sample.true, options.n_bins)
    if options.targets:
        statistics.append(target_means(sample, options.targets))
    return statistics


def titles_of(statistics: Sequence[Statistic]) -> list[Title]:
    """The figures of the statistics, in the order of their rows of values."""
    return list(chain.from_iterable(statistic.titles for statistic in statistics))


def evaluation_of(
    sample: Sample,
    options: Options,
    statistics: Sequence[Statistic],
    replicates: Array,
    bootstrap: Bootstrap,
) -> Evaluation:
    """Values and intervals put together."""
    ones = np.ones((sample.n_rows, 1))
    values = np.concatenate([statistic.at(ones)[:, 0] for statistic in statistics])
    figures = [
        Figure(name, group, float(value), low, high, better)
        for (name, group, better), value, (low, high) in zip(
            titles_of(statistics), values, bootstrap.intervals(replicates), strict=True
        )
    ]
    figures.sort(key=lambda figure: GROUPS.index(figure.group))
    return Evaluation(
        {figure.name: figure for figure in figures},
        sample.n_rows,
        sample.n_labels,
        bootstrap.n_resamples,
        bootstrap.confidence,
        sample,
        options,
    )

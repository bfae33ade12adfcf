"""The figures that scikit-learn has, as scikit-learn computes them."""

from __future__ import annotations

from typing import Any

from scipy.sparse import issparse

from setwise.evaluation.sample import Sample

# Ranking figures and the Brier score exist for dense arrays only, and some of them take
# scikit-learn a quarter of a millisecond for each row. Up to this size it is asked for them.
DENSE_ROWS, DENSE_ENTRIES = 2**12, 2**20


def scikit_figures(sample: Sample, ks: tuple[int, ...], zero_division: float) -> dict[str, float]:
    """Figures by name, as far as scikit-learn takes the sample.

    It has no figures for a single label (it reads a column as two classes), and those for dense
    arrays are left out for large samples. Our own statistics with all weights 1 are the same
    numbers, so they fill the gaps.
    """
    if sample.n_labels == 1:
        return {}
    figures = _label_set_figures(sample, zero_division)
    if sample.n_rows <= DENSE_ROWS and sample.n_rows * sample.n_labels <= DENSE_ENTRIES:
        y_true = sample.true.toarray()
        if sample.ranked_by is not None:
            figures |= _ranking_figures(_dense(sample.ranked_by), y_true, ks)
        if sample.probability is not None:
            figures |= _brier_score(_dense(sample.probability), y_true)
    return figures


def _label_set_figures(sample: Sample, zero_division: float) -> dict[str, float]:
    from sklearn.metrics import (
        accuracy_score,
        hamming_loss,
        jaccard_score,
        precision_recall_fscore_support,
    )

    y_true, y_pred = sample.true, sample.predicted
    figures = {
        "hamming loss": hamming_loss(y_true, y_pred),
        "subset accuracy": accuracy_score(y_true, y_pred),
    }
    for name, average in {"instance": "samples", "micro": "micro", "macro": "macro"}.items():
        options: dict[str, Any] = {"average": average, "zero_division": zero_division}
        three = precision_recall_fscore_support(y_true, y_pred, **options)[:3]
        figures |= zip((f"{name} precision", f"{name} recall", f"{name} f1"), three, strict=True)
        figures[f"{name} jaccard"] = jaccard_score(y_true, y_pred, **options)
    options = {"average": "weighted", "zero_division": zero_division}
    figures["weighted f1"] = precision_recall_fscore_support(y_true, y_pred, **options)[2]
    return {name: float(value) for name, value in figures.items()}


def _ranking_figures(scores: Any, y_true: Any, ks: tuple[int, ...]) -> dict[str, float]:
    from sklearn.metrics import (
        coverage_error,
        label_ranking_average_precision_score,
        label_ranking_loss,
        ndcg_score,
    )

    return {
        **{f"ndcg@{k}": float(ndcg_score(y_true, scores, k=k)) for k in ks},
        "label ranking average precision": float(
            label_ranking_average_precision_score(y_true, scores)
        ),
        "ranking loss": float(label_ranking_loss(y_true, scores)),
        "coverage error": float(coverage_error(y_true, scores)),
    }


def _brier_score(probability: Any, y_true: Any) -> dict[str, float]:
    from sklearn.metrics import brier_score_loss

    return {
        "brier score": float(brier_score_loss(y_true.ravel(), probability.ravel(), pos_label=1))
    }


def _dense(matrix: Any) -> Any:
    return matrix.toarray() if issparse(matrix) else matrix

"""Other names of the targets, and what to use in place of measures that are none.

A target is named by its loss ("hamming_loss") or its utility ("subset_accuracy") alike: the loss is
1 - the utility, so training for one is training for the other. In a name, ``*`` stands for a number
and ``?`` for the rest of the name.
"""

from __future__ import annotations

import re

# Each leads to a name of `registry.TARGETS` or of `NEAR`.
ALIASES = {
    "f_measure": "f1",
    "f_score": "f1",
    "dice": "f1",
    "iou": "jaccard",
    "intersection_over_union": "jaccard",
    "accuracy": "subset",  # scikit-learn's, of label sets
    "subset_accuracy": "subset",
    "exact_match": "subset",
    "zero_one": "subset",
    "subset_zero_one": "subset",
    "0/1": "subset",
    "subset_0/1": "subset",
    "p@*": "precision@*",
    "prec@*": "precision@*",
    "precision_at_*": "precision@*",
    "r@*": "recall@*",
    "recall_at_*": "recall@*",
    "one_error": "precision@1",
    "macro_accuracy": "hamming",  # accuracy of the single decisions
    "micro_accuracy": "hamming",
    "balanced_accuracy": "macro_balanced_accuracy",
    "g_mean": "macro_g_mean",
    "gmean": "macro_g_mean",
    "geometric_mean": "macro_g_mean",
    "samples_f*": "f*_samples",
    "samples_jaccard": "jaccard_samples",
    "samples_precision": "precision_samples",
    "samples_recall": "recall_samples",
    "f_beta": "fbeta",
    "auc": "roc_auc",
    "auroc": "roc_auc",
    "?_auc": "roc_auc",
    "roc_auc_?": "roc_auc",
    "map": "average_precision",
    "map@*": "average_precision",
    "?_average_precision": "average_precision",
    "lrap": "label_ranking",
    "label_ranking_?": "label_ranking",
    "ndcg@*": "ndcg",
    "dcg@*": "dcg",
    "neg_log_loss": "log_loss",
    "cross_entropy": "log_loss",
    "brier": "brier_score",
    "?_binary": "binary",
    "binary_?": "binary",
}

_RANKING = (
    "it judges a ranking of the labels, not a label set: predict_proba of any model ranks them, "
    "and evaluate(..., probability=...) has the figures of rankings; near is 'precision@5'"
)
_PROBABILITIES = (
    "it judges probabilities, not label sets: the likelihood, on which SetClassifier() is trained "
    "by default, is best for them, and predict_proba returns them"
)
# Measures that are no target, with what is near and what to use today.
NEAR = {
    "roc_auc": _RANKING,
    "average_precision": _RANKING,
    "dcg": _RANKING,
    "ndcg": f'{_RANKING}; Ranking("ndcg@5") of setwise.decoders ranks the labels of '
    "predict_distribution best for it",
    "label_ranking": _RANKING,
    "ranking_loss": _RANKING,
    "coverage_error": _RANKING,
    "log_loss": _PROBABILITIES,
    "brier_score": _PROBABILITIES,
    "precision": "it is best for predicting next to nothing; near are 'precision@5', of the five "
    "labels predicted, and 'f0.5', where precision weighs more than recall; with the average as "
    "part of the name there are 'macro_precision', 'micro_precision', 'weighted_precision' and "
    "'precision_samples'",
    "recall": "it is 1 for predicting every label; near are 'recall@5', with five labels "
    "predicted, and 'f2', where recall weighs more than precision; with the average as part of the "
    "name there are 'macro_recall', 'micro_recall', 'weighted_recall' and 'recall_samples'",
    "binary": "it judges one label, not label sets; averages over several are 'macro_f1', "
    "'micro_f1' and 'weighted_f1', which of one label are the same number",
    "fbeta": "its beta is part of the name: 'f1', 'f2', 'f0.5'",
    "tree": "it needs a taxonomy, so it is an object: TreeDistance(taxonomy)",
}

# What a name may say beside the measure: over what the mean is taken, and that it is a measure.
_SILENT = (
    "neg|samples?|instances?|examples?|based|wise|scores?|loss|error|measure|index|ratio|distance|"
    "similarity|coefficient"
)
_AROUND = re.compile(rf"^(?:{_SILENT})+|(?:{_SILENT})+$")


def joined(name: str) -> str:
    """The name in small letters, without what parts its words; digits are never joined."""
    name = re.sub(r"\s*([@/])\s*", r"\1", name.strip().lower())
    return re.sub(r"(?<=[^\W\d_])[\s_-]+(?=.)|(?<=[\d*?])[\s_-]+(?=\D)", "", name)


def bare(name: str) -> str:
    """The name, joined, without words such as "score" and "samples"; "macro" and its like in front.

    Examples
    --------
    >>> bare("F1-score samples"), bare("hamming_loss"), bare("f1_macro")
    ('f1', 'hamming', 'macrof1')
    """
    plain = _AROUND.sub("", joined(name)) or joined(name)
    return re.sub(r"^(.+?)(macro|micro|weighted)$", r"\2\1", plain)

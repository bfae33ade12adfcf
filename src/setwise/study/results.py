"""What a study found: every method's predictions for rows it was not trained on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from setwise.evaluation.sample import row_ranges
from setwise.study.scale import Scale
from setwise.targets import Target
from setwise.taxonomy import Taxonomy


@dataclass(frozen=True)
class Outcome:
    """One method, trained and decoded for one target, over all held-out rows.

    Attributes
    ----------
    method, target : str
        Their names.
    y_pred : sparse array of shape (n, l)
        Predicted label sets, 0/1.
    probability : array of shape (n, l) or None
        The probability of each label, where the method has one.
    guarantee : str
        What is proved of the method for this target, in words.
    settings : tuple of mappings
        What was chosen in each fold: penalty, space, ...
    fit_seconds, predict_seconds : tuple of float
        Of each fold; a fit shared between targets is counted for each of them.
    losses : array of shape (n,) or None
        The loss of each row, so that a target that has no name can be judged too; None if it is to
        be computed from the target's name.
    """

    method: str
    target: str
    y_pred: sparse.csr_array
    probability: NDArray[np.float32] | None
    guarantee: str
    settings: tuple[Mapping[str, Any], ...]
    fit_seconds: tuple[float, ...]
    predict_seconds: tuple[float, ...]
    losses: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class KnownTruth:
    """What is exactly known where the law of the data is.

    Attributes
    ----------
    best : mapping from target to float
        The expected loss of the best prediction, the mean over the held-out inputs.
    expected : mapping from (method, target) to float
        The expected loss of a method's predictions; less ``best``, its regret.
    surrogate_regret : mapping from (method, target) to float
        The regret of the loss trained on, where it is known; with ``bound``, it bounds the regret.
    bound : mapping from (method, target) to float
        What the theorem then allows as regret.
    """

    best: Mapping[str, float]
    expected: Mapping[tuple[str, str], float]
    surrogate_regret: Mapping[tuple[str, str], float] = field(default_factory=dict)
    bound: Mapping[tuple[str, str], float] = field(default_factory=dict)


@dataclass(frozen=True)
class Results:
    """All outcomes of a study, and what is needed to judge and to repeat them.

    Attributes
    ----------
    name : str
        Of the data.
    label_names : tuple of str
        One for each column.
    y_true : sparse array of shape (n, l)
        True label sets of the held-out rows, in the order of the outcomes' rows.
    fold : array of shape (n,)
        The fold in which each row was held out; all 0 for a single split.
    n_train : tuple of int
        Rows trained on, in each fold.
    targets, methods : tuple of str
        In the order asked for.
    outcomes : tuple of Outcome
        Those finished, in the order of methods, then targets.
    question : mapping
        What was asked: command, data file, split, seed; in the order to be shown.
    versions : mapping
        Of Python and of the libraries, and the machine's processor and threads.
    taxonomy : Taxonomy or None
        The hierarchy over the labels.
    truth : KnownTruth or None
        Where the law of the data is known.
    scales : mapping from target to Scale
        Of the targets that are tree distances, what loss 1 is in units of length.
    """

    name: str
    label_names: tuple[str, ...]
    y_true: sparse.csr_array
    fold: NDArray[np.intp]
    n_train: tuple[int, ...]
    targets: tuple[str, ...]
    methods: tuple[str, ...]
    outcomes: tuple[Outcome, ...]
    question: Mapping[str, Any]
    versions: Mapping[str, str]
    taxonomy: Taxonomy | None = None
    truth: KnownTruth | None = None
    scales: Mapping[str, Scale] = field(default_factory=dict)


def losses_of(target: Target, y_pred: Any, y_true: Any) -> NDArray[np.float64]:
    """The loss of each row of sparse label sets, (n,); rows become dense a range at a time."""
    losses = np.empty(y_true.shape[0])
    for rows in row_ranges(*y_true.shape):
        losses[rows] = target.loss(y_pred[rows], y_true[rows])
    return losses

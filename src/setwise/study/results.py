"""What a study found: every method's predictions for rows it was not trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from setwise.study.members import MemberFigures, merged
from setwise.targets.target import hierarchy_of
from setwise.taxonomy import Taxonomy


@dataclass(frozen=True)
class Outcome:
    """One method, trained and decoded for one target, over all held-out rows, or those of a fold.

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
    members : tuple of MemberFigures
        Of a mixture, its members and last itself; empty for others.

    Examples
    --------
    >>> from setwise.study import Study
    >>> X, Y = [[0.0], [1.0]] * 4, [[1, 0], [0, 1]] * 4
    >>> study = Study(X, Y, methods=["binary_relevance"], targets=["f1"], folds=2)
    >>> (found,) = study.run().outcomes
    >>> found.y_pred.shape, found.losses.tolist()[:3]
    ((8, 2), [0.0, 0.0, 0.0])
    """

    method: str
    target: str
    y_pred: csr_array
    probability: NDArray[np.float32] | None
    guarantee: str
    settings: tuple[Mapping[str, Any], ...]
    fit_seconds: tuple[float, ...]
    predict_seconds: tuple[float, ...]
    losses: NDArray[np.float64] | None = None
    members: tuple[MemberFigures, ...] = ()


def joined(folds: Sequence[Any]) -> Outcome:
    """The outcome of all folds, from that of each."""
    guarantee, probabilities = folds[0].guarantee, [fold.probability for fold in folds]
    if any(fold.guarantee != guarantee for fold in folds):
        guarantee += f" (Of the first of {len(folds)} folds.)"
    known = all(part is not None for part in probabilities)
    lists = ("settings", "fit_seconds", "predict_seconds")
    return replace(
        folds[0],
        y_pred=csr_array(vstack([fold.y_pred for fold in folds])),
        probability=np.concatenate(probabilities) if known else None,
        guarantee=guarantee,
        losses=np.concatenate([fold.losses for fold in folds]),
        members=merged([fold.members for fold in folds]),
        **{name: tuple(chain(*(getattr(fold, name) for fold in folds))) for name in lists},
    )


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

    Examples
    --------
    >>> truth = KnownTruth({"f1": 0.2}, {("catalog", "f1"): 0.23})
    >>> round(truth.expected["catalog", "f1"] - truth.best["f1"], 2)
    0.03
    """

    best: Mapping[str, float]
    expected: Mapping[tuple[str, str], float]
    surrogate_regret: Mapping[tuple[str, str], float] = field(default_factory=dict)
    bound: Mapping[tuple[str, str], float] = field(default_factory=dict)


@dataclass(frozen=True)
class Scale:
    """Tree distance in the units of its lengths, of which its loss is a share.

    Attributes
    ----------
    whole : float
        What a loss of 1 is: the length of all edges, or what else counts as loss 1.
    unit : str
        "edges" where all lengths are 1, else "units of length".
    lengths : sequence of float or None
        Of the edge of each label.

    Examples
    --------
    >>> from setwise.targets import TreeDistance
    >>> Scale.of(TreeDistance([-1, 0, 0])).said(0.5)
    '1.5 edges'
    """

    whole: float
    unit: str
    lengths: Sequence[float] | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, target: Any) -> Scale | None:
        """Of a tree distance; None for another target."""
        if hierarchy_of(target) is None:
            return None
        whole = target.lengths.sum() if target.largest is None else target.largest
        return cls(float(whole), unit_of(target.lengths), tuple(target.lengths.tolist()))

    def distance(self, loss: float) -> float:
        """A mean loss as a mean distance."""
        return loss * self.whole

    def said(self, loss: float) -> str:
        """The same in words."""
        return f"{self.distance(loss):.4g} {self.unit}"


def unit_of(lengths: Any) -> str:
    """What distances are counted in."""
    return "edges" if (np.asarray(lengths) == 1.0).all() else "units of length"


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
    descriptions : mapping from method to str
        What each method trains and how it decides, in a sentence or two.
    row_names : tuple of str
        What each held-out row is called; empty where they are only counted.
    zero_division : float
        The value of 0/0 in precision, recall, F1 and Jaccard. (Losses of targets have their own.)

    Examples
    --------
    >>> from setwise.study import Study
    >>> X, Y = [[0.0], [1.0]] * 4, [[1, 0], [0, 1]] * 4
    >>> results = Study(X, Y, methods=["binary_relevance"], targets=["f1"], folds=2).run()
    >>> results.methods, results.targets, results.n_train
    (('binary_relevance',), ('f1',), (4, 4))
    """

    name: str
    label_names: tuple[str, ...]
    y_true: csr_array
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
    descriptions: Mapping[str, str] = field(default_factory=dict)
    row_names: tuple[str, ...] = ()
    zero_division: float = 0.0

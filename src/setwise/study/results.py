"""What a study found: every method's predictions for rows it was not trained on."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from setwise.evaluation.sample import row_ranges
from setwise.study.folder import Finished, Stored, Unit, read, warn_of_damage
from setwise.targets import Target
from setwise.targets.target import hierarchy_of
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
    y_pred: csr_array
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
        return said(self.distance(loss), self.unit)


def unit_of(lengths: Any) -> str:
    """What distances are counted in."""
    return "edges" if (np.asarray(lengths) == 1.0).all() else "units of length"


def said(distance: float, unit: str) -> str:
    """A distance with its unit."""
    return f"{distance:.4g} {unit}"


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

    @classmethod
    def of(cls, stored: Stored) -> Results:
        """The methods and targets that have finished all folds, of what a folder holds."""
        told, found = stored.asked.told, stored.finished
        outcomes = []
        for method in told["methods"]:
            for target in told["targets"]:
                units = [Unit(method, target, fold) for fold in range(len(told["n_train"]))]
                if all(unit in found for unit in units):
                    outcomes.append(_outcome(method, target, [found[unit] for unit in units]))
        return cls(
            name=told["name"],
            label_names=tuple(told["label_names"]),
            y_true=stored.asked.y_true,
            fold=stored.asked.fold,
            n_train=tuple(told["n_train"]),
            targets=tuple(told["targets"]),
            methods=tuple(told["methods"]),
            outcomes=tuple(outcomes),
            question=told["question"],
            versions=told["versions"],
            taxonomy=stored.asked.taxonomy,
            scales={name: Scale(**scale) for name, scale in told["scales"].items()},
        )


def _outcome(method: str, target: str, folds: list[Finished]) -> Outcome:
    """All folds together; they are stored in the order of the results' rows."""
    stacked: Any = vstack([part.y_pred for part in folds])
    known = [part.probability for part in folds if part.probability is not None]
    guarantee = folds[0].guarantee
    if any(part.guarantee != guarantee for part in folds):
        guarantee += f" (Of the first of {len(folds)} folds.)"
    return Outcome(
        method=method,
        target=target,
        y_pred=csr_array(stacked),
        probability=np.concatenate(known) if len(known) == len(folds) else None,
        guarantee=guarantee,
        settings=tuple(part.settings for part in folds),
        fit_seconds=tuple(part.fit_seconds for part in folds),
        predict_seconds=tuple(part.predict_seconds for part in folds),
        losses=np.concatenate([part.losses for part in folds]),
    )


@dataclass(frozen=True)
class Summary:
    """How far a study is.

    Attributes
    ----------
    n_units, n_finished : int
        Units in all, and those that are finished.
    failed : dict of Unit to str
        Units that failed when they were last tried, with the messages.
    """

    n_units: int
    n_finished: int
    failed: dict[Unit, str]

    @classmethod
    def of(cls, stored: Stored) -> Summary:
        """Of what a folder holds."""
        units = stored.asked.units
        failed = {unit: stored.failed[unit] for unit in units if unit in stored.failed}
        return cls(len(units), len(stored.finished), failed)

    @property
    def complete(self) -> bool:
        """Whether all units are finished."""
        return self.n_finished == self.n_units

    def __str__(self) -> str:
        lines = [f"{self.n_finished} of {self.n_units} units are finished"]
        if self.failed:
            lines[0] += f", {len(self.failed)} failed and will be tried again at the next run:"
        lines += [f"- {unit}: {message}" for unit, message in self.failed.items()]
        return "\n".join(lines)


def summary(folder: str | os.PathLike[str]) -> Summary:
    """How far the study in a folder is, by what is stored."""
    return Summary.of(read(Path(folder)))


def load(folder: str | os.PathLike[str]) -> Results:
    """The results in a folder, of a study that is finished or not; nothing is run.

    Parameters
    ----------
    folder : str or path
        Where a study was run, also one that is running now.

    Returns
    -------
    Results
        With the methods and targets that have finished all folds.
    """
    stored = read(Path(folder))
    warn_of_damage(stored)
    return Results.of(stored)


def losses_of(target: Target, y_pred: Any, y_true: Any) -> NDArray[np.float64]:
    """The loss of each row of sparse label sets, (n,); rows become dense a range at a time."""
    losses = np.empty(y_true.shape[0])
    for rows in row_ranges(*y_true.shape):
        losses[rows] = target.loss(y_pred[rows], y_true[rows])
    return losses

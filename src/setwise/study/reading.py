"""What a folder holds: the results so far, and how far that is."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from setwise.study.folder import Folder
from setwise.study.results import Outcome, Results
from setwise.study.scale import Scale
from setwise.study.unit import Finished, Unit


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
    """How far the study in a folder is, by what is stored; files are counted, not read."""
    place = Folder(Path(folder))
    asked = place.asked()
    finished = sum(place.has(unit) for unit in asked.units)
    return Summary(len(asked.units), finished, place.failed(asked))


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
    place = Folder(Path(folder))
    asked = place.asked()
    told = asked.told
    found = place.finished(asked, asked.digest)
    n_folds = len(told["n_train"])
    outcomes = []
    for method in told["methods"]:
        for target in told["targets"]:
            units = [Unit(method, target, fold) for fold in range(n_folds)]
            if all(unit in found for unit in units):
                outcomes.append(_outcome(method, target, [found[unit] for unit in units]))
    return Results(
        name=told["name"],
        label_names=tuple(told["label_names"]),
        y_true=asked.y_true,
        fold=asked.fold,
        n_train=tuple(told["n_train"]),
        targets=tuple(told["targets"]),
        methods=tuple(told["methods"]),
        outcomes=tuple(outcomes),
        question=told["question"],
        versions=told["versions"],
        taxonomy=asked.taxonomy,
        scales={name: Scale(**scale) for name, scale in told.get("scales", {}).items()},
    )


def _outcome(method: str, target: str, folds: list[Finished]) -> Outcome:
    """All folds together; they are stored in the order of the results' rows."""
    stacked: Any = vstack([part.y_pred for part in folds])
    probabilities = [part.probability for part in folds]
    known = [part for part in probabilities if part is not None]
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

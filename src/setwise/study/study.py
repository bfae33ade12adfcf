"""A study: methods by targets by folds, on the same rows, kept in a folder as it goes."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from setwise.atomic_write import write_whole
from setwise.study.data import read_folds, read_inputs, read_sets
from setwise.study.folder import Asked, Folder
from setwise.study.identity import array_digest, described, digest
from setwise.study.lock import locked
from setwise.study.machine import library_versions, machine
from setwise.study.methods import get_methods
from setwise.study.plan import Plan
from setwise.study.progress import progress_shown
from setwise.study.reading import load, summary
from setwise.study.results import Results
from setwise.study.scale import Scale
from setwise.study.taxonomy import (
    as_identity,
    known_taxonomy,
    refuse_misplaced,
    refuse_other_labels,
)
from setwise.study.workers import do_tasks
from setwise.targets import Target, get_target
from setwise.validation import whole_number


class Study:
    """Every method, trained for every target, judged on rows it was not trained on.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, n_features)
        Features; NaN where one is missing. The known methods then see the mean of the training
        rows of each fold in its place; estimators of your own see NaN.
    Y : array, sparse matrix or data frame of 0/1, (n, l), or list of label lists
        Label sets.
    methods : list of str, or mapping from name to estimator
        Known methods (`setwise.study.METHODS`), estimators of your own, or both:
        ``{"auto": "auto", "mine": estimator}``. An estimator is cloned for each unit; what is
        random in it is seeded, and every parameter of it called ``target`` is set.
    targets : list of str or Target, or mapping from name to Target
        What the methods are trained for and judged by.
    folds : int, (train, test), list of such pairs, or splitter, default 5
        So many folds in which every label occurs about equally often; or the rows, as numbers or
        masks. A row is held out once at most.
    label_names : list of str, optional
        By default those of a data frame's columns or of the lists, else those of the taxonomy,
        else numbers.
    name : str
        Of the data, for the report.
    taxonomy : Taxonomy, optional
        A hierarchy over the labels, for the report; by default that of the first `TreeDistance`
        among the targets. Where Y has names, they must be its own, in the same order.
    seed : int, default 0
        Of the folds, and of what is random in the methods.
    question : mapping, optional
        What was asked, for the report: JSON, in the order to be shown.

    Attributes
    ----------
    rows : array
        The rows held out, in the order of the results.

    Examples
    --------
    >>> import tempfile
    >>> from setwise.study import Study, leaderboard
    >>> generator = np.random.default_rng(0)
    >>> X = generator.normal(size=(60, 3))
    >>> study = Study(X, X > 0.2, methods=["binary_relevance"], targets=["f1"], folds=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = study.run(folder)
    >>> results.outcomes[0].y_pred.shape
    (60, 3)
    """

    def __init__(
        self,
        X: Any,
        Y: Any,
        *,
        methods: Sequence[str] | Mapping[str, Any],
        targets: Sequence[Any] | Mapping[str, Any],
        folds: Any = 5,
        label_names: Sequence[str] | None = None,
        name: str = "",
        taxonomy: Any = None,
        seed: int = 0,
        question: Mapping[str, Any] | None = None,
    ):
        seed = whole_number(seed, "seed", 0)
        if seed >= 2**32:
            raise ValueError(f"seed must be below 2**32, as scikit-learn's are, but it is {seed}")
        inputs, missing = read_inputs(X)
        sets, names = read_sets(Y, label_names)
        shape: Any = sets.shape
        if inputs.shape[0] != shape[0]:
            raise ValueError(
                f"X and Y must have the same number of rows, but X has {inputs.shape[0]} and Y has "
                f"{shape[0]}"
            )
        chosen, judges = get_methods(methods), get_targets(targets, shape[1])
        hierarchy = known_taxonomy(taxonomy, judges)
        refuse_other_labels(hierarchy, names, shape[1])
        refuse_misplaced(judges.values(), sets, names)
        if names is None:
            names = tuple(map(str, range(shape[1]) if hierarchy is None else hierarchy.names))
        splits, words = read_folds(folds, sets, seed)
        self.rows = np.concatenate([held for _, held in splits])
        identity = {
            **library_versions(),
            "features (X)": array_digest(inputs),
            "label sets (Y)": array_digest(sets),
            "label names": list(names),
            "methods": list(chosen),
            "targets": list(judges),
            "folds": [[array_digest(part) for part in split] for split in splits],
            "seed": seed,
            "hierarchy": as_identity(hierarchy),
            **{f"method {m.name!r}": described(m.make) for m in chosen.values() if m.own},
            **{f"target {name!r}": described(target) for name, target in judges.items()},
        }
        told = {
            "name": str(name),
            "label_names": list(names),
            "methods": list(chosen),
            "targets": list(judges),
            "n_train": [len(train) for train, _ in splits],
            "hierarchy_note": "" if hierarchy is None else hierarchy.note,
            "scales": {
                name: asdict(scale)
                for name, target in judges.items()
                if (scale := Scale.of(target)) is not None
            },
            "question": {
                **_as_json(question or {}),
                "rows": shape[0],
                "features": inputs.shape[1],
                "labels": shape[1],
                "held out": words,
                "missing features": _missing_words(missing),
                "seed": seed,
            },
            "versions": machine(),
        }
        fold = np.concatenate([np.full(len(h), number) for number, (_, h) in enumerate(splits)])
        self._asked = Asked(identity, told, sets[self.rows], fold, hierarchy)
        self._plan = Plan(inputs, missing, sets, chosen, judges, splits, seed, digest(identity))

    def run(self, folder: str | os.PathLike[str], progress: bool = True, jobs: int = 1) -> Results:
        """Do what is not done yet, and return what is known.

        Each finished unit (method, target, fold) is stored in the folder at once, so that a run
        that is killed goes on where it stopped when the same study is run on the same folder again.
        The results are then those of a run without a break: units are seeded, and work in one
        thread, so that nothing depends on when or beside what they run.

        Parameters
        ----------
        folder : str or path
            Made if need be. One of another study is refused, and one that another process works in.
        progress : bool, default True
            Whether to show progress; it is shown on terminals only.
        jobs : int, default 1
            Units in work at once, each in a process of its own if there are several.

        Returns
        -------
        Results
            Without methods and targets of which a fold failed. A failure is named in a warning and
            in the folder's summary.txt, and is tried again at the next run.
        """
        # An estimator may change the working directory.
        jobs, path = whole_number(jobs, "jobs", 1), Path(folder).absolute()
        if path.exists() and not path.is_dir():
            raise ValueError(f"folder must be a folder, but {str(path)!r} is a file")
        path.mkdir(parents=True, exist_ok=True)
        with locked(path):
            place = Folder(path)
            place.prepare(self._asked)
            done = place.finished(self._asked, self._plan.study)
            seconds = {unit: finished.seconds for unit, finished in done.items()}
            tasks = self._plan.tasks(done)
            del done
            try:
                with progress_shown(progress, self._asked.units, seconds, jobs) as shown:
                    do_tasks(self._plan, tasks, path, jobs, shown)
            except KeyboardInterrupt as interrupt:
                interrupt.add_note(
                    f"{summary(path)}\nNothing finished is lost: run the same study on "
                    f"{str(path)!r} again to go on."
                )
                raise
            finally:
                write_whole(path / "summary.txt", f"{summary(path)}\n".encode())
            told = summary(path)
            if told.failed:
                warnings.warn(str(told), stacklevel=2)
            return load(path)


def get_targets(targets: Any, n_labels: int) -> dict[str, Target]:
    """Targets by name from a list of names and targets, or from a mapping."""
    if isinstance(targets, str) or not isinstance(targets, Mapping | Sequence) or not targets:
        raise ValueError(
            f"targets must be a list such as ['f1', 'hamming'] or a mapping from names to targets, "
            f"not {targets!r}"
        )
    if isinstance(targets, Mapping):
        pairs = [(name, get_target(target)) for name, target in targets.items()]
    else:
        found = [get_target(target) for target in targets]
        pairs = [(str(target), target) for target in found]
    names = [name for name, _ in pairs]
    for name, target in pairs:
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise ValueError(f"the name of a target must be printable text, not {name!r}")
        if names.count(name) > 1:
            raise ValueError(
                f"targets must have different names, but two are named {name!r}; a mapping from "
                f"names to targets tells them apart"
            )
        # A target made for other labels says so here.
        target.measure(n_labels, "loss")
    return dict(pairs)


def _as_json(question: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return json.loads(json.dumps(dict(question), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ValueError(f"question must be plain text and numbers (JSON): {error}") from error


def _missing_words(missing: bool) -> str:
    if not missing:
        return "none"
    return "the mean of the training rows (your own estimators see NaN)"

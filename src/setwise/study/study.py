"""A study: methods by targets by folds, on the same rows, kept in a folder as it goes."""

from __future__ import annotations

import json
import os
import platform
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils import check_array, check_consistent_length

from setwise.atomic_write import write_whole
from setwise.estimators.folds import StratifiedLabelSets
from setwise.evaluation.label_sets import checked_taxonomy, checked_zero_division
from setwise.labels import form_of
from setwise.run_folder import locked
from setwise.sparse import tidied
from setwise.spelling import some
from setwise.study.folder import Unit, prepare, store, summary
from setwise.study.identity import identity_of, library_versions, processor
from setwise.study.methods import get_methods
from setwise.study.results import Outcome, Results, Scale
from setwise.study.work import StudyPlan, do_tasks
from setwise.targets import Target, get_target
from setwise.targets.target import hierarchy_of, method_of
from setwise.terminal import printable
from setwise.validation import whole_number

MEAN = "the mean of the training rows (boosted trees and your own estimators see NaN)"


class Study:
    """Every method, trained for every target, judged on rows it was not trained on.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, n_features)
        Features; NaN where one is missing. The known methods then see the mean of the training
        rows of each fold in its place; boosted trees and estimators of your own see NaN.
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
    row_names : sequence, optional
        What the rows are called; by default the index of a data frame, X or Y, else their numbers.
    zero_division : {0.0, 1.0, nan}, default 0.0
        The value of 0/0 in the report's precision, recall, F1 and Jaccard, as in `evaluate`. The
        losses of targets have their own convention, ``empty``.
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
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> study = Study(X, X > 0.2, methods=["binary_relevance"], targets=["f1"], folds=3)
    >>> study.run().outcomes[0].y_pred.shape
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
        row_names: Sequence[Any] | None = None,
        zero_division: float = 0.0,
        seed: int = 0,
        question: Mapping[str, Any] | None = None,
    ):
        if whole_number(seed, "seed", 0) >= 2**32:
            raise ValueError(f"seed must be below 2**32, as scikit-learn's are, but it is {seed}")
        sets, names = _label_sets(Y, label_names)
        n_rows, n_labels = sets.shape
        inputs = _features(X)
        check_consistent_length(inputs, sets)
        chosen, judges = get_methods(methods), _targets(targets, n_labels)
        _refuse_pairs(chosen, judges)
        hierarchy = _hierarchy(taxonomy, judges, sets, names)
        if names is None:
            names = range(n_labels) if hierarchy is None else hierarchy.names
        splits, held_out = _folds(folds, sets, seed)
        row_names = _row_names(row_names, X, Y, n_rows)
        self.rows = np.concatenate([held for _, held in splits])
        missing = bool(np.isnan(inputs.data if issparse(inputs) else inputs).any())
        self._plan = StudyPlan(inputs, missing, sets, chosen, judges, splits, seed)
        scales = {name: Scale.of(target) for name, target in judges.items()}
        self._study = Results(
            name=str(name),
            label_names=tuple(map(str, names)),
            y_true=sets[self.rows],
            fold=np.repeat(np.arange(len(splits)), [len(held) for _, held in splits]),
            n_train=tuple(len(train) for train, _ in splits),
            targets=tuple(judges),
            methods=tuple(chosen),
            outcomes=(),
            question=_asked(question or {}, self._plan, held_out),
            versions={
                "python": platform.python_version(),
                **library_versions(),
                "system": platform.system(),
                "processor": processor(),
                "threads of a unit": "1",
            },
            taxonomy=hierarchy,
            scales={name: scale for name, scale in scales.items() if scale is not None},
            descriptions={name: method.description for name, method in chosen.items()},
            row_names=tuple(row_names[row] for row in self.rows),
            zero_division=checked_zero_division(zero_division),
        )
        self._identity = identity_of(self._plan, self._study)

    def run(
        self, folder: str | os.PathLike[str] | None = None, progress: bool = True, jobs: int = 1
    ) -> Results:
        """Do what is not done yet, and return what is known.

        Each finished unit (method, target, fold) is stored in the folder at once, so that a run
        that is killed goes on where it stopped when the same study is run on the same folder again.
        The results are then those of a run without a break: units are seeded, and work in one
        thread, so that nothing depends on when or beside what they run.

        Parameters
        ----------
        folder : str or path, optional
            Made if need be. One of another study is refused, and one that another process works in.
            Without one nothing is kept but what is returned.
        progress : bool, default True
            Whether to show progress; it is shown on terminals only.
        jobs : int, default 1
            Fits in work at once, each in a process of its own if there are several.

        Returns
        -------
        Results
            Without methods and targets of which a fold failed. A failure is named in a warning and
            in the folder's summary.txt, and is tried again at the next run.
        """
        jobs = whole_number(jobs, "jobs", 1)
        with TemporaryDirectory() if folder is None else nullcontext(folder) as place:
            # An estimator may change the working directory.
            return self._run(Path(place).absolute(), progress, jobs, folder is not None)

    def _run(self, path: Path, progress: bool, jobs: int, stays: bool) -> Results:
        with locked(path):
            found = prepare(path, self._study, self._identity)
            try:
                with _progress_bar(progress) as bar:
                    row = bar.add_task("", total=found.n_units, completed=found.n_finished)

                    def took(unit: Unit, result: Outcome | str) -> None:
                        store(path, unit, result)
                        if isinstance(result, str):
                            told = printable(f"failed: {unit}: {result}")
                            bar.console.print(told, markup=False, highlight=False)
                        bar.update(row, advance=1, description=printable(str(unit)))

                    do_tasks(self._plan, self._plan.tasks(found.finished), jobs, took)
            except KeyboardInterrupt as interrupt:
                if stays:
                    interrupt.add_note(
                        f"{summary(path)}\nNothing finished is lost: run the same study on "
                        f"{str(path)!r} again to go on."
                    )
                raise
            finally:
                found = summary(path)
                write_whole(path / "summary.txt", f"{found}\n".encode())
            if found.failed:
                warnings.warn(str(found), stacklevel=3)
            # (What is only shown may differ from what was stored first.)
            shown = ("descriptions", "row_names", "zero_division")
            return replace(found.results(), **{name: getattr(self._study, name) for name in shown})


def _progress_bar(wanted: bool) -> Any:
    """A bar on the error stream if it is a terminal and a bar is wanted, else silence."""
    from rich import console, progress

    screen = console.Console(stderr=True)
    screen.quiet = not (wanted and screen.is_terminal)
    return progress.Progress(
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left:"),
        progress.TimeRemainingColumn(),
        progress.TextColumn("{task.description}", markup=False),
        console=screen,
        disable=screen.quiet,
    )


# ------------------------------------------------------------------------------- what is given


def _features(X: Any) -> Any:
    """A copy of the features, float32 or float64, dense or CSR; NaN where one is missing."""
    taken: Any = {"dtype": [np.float64, np.float32], "ensure_all_finite": "allow-nan"}
    taken |= {"accept_sparse": "csr", "copy": True}
    return check_array(tidied(X, "X") if issparse(X) else X, input_name="X", **taken)


def _label_sets(Y: Any, label_names: Any) -> tuple[Any, list[str] | None]:
    """Label sets as a CSR array of 0/1, and a name for each label, None where there are none."""
    form = form_of(Y, column_of_classes=False)
    if form.one_dimensional:
        raise ValueError("Y must have a label set for each row, but it has one class for each row")
    names, n_labels = form.columns if label_names is None else label_names, form.own.shape[1]
    if names is None:
        return csr_array(form.own), None
    names = list(map(str, names))
    if not len(names) == len(set(names)) == n_labels:
        raise ValueError(f"label_names must be {n_labels} different names, not {some(names)}")
    return csr_array(form.own), names


def _asked(question: Mapping[str, Any], plan: StudyPlan, held_out: str) -> dict[str, Any]:
    """What was asked, for the report, with the sizes of the data; must be JSON."""
    shape: Any = plan.sets.shape
    asked = {
        **question,
        "rows": plan.inputs.shape[0],
        "features": plan.inputs.shape[1],
        "labels": shape[1],
        "held out": held_out,
        "missing features": MEAN if plan.missing else "none",
        "seed": plan.seed,
    }
    try:
        json.dumps(asked, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"question must be plain text and numbers (JSON): {error}") from error
    return asked


def _row_names(given: Any, X: Any, Y: Any, n_rows: int) -> list[str]:
    """A name for each row: as given, the index of a data frame, or its number."""
    frames = (of for of in (X, Y) if hasattr(of, "index") and hasattr(of, "columns"))
    named = next((list(frame.index) for frame in frames), range(n_rows))
    names = list(map(str, named if given is None else given))
    if len(names) != n_rows:
        raise ValueError(f"row_names must be {n_rows} names, one a row, not {some(names)}")
    return names


def _refuse_pairs(methods: Mapping[str, Any], targets: Mapping[str, Any]) -> None:
    """Raise for a method that cannot be trained for a target, before anything is."""
    for (name, method), (judge, target) in product(methods.items(), targets.items()):
        if not method.serves(target):
            raise ValueError(
                f"{name} is trained on losses of rows, but {judge} judges all rows together: leave "
                f"one of them out, or take binary_relevance, thresholds, metro or catalog"
            )


def _targets(targets: Any, n_labels: int) -> dict[str, Target]:
    """Targets by name from a list of names and targets, or from a mapping."""
    if not isinstance(targets, Mapping | list | tuple) or not targets:
        raise ValueError(
            f"targets must be a list such as ['f1', 'hamming'] or a mapping from names to targets, "
            f"not {targets!r}"
        )
    if isinstance(targets, Mapping):
        named = {str(name): get_target(target) for name, target in targets.items()}
    else:
        named = {str(target): target for target in map(get_target, targets)}
    if len(named) < len(targets):
        raise ValueError(
            f"targets must have different names, but of {len(targets)} there are only "
            f"{', '.join(named)}; a mapping from names to targets tells them apart"
        )
    for target in named.values():
        # A target made for other labels says so here.
        method_of(target, "refuse_labels")(n_labels)
    return named


def _hierarchy(given: Any, targets: Mapping[str, Target], sets: Any, names: Any) -> Any:
    """The hierarchy given, or of the first target that has one; of all, that Y fits them."""
    own = [tree for target in targets.values() if (tree := hierarchy_of(target)) is not None]
    every = own if given is None else [given, *own]
    for taxonomy in every:
        checked_taxonomy(taxonomy, sets.shape[1], names)
    for taxonomy in own:
        taxonomy.refuse_open(sets)
    return next(iter(every), None)


def _folds(folds: Any, sets: Any, seed: int) -> tuple[list[Any], str]:
    """The rows to train on and to hold out in each fold, checked, and the folds in words."""
    rows, given, words = np.arange(sets.shape[0]), folds, "split into training and test rows"
    if isinstance(folds, int | np.integer):
        splitter = StratifiedLabelSets(whole_number(folds, "folds", 2), random_state=seed)
        given, words = list(splitter.split(None, sets)), "folds, every label spread evenly"
    elif hasattr(folds, "get_n_splits"):
        given, words = list(folds.split(np.empty((len(rows), 0)), sets.toarray())), str(folds)
    elif isinstance(folds, list | tuple) and len(folds) == 2 and np.ndim(folds[0][:1]) == 1:
        given = [folds]
    try:
        if isinstance(given, str) or not len(given):
            raise ValueError(f"it is {folds!r}")
        # By numbers or masks; those that do not fit are errors.
        splits = [
            tuple(rows[np.asarray(part)] if len(part) else rows[:0] for part in fold)
            for fold in given
        ]
        _refuse_repeats(splits, len(rows))
    except (IndexError, TypeError, ValueError) as error:
        raise ValueError(
            f"folds must be a number of folds, a splitter, a pair (train, test) of row numbers or "
            f"masks, each row in one of both at most, or a list of such pairs in which no row is "
            f"held out twice: {error}"
        ) from error
    return splits, f"{len(splits)} {words}"


def _refuse_repeats(splits: list[Any], n_rows: int) -> None:
    """Raise for a part without rows, and for a row that is in a fold, or is held out, twice."""
    held = np.full(n_rows, -1)
    for fold, (train, test) in enumerate(splits):
        for part, purpose in ((train, "train on"), (test, "hold out")):
            if len(part) == 0:
                raise ValueError(f"fold {fold} has no row to {purpose}")
        times = np.bincount(np.concatenate([train, test]), minlength=n_rows)
        if times.max() > 1:
            raise ValueError(f"row {np.argmax(times)} is in fold {fold} twice")
        before = held[test]
        if before.max() >= 0:
            row = test[np.argmax(before)]
            raise ValueError(f"row {row} is held out in fold {before.max()} and in fold {fold}")
        held[test] = fold

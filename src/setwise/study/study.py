"""A study: methods by targets by folds, on the same rows, kept in a folder as it goes."""

from __future__ import annotations

import json
import os
import platform
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from setwise.atomic_write import write_whole
from setwise.study.data import (
    array_digest,
    described,
    read_folds,
    read_inputs,
    read_sets,
    read_targets,
    read_taxonomy,
)
from setwise.study.folder import Asked, locked, prepare, read
from setwise.study.methods import get_methods
from setwise.study.results import Results, Scale, Summary, summary
from setwise.study.work import Plan, do_tasks, progress_shown
from setwise.validation import whole_number

LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")
MEAN = "the mean of the training rows (your own estimators see NaN)"


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
        if whole_number(seed, "seed", 0) >= 2**32:
            raise ValueError(f"seed must be below 2**32, as scikit-learn's are, but it is {seed}")
        sets, names = read_sets(Y, label_names)
        shape: Any = sets.shape
        n_rows, n_labels = shape
        inputs, missing = read_inputs(X, n_rows)
        chosen, judges = get_methods(methods), read_targets(targets, n_labels)
        hierarchy = read_taxonomy(taxonomy, judges, sets, names)
        if names is None:
            names = tuple(map(str, range(n_labels) if hierarchy is None else hierarchy.names))
        splits, held_out = read_folds(folds, sets, seed)
        self.rows = np.concatenate([held for _, held in splits])
        self._plan = Plan(inputs, missing, sets, chosen, judges, splits, seed)
        told = {
            "name": str(name),
            "label_names": names,
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
                **(question or {}),
                "rows": n_rows,
                "features": inputs.shape[1],
                "labels": n_labels,
                "held out": held_out,
                "missing features": MEAN if missing else "none",
                "seed": seed,
            },
            "versions": machine(),
        }
        fold = np.repeat(np.arange(len(splits)), [len(held) for _, held in splits])
        identity = _identity(self._plan, names, hierarchy)
        self._asked = Asked(_as_json(identity), _as_json(told), sets[self.rows], fold, hierarchy)

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
            done = set(prepare(path, self._asked).finished)
            try:
                with progress_shown(progress, len(self._asked.units), len(done)) as shown:
                    do_tasks(self._plan, self._plan.tasks(done), path, jobs, shown)
            except KeyboardInterrupt as interrupt:
                interrupt.add_note(
                    f"{summary(path)}\nNothing finished is lost: run the same study on "
                    f"{str(path)!r} again to go on."
                )
                raise
            finally:
                stored = read(path)
                told = Summary.of(stored)
                write_whole(path / "summary.txt", f"{told}\n".encode())
            if told.failed:
                warnings.warn(str(told), stacklevel=2)
            return Results.of(stored)


def _identity(plan: Plan, names: Sequence[str], hierarchy: Any) -> dict[str, Any]:
    """All that the figures of a study depend on."""
    return {
        **library_versions(),
        "features (X)": array_digest(plan.inputs),
        "label sets (Y)": array_digest(plan.sets),
        "label names": names,
        "methods": list(plan.methods),
        "targets": list(plan.targets),
        "folds": [[array_digest(part) for part in split] for split in plan.splits],
        "seed": plan.seed,
        "hierarchy": described(hierarchy),
        **{f"method {m.name!r}": described(m.make) for m in plan.methods.values() if m.own},
        **{f"target {name!r}": described(target) for name, target in plan.targets.items()},
    }


def _as_json(told: Mapping[str, Any]) -> dict[str, Any]:
    """As it will be read from a file; what is not JSON can only be part of the question."""
    try:
        return json.loads(json.dumps(told, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ValueError(f"question must be plain text and numbers (JSON): {error}") from error


def library_versions() -> dict[str, str]:
    """The versions of setwise and of the libraries that compute."""
    from setwise import __version__

    return {"setwise": __version__, **{name: version(name) for name in LIBRARIES}}


def processor() -> str:
    """The processor's own name where the system tells it."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text().splitlines() if told.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def machine() -> dict[str, str]:
    """What figures depend on, versions and processor, as a report shows them."""
    return {
        "python": platform.python_version(),
        **library_versions(),
        "system": platform.system(),
        "processor": processor(),
        "threads of a unit": "1",
    }

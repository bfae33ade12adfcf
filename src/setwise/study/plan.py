"""The work of a study, unit by unit: fit, predict, judge, store."""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.impute import SimpleImputer
from threadpoolctl import threadpool_limits

from setwise.estimators.label_model import label_probability
from setwise.evaluation.sample import label_sets
from setwise.study.data import Split
from setwise.study.folder import Folder
from setwise.study.methods import Method, Question
from setwise.study.progress import Progress
from setwise.study.results import losses_of
from setwise.study.unit import Finished, Unit
from setwise.targets import Target
from setwise.threads import threads_limited

# Of so many entries (rows held out times labels) or fewer, probabilities are kept.
MOST_PROBABILITIES = 10_000_000
# So many different warnings of a unit, and so many characters of a message, are kept.
MOST_WARNINGS, MOST_CHARACTERS = 10, 2000
SETTINGS = ("alpha", "scaling", "surrogate", "space_", "decoder_", "over_", "n_iter_")


class Task(NamedTuple):
    """The targets for which a method is still to be judged on a fold; they may share a fit."""

    method: str
    fold: int
    targets: tuple[str, ...]

    @property
    def units(self) -> list[Unit]:
        """One for each target."""
        return [Unit(self.method, target, self.fold) for target in self.targets]


class Fitted(NamedTuple):
    """A model, how long it took, and what was warned of."""

    model: Any
    seconds: float
    warnings: list[str]


@dataclass(frozen=True)
class Plan:
    """All that the work needs; what is checked is trusted."""

    inputs: Any
    missing: bool
    sets: csr_array
    methods: Mapping[str, Method]
    targets: Mapping[str, Target]
    splits: Sequence[Split]
    seed: int
    study: str

    def tasks(self, done: Any) -> list[Task]:
        """What is left to do."""
        tasks = []
        for method in self.methods:
            for fold in range(len(self.splits)):
                left = tuple(t for t in self.targets if Unit(method, t, fold) not in done)
                if left:
                    tasks.append(Task(method, fold, left))
        return tasks

    def work(self, task: Task, path: Path, progress: Progress) -> dict[Unit, Any]:
        """Do a task, each unit stored when it is finished: its seconds, or the error's message."""
        folder, told, fitted = Folder(path), {}, None
        for unit in task.units:
            progress.began(unit)
            try:
                with one_thread():
                    finished, fitted = self._run(unit, fitted)
            except Exception as error:
                # A method may fail in any way it likes: the others go on.
                fitted = None
                told[unit] = said(error)
                folder.store_failure(unit, told[unit])
            else:
                folder.store(unit, finished, self.study)
                told[unit] = finished.seconds
            progress.ended(unit, told[unit])
        return told

    def _run(self, unit: Unit, fitted: Fitted | None) -> tuple[Finished, Fitted]:
        """What a unit finds; ``fitted`` is the model of another target of the same task."""
        method, target = self.methods[unit.method], self.targets[unit.target]
        began = time.perf_counter()
        X, Y, X_held, Y_held = self._rows(unit.fold, method)
        if fitted is not None and method.retarget is not None:
            fitted = fitted._replace(model=method.retarget(fitted.model, target))
        else:
            question = Question(target, self.seed, X.shape[0], issparse(X))
            fitted = _fitted(method.make(question), X, _as_given(Y, method))
        start = time.perf_counter()
        with recorded_warnings() as caught:
            y_pred = _predicted(fitted.model, X_held, Y_held.shape)
            predict_seconds = time.perf_counter() - start
            losses = losses_of(target, y_pred, Y_held)
            probability = self._probability(method, fitted.model, X_held)
        settings = settings_of(fitted.model)
        if fitted.warnings or caught:
            settings["warnings"] = [*fitted.warnings, *caught]
        guarantee = getattr(fitted.model, "guarantee_", None)
        finished = Finished(
            y_pred=y_pred,
            probability=probability,
            losses=losses,
            guarantee=guarantee if isinstance(guarantee, str) else method.guarantee(target),
            settings=settings,
            fit_seconds=fitted.seconds,
            predict_seconds=predict_seconds,
            seconds=time.perf_counter() - began,
        )
        return finished, fitted

    def _rows(self, fold: int, method: Method) -> tuple[Any, Any, Any, Any]:
        """Features and label sets to learn from, and those held out.

        Where features are missing, the known methods see the mean over the training rows.
        """
        train, held = self.splits[fold]
        X, X_held = self.inputs[train], self.inputs[held]
        if self.missing and not method.own:
            imputer = SimpleImputer(keep_empty_features=True).fit(X)
            X, X_held = imputer.transform(X), imputer.transform(X_held)
        sets: Any = self.sets
        return X, sets[train], X_held, sets[held]

    def _probability(self, method: Method, model: Any, X: Any) -> Any:
        """The probability of each label, or None."""
        n_labels: Any = self.sets.shape
        n_held = sum(len(held) for _, held in self.splits)
        kept = n_held * n_labels[1] <= MOST_PROBABILITIES
        if not (kept and method.has_probability and hasattr(model, "predict_proba")):
            return None
        try:
            return label_probability(model, X, n_labels[1]).astype(np.float32)
        except ValueError as error:
            warnings.warn(f"no probabilities are kept: {error}", stacklevel=2)
            return None


def _fitted(estimator: Any, X: Any, Y: Any) -> Fitted:
    start = time.perf_counter()
    with recorded_warnings() as caught:
        model = estimator.fit(X, Y)
    return Fitted(model, time.perf_counter() - start, caught)


def _as_given(sets: Any, method: Method) -> Any:
    """Label sets as estimators take them: setwise's sparse, a user's dense."""
    return sets.toarray().astype(np.int64) if method.own else sets


def _predicted(model: Any, X: Any, shape: tuple[int, int]) -> csr_array:
    """Predicted label sets as CSR, or a ValueError that says what they are instead."""
    found = model.predict(X)
    if shape[1] == 1 and not issparse(found) and np.ndim(found) == 1:
        found = np.asarray(found)[:, None]
    sets = label_sets(found, "the predictions")
    if sets.shape != shape:
        raise ValueError(
            f"the predictions must have the shape {shape}, a column for each label, but theirs is "
            f"{sets.shape}"
        )
    return csr_array(sets.astype(np.uint8))


def settings_of(model: Any) -> dict[str, Any]:
    """What was chosen, as JSON: by a search its choice, else what the model tells."""
    if hasattr(model, "best_params_"):
        return {name: _plain(value) for name, value in model.best_params_.items()}
    told = {name: getattr(model, name) for name in SETTINGS if hasattr(model, name)}
    return {name.removesuffix("_"): _plain(value) for name, value in told.items()}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real) and isfinite(value):
        return float(value)
    return str(value)[:MOST_CHARACTERS]


def said(error: BaseException) -> str:
    """The message of an error on one printable line, and where it came from."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    place = "".join(f" ({Path(frame.filename).name}, line {frame.lineno})" for frame in last)
    try:
        words = " ".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
    except Exception:
        # An error whose own message fails.
        words = type(error).__name__
    line = " ".join("".join(c if c.isprintable() else " " for c in words).split())
    return line[:MOST_CHARACTERS] + place


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute in one thread.

    Sums are then taken in one order, so that figures do not depend on how many units run at once.
    """
    with threadpool_limits(1), threads_limited(1):
        yield


@contextmanager
def recorded_warnings() -> Iterator[list[str]]:
    """Warnings as a list of different messages, complete when the block ends."""
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield messages
    told = [f"{w.category.__name__}: {w.message}"[:MOST_CHARACTERS] for w in caught]
    messages += list(dict.fromkeys(told))[:MOST_WARNINGS]

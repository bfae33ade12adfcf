"""The work of a study, unit by unit: fit, predict, judge, store; in this process or in several."""

from __future__ import annotations

import os
import signal
import time
import traceback
import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from numbers import Integral, Real
from pathlib import Path
from pickle import PicklingError
from threading import Thread
from typing import Any, NamedTuple

import numpy as np
from joblib.externals.loky import ProcessPoolExecutor, wait
from joblib.externals.loky.process_executor import TerminatedWorkerError
from scipy.sparse import csr_array, issparse
from sklearn.impute import SimpleImputer
from threadpoolctl import threadpool_limits

from setwise.estimators.label_model import label_probability
from setwise.evaluation.sample import label_sets
from setwise.study.data import Split
from setwise.study.folder import Finished, Unit, read, store
from setwise.study.methods import Method, Question
from setwise.study.results import losses_of
from setwise.targets import Target
from setwise.threads import threads_limited

# Of so many entries (rows held out times labels) or fewer, probabilities are kept.
MOST_PROBABILITIES = 10_000_000
# So many different warnings of a unit, and so many characters of a message, are kept.
MOST_WARNINGS, MOST_CHARACTERS = 10, 2000
SETTINGS = ("alpha", "scaling", "surrogate", "space_", "decoder_", "over_", "n_iter_")
# Said of estimators, scikit-learn's among them, that do not say what is proved of them.
NO_GUARANTEE = "None claimed: {model} does not say what is proved of it for {target}."
KILLED = (
    "the process that worked on it was ended from outside; most often the system does that when "
    "memory runs out"
)


class Task(NamedTuple):
    """The targets for which a method is still to be judged on a fold; they may share a fit."""

    method: str
    fold: int
    targets: tuple[str, ...]

    @property
    def units(self) -> list[Unit]:
        """One for each target."""
        return [Unit(self.method, target, self.fold) for target in self.targets]

    def __str__(self) -> str:
        return f"{self.method} for {', '.join(self.targets)}, fold {self.fold}"


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

    def tasks(self, done: Any) -> list[Task]:
        """What is left to do."""
        tasks = []
        for method in self.methods:
            for fold in range(len(self.splits)):
                left = tuple(t for t in self.targets if Unit(method, t, fold) not in done)
                if left:
                    tasks.append(Task(method, fold, left))
        return tasks

    def work(self, task: Task, folder: Path) -> Iterator[tuple[Unit, str | None]]:
        """Do a task, each unit stored when it ends: the unit, and its message if it failed."""
        fitted = None
        for unit in task.units:
            found: Finished | str
            try:
                with one_thread():
                    found, fitted = self._found(unit, fitted)
            except Exception as error:
                # A method may fail in any way it likes: the others go on.
                found, fitted = message_of(error), None
            store(folder, unit, found)
            yield unit, found if isinstance(found, str) else None

    def _found(self, unit: Unit, fitted: Fitted | None) -> tuple[Finished, Fitted]:
        """What a unit finds; ``fitted`` is the model of another target of the same task."""
        method, target = self.methods[unit.method], self.targets[unit.target]
        began = time.perf_counter()
        X, Y, X_held, Y_held = self._rows(unit.fold, method)
        if fitted is not None and method.retarget is not None:
            fitted = fitted._replace(model=method.retarget(fitted.model, target))
        else:
            question = Question(target, self.seed, X.shape[0], issparse(X))
            # setwise's own take sparse label sets, a user's may not.
            Y = Y.toarray().astype(np.int64) if method.own else Y
            estimator, start = method.make(question), time.perf_counter()
            with recorded_warnings() as caught:
                model = estimator.fit(X, Y)
            fitted = Fitted(model, time.perf_counter() - start, caught)
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
        if not isinstance(guarantee, str):
            guarantee = NO_GUARANTEE.format(model=unit.method, target=unit.target)
        finished = Finished(
            y_pred=y_pred,
            probability=probability,
            losses=losses,
            guarantee=guarantee,
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


def message_of(error: BaseException) -> str:
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


# ------------------------------------------------------------------------------ one task or several


@dataclass
class Progress:
    """Shows a bar with the task in work; without one, nothing."""

    bar: Any = None
    row: Any = None

    def began(self, task: Task) -> None:
        """Name it."""
        if self.bar is not None:
            self.bar.update(self.row, task=str(task))

    def ended(self, unit: Unit, failure: str | None) -> None:
        """Count it; a failure is printed above the bar."""
        if self.bar is None:
            return
        if failure is not None:
            self.bar.console.print(f"failed: {unit}: {failure}", markup=False, highlight=False)
        self.bar.advance(self.row)


@contextmanager
def progress_shown(wanted: bool, n_units: int, n_done: int) -> Iterator[Progress]:
    """A bar on the error stream if it is a terminal and a bar is wanted, else silence."""
    from rich import console, progress

    screen = console.Console(stderr=True)
    if not (wanted and screen.is_terminal):
        yield Progress()
        return
    columns = (
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left:"),
        progress.TimeRemainingColumn(),
        progress.TextColumn("{task.fields[task]}", markup=False),
    )
    with progress.Progress(*columns, console=screen) as bar:
        yield Progress(bar, bar.add_task("", total=n_units, completed=n_done, task=""))


def do_tasks(plan: Plan, tasks: list[Task], folder: Path, jobs: int, progress: Progress) -> None:
    """Do all tasks, so many at once; what they find is in the folder."""
    if jobs > 1:
        _in_processes(plan, tasks, folder, jobs, progress)
        return
    for task in tasks:
        progress.began(task)
        for unit, failure in plan.work(task, folder):
            progress.ended(unit, failure)


def _in_processes(
    plan: Plan, tasks: Iterable[Task], folder: Path, jobs: int, progress: Progress
) -> None:
    """Do tasks in processes of joblib's loky.

    When one of them is ended from outside, all end; each task that was in work is then tried alone,
    which tells the one that it was.
    """
    waiting = deque(tasks)
    while waiting:
        in_work = _until_broken(plan, waiting, folder, jobs, progress)
        if len(in_work) == 1:
            waiting.extendleft(_after_the_end(in_work[0], folder, progress))
        else:
            for task in in_work:
                _in_processes(plan, [task], folder, 1, progress)


def _until_broken(
    plan: Plan, waiting: deque[Task], folder: Path, jobs: int, progress: Progress
) -> list[Task]:
    """Take tasks and do them, until all are done or a process ends; those then in work."""
    pool = ProcessPoolExecutor(
        min(jobs, len(waiting)), initializer=_serve, initargs=(plan, folder, os.getpid())
    )
    running: dict[Any, Task] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                task = waiting.popleft()
                progress.began(task)
                running[_submitted(pool, task)] = task
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                for unit, failure in future.result():
                    progress.ended(unit, failure)
                del running[future]
    except TerminatedWorkerError:
        return list(running.values())
    finally:
        pool.shutdown(kill_workers=True)
    return []


def _submitted(pool: ProcessPoolExecutor, task: Task) -> Any:
    try:
        return pool.submit(_worked, task)
    except (TypeError, AttributeError, PicklingError) as error:
        raise ValueError(
            f"the study cannot be handed to other processes ({error}); use jobs=1"
        ) from error


def _after_the_end(task: Task, folder: Path, progress: Progress) -> list[Task]:
    """The unit that a process ended with has failed; the task with the targets after it."""
    known = read(folder).finished
    failed, *rest = [unit for unit in task.units if unit not in known]
    store(folder, failed, KILLED)
    progress.ended(failed, KILLED)
    return [task._replace(targets=tuple(unit.target for unit in rest))] if rest else []


# In a worker: what its tasks are of.
_served: list[tuple[Plan, Path]] = []


def _serve(plan: Plan, folder: Path, parent: int) -> None:
    """Begin a worker, which leaves interrupts to its parent and ends when that ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with, args=(parent,), daemon=True).start()
    _served.append((plan, folder))


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _worked(task: Task) -> list[tuple[Unit, str | None]]:
    plan, folder = _served[0]
    return list(plan.work(task, folder))

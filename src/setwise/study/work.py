"""The work of a study, unit by unit: fit, predict, judge; in this process or in several."""

from __future__ import annotations

import json
import signal
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, product
from pathlib import Path
from pickle import PicklingError
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from joblib.externals.loky import ProcessPoolExecutor, wait
from joblib.externals.loky.process_executor import TerminatedWorkerError
from joblib.parallel import get_active_backend
from scipy.sparse import csr_array, issparse
from sklearn.impute import SimpleImputer
from threadpoolctl import threadpool_limits

from setwise.estimators.label_model import label_probability
from setwise.evaluation.label_sets import row_losses
from setwise.evaluation.sample import Sample, label_sets
from setwise.study.folder import Unit
from setwise.study.members import members_of
from setwise.study.methods import Method, Question
from setwise.study.results import Outcome
from setwise.targets import Target, get_target
from setwise.targets.target import judges_all_rows
from setwise.threads import threads_limited

# Of so many entries (rows held out times labels) or fewer, probabilities are kept.
MOST_PROBABILITIES = 10_000_000
# So many different warnings of a unit, and so many characters of a message, are kept.
MOST_WARNINGS, MOST_CHARACTERS = 10, 2000
SETTINGS = ("alpha", "scaling", "surrogate", "space_", "decoder_", "over_", "n_iter_")
# Surrogates whose scores are log-probabilities.
LIKELIHOODS = ("auto", "likelihood", "binary_relevance")
# Said of estimators, scikit-learn's among them, that do not say what is proved of them.
NO_GUARANTEE = "None claimed: {0.method} does not say what is proved of it for {0.target}."
KILLED = (
    "the process that worked on it was ended from outside; most often the system does that when "
    "memory runs out"
)
# Seconds without work after which a process ends, also one whose parent was killed.
IDLE = 60

# Units that may share a fit: of one method and fold.
Task = list[Unit]
Found = tuple[Unit, Outcome | str]


class FittedUnit(NamedTuple):
    """A model, the rows it is to be judged on, how long it took, and what was warned of."""

    model: Any
    X: Any
    Y: Any
    seconds: float
    warnings: list[str]


@dataclass(frozen=True)
class StudyPlan:
    """All that the work needs; what is checked is trusted."""

    inputs: Any
    missing: bool
    sets: csr_array
    methods: Mapping[str, Method]
    targets: Mapping[str, Target]
    splits: Sequence[tuple[Any, Any]]
    seed: int

    def tasks(self, done: Mapping[Unit, Any]) -> list[Task]:
        """What is left to do."""
        tasks: list[Task] = []
        for method, fold in product(self.methods.values(), range(len(self.splits))):
            units = [Unit(method.name, target, fold) for target in self.targets]
            left = [unit for unit in units if unit not in done]
            if left and method.retarget is not None:
                tasks.append(left)
            else:
                tasks += [[unit] for unit in left]
        return tasks

    def work(self, task: Task) -> Iterator[Found]:
        """What each unit found, or why it failed.

        It computes in one thread: sums are then taken in one order, so that figures do not depend
        on how many units run at once.
        """
        fitted = None
        for unit in task:
            try:
                with threadpool_limits(1), threads_limited(1):
                    fitted = self._fitted(unit, fitted)
                    found = self._judged(unit, fitted)
            except Exception as error:
                # A method may fail in any way it likes: the others go on.
                fitted, found = None, message_of(error)
            yield unit, found

    def _fitted(self, unit: Unit, fitted: FittedUnit | None) -> FittedUnit:
        """A model for the target, by a fit or from that of another target."""
        method, target = self.methods[unit.method], self.targets[unit.target]
        # What decides for all rows together is fitted to rows held out, which is part of the fit.
        is_shared = method.retarget is not None and not judges_all_rows(target)
        if fitted is not None and is_shared:
            return fitted._replace(model=method.retarget(fitted.model, target))  # type: ignore
        sets: Any = self.sets
        train, held = self.splits[unit.fold]
        X, X_held, Y = self.inputs[train], self.inputs[held], sets[train]
        if self.missing and not method.sees_missing:
            imputer: Any = SimpleImputer(keep_empty_features=True).fit(X)
            X, X_held = imputer.transform(X), imputer.transform(X_held)
        if method.own:
            # setwise's own take sparse label sets, a user's may not.
            Y = Y.toarray().astype(np.int64)
        estimator = method.make(Question(target, self.seed, X.shape[0], issparse(X)))
        start = time.perf_counter()
        with recorded_warnings() as told:
            model = estimator.fit(X, Y)
        return FittedUnit(model, X_held, sets[held], time.perf_counter() - start, told)

    def _judged(self, unit: Unit, fitted: FittedUnit) -> Outcome:
        """What a model predicts for the rows held out, and its losses."""
        model, true, start = fitted.model, fitted.Y, time.perf_counter()
        with recorded_warnings() as told:
            found = model.predict(fitted.X)
            if true.shape[1] == 1 and np.ndim(found) == 1:
                found = np.asarray(found)[:, None]
            sets = label_sets(found, "the predictions")
            if sets.shape != true.shape:
                raise ValueError(f"the predictions must have shape {true.shape}, not {sets.shape}")
            seconds = time.perf_counter() - start
            losses = row_losses(Sample(sets, true), self.targets[unit.target])
            probability = self._probability(model, fitted.X)
            members = members_of(model, fitted.X, true) if hasattr(model, "members_") else ()
        settings = getattr(model, "best_params_", None)
        if settings is None:
            known = [name for name in SETTINGS if hasattr(model, name)]
            settings = {name.removesuffix("_"): getattr(model, name) for name in known}
        if fitted.warnings or told:
            settings = {**settings, "warnings": [*fitted.warnings, *told]}
        # (What is decided for another target, as by a cut at 1/2, is guaranteed for that one.)
        judge = self.targets[unit.target]
        is_own = str(get_target(getattr(model, "target", judge))) == str(judge)
        guarantee = getattr(model, "guarantee_", None) if is_own else None
        return Outcome(
            method=unit.method,
            target=unit.target,
            y_pred=csr_array(sets.astype(np.uint8)),
            probability=probability,
            guarantee=guarantee if isinstance(guarantee, str) else NO_GUARANTEE.format(unit),
            settings=(json.loads(json.dumps(settings, default=_plain)),),
            fit_seconds=(fitted.seconds,),
            predict_seconds=(seconds,),
            losses=losses,
            members=members,
        )

    def _probability(self, model: Any, X: Any) -> Any:
        """The probability of each label, or None."""
        shape: Any = self.sets.shape
        few = sum(len(held) for _, held in self.splits) * shape[1] <= MOST_PROBABILITIES
        if not (few and has_probability(model)):
            return None
        try:
            return label_probability(model, X, shape[1]).astype(np.float32)
        except ValueError as error:
            warnings.warn(f"no probabilities are kept: {error}", stacklevel=2)
            return None


def has_probability(model: Any) -> bool:
    """Whether the model has probabilities: scores of other losses are no log-probabilities."""
    last = model[-1] if hasattr(model, "steps") else model
    classifier = getattr(last, "best_estimator_", last)
    is_likelihood = getattr(classifier, "surrogate", "auto") in LIKELIHOODS
    return is_likelihood and hasattr(model, "predict_proba")


def _plain(value: Any) -> Any:
    """What JSON does not know, as a number or text."""
    return value.item() if isinstance(value, np.generic) else str(value)[:MOST_CHARACTERS]


def message_of(error: BaseException) -> str:
    """The message of an error on one printable line, and where it came from."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    place = "".join(f" ({Path(frame.filename).name}, line {frame.lineno})" for frame in last)
    words = "".join(traceback.format_exception_only(error))
    line = " ".join("".join(c if c.isprintable() else " " for c in words).split())
    return line[:MOST_CHARACTERS] + place


@contextmanager
def recorded_warnings() -> Iterator[list[str]]:
    """Warnings as a list of different messages, complete when the block ends."""
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield messages
    told = [f"{w.category.__name__}: {w.message}"[:MOST_CHARACTERS] for w in caught]
    messages += list(dict.fromkeys(told))[:MOST_WARNINGS]


def do_tasks(
    plan: StudyPlan, tasks: Iterable[Task], jobs: int, took: Callable[[Unit, Outcome | str], None]
) -> None:
    """Do tasks, so many at once; ``took`` is told what each unit found.

    Several are done in processes of joblib's loky. When one of these is ended from outside, all
    end; each task that was in work is then tried alone, which tells the one that it was. Where
    joblib was told to work elsewhere (``parallel_config("dask")``), all of them are done there.
    """
    if not type(get_active_backend()[0]).__module__.startswith("joblib._parallel_backends"):
        calls = (delayed(_done)(plan, task) for task in tasks)
        parts: Any = Parallel(n_jobs=-1, return_as="generator_unordered")(calls)
        for unit, found in chain.from_iterable(parts):
            took(unit, found)
        return
    waiting = deque(tasks)
    if jobs == 1:
        for unit, found in chain.from_iterable(map(plan.work, waiting)):
            took(unit, found)
        return
    while waiting:
        in_work = _until_broken(plan, waiting, jobs, took)
        for task in in_work:
            alone = deque([task])
            if len(in_work) == 1 or _until_broken(plan, alone, 1, took):
                for unit in task:
                    took(unit, KILLED)


def _until_broken(plan: StudyPlan, waiting: deque[Task], jobs: int, took: Any) -> list[Task]:
    """Do tasks until none is left or a process ends; those then in work."""
    running: dict[Any, Task] = {}
    size = min(jobs, len(waiting))
    pool = ProcessPoolExecutor(size, timeout=IDLE, initializer=_serve, initargs=(plan,))
    try:
        while waiting or running:
            while waiting and len(running) < size:
                running[pool.submit(_worked, waiting[0])] = waiting[0]
                waiting.popleft()
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                for unit, found in future.result():
                    took(unit, found)
                del running[future]
    except TerminatedWorkerError:
        return list(running.values())
    except (TypeError, AttributeError, PicklingError) as error:
        raise ValueError(
            f"the study cannot be handed to other processes ({error}); use jobs=1"
        ) from error
    finally:
        pool.shutdown(kill_workers=True)
    return []


# In a worker: what its tasks are of.
_served: list[StudyPlan] = []


def _serve(plan: StudyPlan) -> None:
    """Begin a worker, which leaves interrupts to its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _served.append(plan)


def _worked(task: Task) -> list[Found]:
    return _done(_served[0], task)


def _done(plan: StudyPlan, task: Task) -> list[Found]:
    return list(plan.work(task))

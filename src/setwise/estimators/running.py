"""How a fit runs: its threads, its time, what it says meanwhile, what a failure leaves."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from setwise.threads import threads_limited
from setwise.validation import positive_number

Progress = Callable[..., None]

# What an interrupt does to a fit.
INTERRUPTS = ("raise", "finish")
# Seconds between two lines of progress where there is no terminal.
BETWEEN_LINES = 5.0


class OutOfTime(Exception):  # noqa: N818 - a signal, not an error
    """Time is up: what is under way ends with what it has."""


def warn_of_end(stopped: str | None, outcome: str) -> None:
    """Say why a fit ended early, and with what, to who called it."""
    if stopped is not None:
        why = "too little time was left" if stopped == "time_budget" else "it was interrupted"
        words = f"training ended before all was tried, since {why}: {outcome}"
        warnings.warn(words, UserWarning, stacklevel=3)


@contextmanager
def run(estimator: Any) -> Iterator[None]:
    """A fit of the estimator, on its ``n_jobs`` threads; a failure leaves it as it was."""
    before = vars(estimator).copy()
    try:
        with threads(estimator.n_jobs):
            yield
    except BaseException:
        # What is refused or interrupted leaves the model as it was.
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


@contextmanager
def threads(n_jobs: Any) -> Iterator[None]:
    """At most so many threads, of kernels and of matrix products; None or -1: no limit of ours."""
    if n_jobs is None or n_jobs == -1:
        yield
        return
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer) or n_jobs < 1:
        raise ValueError(f"n_jobs must be None, -1 or a number of threads, not {n_jobs!r}")
    with threads_limited(int(n_jobs)), threadpool_limits(int(n_jobs)):
        yield


@contextmanager
def progress_shown(verbose: object) -> Iterator[Progress | None]:
    """What is told of progress: a bar on a terminal, else a line now and then, on stderr."""
    if not verbose:
        yield None
    elif not sys.stderr.isatty():
        yield _Lines()
    else:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
        with Progress(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task("training", total=None)

            def tell(description: str, at_once: bool = False) -> None:
                if at_once:
                    bar.console.print(f"setwise: {description}", markup=False, highlight=False)
                bar.update(task, description=description)

            yield tell


class _Lines:
    """Progress as lines, the first one after `BETWEEN_LINES` seconds, or ``at_once``."""

    def __init__(self):
        self.begun = self.last = time.monotonic()

    def __call__(self, description: str, at_once: bool = False) -> None:
        now = time.monotonic()
        if at_once or now - self.last >= BETWEEN_LINES:
            self.last = now
            sys.stderr.write(f"setwise: {now - self.begun:.0f} s: {description}\n")
            sys.stderr.flush()


class Watch:
    """Hears of every step of a search: tells of it, and raises `OutOfTime` when time is up.

    ``budget`` is in seconds from now, None without a limit. Of them ``kept`` are for what comes
    after the search; while they are infinite, nothing is cut.
    """

    def __init__(self, budget: Any, tell: Progress | None):
        limit = np.inf if budget is None else positive_number(budget, "time_budget")
        self.end, self.tell, self.words, self.kept = time.monotonic() + limit, tell, "", np.inf

    @property
    def left(self) -> float:
        """Seconds until the end."""
        return self.end - time.monotonic()

    def say(self, words: str) -> None:
        """Tell something that must not wait."""
        if self.tell is not None:
            self.tell(description=words, at_once=True)

    def step(self, **_: Any) -> None:
        """A step was taken."""
        if self.tell is not None:
            self.tell(description=self.words)
        if self.left < self.kept < np.inf:
            raise OutOfTime

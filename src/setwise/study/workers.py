"""Tasks one after the other in this process, or several at once in others."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from setwise.study.folder import Folder
from setwise.study.plan import Plan, Task
from setwise.study.progress import Progress, Silent

KILLED = (
    "the process that worked on it was ended from outside; most often the system does that when "
    "memory runs out"
)
# What a worker process works on: sent to it once, not with every task.
_here: tuple[Plan, Path] | None = None


def do_tasks(plan: Plan, tasks: list[Task], path: Path, jobs: int, progress: Progress) -> None:
    """Do all tasks, so many at once; what they find is in the folder."""
    if jobs == 1:
        for task in tasks:
            plan.work(task, path, progress)
        return
    crashed = _at_once(plan, deque(tasks), path, jobs, progress)
    # One of those that were in work together ended their process: alone, it is known which.
    for task in crashed:
        for unit in task.units:
            alone = Task(unit.method, unit.fold, (unit.target,))
            if _at_once(plan, deque([alone]), path, 1, progress):
                Folder(path).store_failure(unit, KILLED)
                progress.ended(unit, KILLED)


def _at_once(
    plan: Plan, tasks: deque[Task], path: Path, jobs: int, progress: Progress
) -> list[Task]:
    """Do tasks in ``jobs`` processes; those that were in work when a process was ended."""
    crashed: list[Task] = []
    while tasks:
        with _executor(plan, path, jobs) as executor:
            running: dict[Any, Task] = {}
            try:
                while tasks or running:
                    while tasks and len(running) < jobs:
                        task = tasks.popleft()
                        running[executor.submit(_work, task)] = task
                        progress.began(task.units[0])
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        for unit, told in future.result().items():
                            progress.ended(unit, told)
                        del running[future]
            except BrokenProcessPool:
                crashed += running.values()
    return crashed


@contextmanager
def _executor(plan: Plan, path: Path, jobs: int) -> Iterator[Any]:
    """Worker processes that know the plan; ended with the block, whatever they do."""
    # As joblib starts them: without a copy of this process's threads, and with what is defined in
    # a notebook or script.
    from joblib.externals.loky import ProcessPoolExecutor

    executor = ProcessPoolExecutor(jobs, initializer=_prepare, initargs=(plan, path))
    try:
        yield executor
    finally:
        executor.shutdown(wait=True, kill_workers=True)


def _prepare(plan: Plan, path: Path) -> None:
    global _here
    _here = plan, path


def _work(task: Task) -> dict[Any, Any]:
    assert _here is not None
    plan, path = _here
    return plan.work(task, path, Silent())

"""Tasks one after the other in this process, or several at once in others."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections import deque
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

from setwise.study.folder import Folder
from setwise.study.plan import Plan, Task
from setwise.study.progress import Progress
from setwise.study.unit import Unit

KILLED = (
    "the process that worked on it was ended from outside; most often the system does that when "
    "memory runs out"
)
# With the same modules in reach; what is defined in a script or notebook comes along by value.
START = "import sys; sys.path[:] = {path!r}; from setwise.study.worker import main; main()"


class Worker:
    """A process that does one task at a time; what it tells is put into ``messages``."""

    def __init__(self, study: bytes, messages: Queue[tuple[Worker, Any]]):
        self.process = subprocess.Popen(
            [sys.executable, "-c", START.format(path=sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.task: Task | None = None
        self.unit: Unit | None = None
        Thread(target=self._listen, args=(messages,), daemon=True).start()
        self._send(study)

    def begin(self, task: Task) -> None:
        """Give it something to do."""
        self.task = task
        self._send(pickle.dumps(task))

    def end(self) -> None:
        """End the process, whatever it does."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                if pipe is not None:
                    pipe.close()
            except OSError:
                # What was not sent yet has nowhere to go.
                continue

    def _send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(data)
            self.process.stdin.flush()
        except OSError:
            # It has ended, which is heard on the other pipe.
            return

    def _listen(self, messages: Queue[tuple[Worker, Any]]) -> None:
        while True:
            try:
                messages.put((self, pickle.load(self.process.stdout)))  # pyright: ignore
            except Exception:
                # The end of the process is the end of the pipe, within a message or between two.
                messages.put((self, ("ended itself",)))
                return


def do_tasks(plan: Plan, tasks: list[Task], path: Path, jobs: int, progress: Progress) -> None:
    """Do all tasks, so many at once; what they find is in the folder."""
    if jobs == 1:
        for task in tasks:
            plan.work(task, path, progress)
        return
    study, left = _portable(plan, path), deque(tasks)
    messages: Queue[tuple[Worker, Any]] = Queue()
    workers: set[Worker] = set()
    try:
        while left or any(worker.task for worker in workers):
            while left and sum(worker.task is not None for worker in workers) < jobs:
                idle = next((worker for worker in workers if worker.task is None), None)
                worker = idle or Worker(study, messages)
                workers.add(worker)
                worker.begin(left.popleft())
            worker, message = messages.get()
            if message[0] == "ended itself":
                left.extendleft(_after_the_end(worker, path, progress))
                worker.end()
                workers.remove(worker)
            else:
                _hear(worker, message, progress)
    finally:
        for worker in workers:
            worker.end()


def _portable(plan: Plan, path: Path) -> bytes:
    import cloudpickle

    try:
        return cloudpickle.dumps((plan, path))
    except Exception as error:
        raise ValueError(
            f"the study cannot be handed to other processes ({type(error).__name__}: {error}); "
            f"use jobs=1"
        ) from error


def _hear(worker: Worker, message: Any, progress: Progress) -> None:
    """What a worker tells of itself."""
    kind, *told = message
    if kind == "began":
        worker.unit = told[0]
        progress.began(told[0])
    elif kind == "ended":
        worker.unit = None
        progress.ended(*told)
    elif kind == "done":
        worker.task = None
    else:
        raise told[0]


def _after_the_end(worker: Worker, path: Path, progress: Progress) -> list[Task]:
    """The unit that a process ended with has failed; what is left of its task."""
    unit, task = worker.unit, worker.task
    if unit is None or task is None:
        code = worker.process.wait()
        raise RuntimeError(f"a worker process ended before it began a unit (exit code {code})")
    Folder(path).store_failure(unit, KILLED)
    progress.ended(unit, KILLED)
    targets = task.targets[task.targets.index(unit.target) + 1 :]
    return [Task(task.method, task.fold, targets)] if targets else []

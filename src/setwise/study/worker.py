"""A process that does tasks for another: they come in on one pipe, what happens goes out on one.

It ends with the process that started it, however that ends: the pipe closes then.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

from setwise.study.plan import Plan, Task
from setwise.study.unit import Unit


class Told:
    """Progress, told to the process that shows it."""

    def __init__(self, out: Any):
        self.out = out

    def tell(self, *message: Any) -> None:
        """Send a message."""
        pickle.dump(message, self.out)
        self.out.flush()

    def began(self, unit: Unit) -> None:
        """A unit is in work."""
        self.tell("began", unit)

    def ended(self, unit: Unit, told: Any) -> None:
        """A unit is finished or failed."""
        self.tell("ended", unit, told)


def main() -> None:
    """Do tasks until the pipe closes."""
    # An interrupt from the keyboard goes to all processes; the first one ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What methods print must not come among the messages.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    told, received = Told(out), Queue()
    Thread(target=_receive, args=(sys.stdin.buffer, received), daemon=True).start()
    plan, path = _given(received, told)
    while True:
        task: Task = _given(received, told)
        try:
            plan.work(task, path, told)
        except BaseException as error:
            told.tell("raised", _portable(error))
        else:
            told.tell("done")


def _receive(source: Any, received: Queue[Any]) -> None:
    """Objects from the pipe; when it closes, whatever is in work is of no use to anyone."""
    while True:
        try:
            received.put(pickle.load(source))
        except EOFError:
            os._exit(1)
        except BaseException as error:
            received.put(error)
            return


def _given(received: Queue[Any], told: Told) -> Any:
    given: tuple[Plan, Path] | Task | BaseException = received.get()
    if isinstance(given, BaseException):
        words = f"worker processes cannot read the study ({type(given).__name__}: {given})"
        told.tell("raised", ValueError(f"{words}; use jobs=1"))
        os._exit(1)
    return given


def _portable(error: BaseException) -> BaseException:
    """An error that the other process can read."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error

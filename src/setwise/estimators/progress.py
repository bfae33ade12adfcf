"""Progress on the screen for those who ask for it; nothing is imported for others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import log

Step = Callable[[int, str, float], None]
Advance = Callable[[str], None]


@contextmanager
def steps_shown(verbose: object, tol: float) -> Iterator[Step | None]:
    """A bar that fills as the gradient falls to ``tol``: called with (step, words, gradient)."""
    if not verbose:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[words]}"),
        TimeElapsedColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("training", total=1.0, words="")
        first: list[float] = []

        def step(number: int, words: str, gradient: float) -> None:
            first.append(max(gradient, tol))
            whole = max(log(first[0] / tol), 1e-9)
            done = 1.0 - log(max(gradient, tol) / tol) / whole
            bar.update(
                task, completed=max(done, 0.0), words=f"step {number}, {words}, |g| {gradient:.1e}"
            )

        yield step


@contextmanager
def trials_shown(verbose: object, total: int) -> Iterator[Advance]:
    """A bar over a known number of fits, with the time left: called once each fit."""
    if not verbose:
        yield lambda words: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("left"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("choosing", total=total)
        yield lambda words: bar.update(task, advance=1, description=words)

"""How far a study is, and how long it will take, on a terminal; elsewhere nothing is shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from statistics import fmean
from typing import Any, Protocol

from setwise.study.unit import Unit


class Progress(Protocol):
    """Told of each unit as it begins and ends."""

    def began(self, unit: Unit) -> None:
        """A unit is in work."""
        ...

    def ended(self, unit: Unit, told: Any) -> None:
        """A unit is finished, after so many seconds; or failed, with a message."""
        ...


class Silent:
    """Shows nothing."""

    def began(self, unit: Unit) -> None:
        pass

    def ended(self, unit: Unit, told: Any) -> None:
        pass


class TimeLeft:
    """Seconds left: for each unit left the mean of its method's finished ones, or of all."""

    def __init__(self, units: Iterable[Unit], seconds: Mapping[Unit, float], jobs: int):
        self.left = [unit for unit in units if unit not in seconds]
        self.jobs = jobs
        self.known: dict[str, list[float]] = {}
        for unit, spent in seconds.items():
            self.known.setdefault(unit.method, []).append(spent)

    def ended(self, unit: Unit, told: Any) -> None:
        """Count a unit."""
        if unit in self.left:
            self.left.remove(unit)
        if not isinstance(told, str):
            self.known.setdefault(unit.method, []).append(told)

    def seconds(self) -> float | None:
        """None before anything is known."""
        if not self.known:
            return None
        of_all = fmean(spent for some in self.known.values() for spent in some)
        means = {method: fmean(some) for method, some in self.known.items()}
        return sum(means.get(unit.method, of_all) for unit in self.left) / self.jobs


class Bar:
    """A bar with the units in work and the time left."""

    def __init__(self, bar: Any, task: Any, left: TimeLeft):
        self.bar, self.task, self.left = bar, task, left
        self.in_work: list[Unit] = []

    def began(self, unit: Unit) -> None:
        """Show it."""
        self.in_work.append(unit)
        self._update(0)

    def ended(self, unit: Unit, told: Any) -> None:
        """Count it; a failure is printed above the bar."""
        self.left.ended(unit, told)
        if unit in self.in_work:
            self.in_work.remove(unit)
        if isinstance(told, str):
            self.bar.console.print(f"failed: {unit}: {told}", markup=False, highlight=False)
        self._update(1)

    def _update(self, advance: int) -> None:
        words = "; ".join(map(str, self.in_work[:2])) + " ..." * (len(self.in_work) > 2)
        self.bar.update(
            self.task, advance=advance, words=words, left=time_words(self.left.seconds())
        )


def time_words(seconds: float | None) -> str:
    """About how long, in words.

    Examples
    --------
    >>> time_words(75.0), time_words(4000.0), time_words(None)
    ('1 min 15 s', '1 h 06 min', '?')
    """
    if seconds is None:
        return "?"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


@contextmanager
def progress_shown(
    wanted: bool, units: list[Unit], seconds: Mapping[Unit, float], jobs: int
) -> Iterator[Progress]:
    """A bar on the error stream if it is a terminal and a bar is wanted, else silence."""
    from rich.console import Console

    console = Console(stderr=True)
    if not (wanted and console.is_terminal):
        yield Silent()
        return
    from rich import progress as rich

    columns = (
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TimeElapsedColumn(),
        rich.TextColumn("left: {task.fields[left]}", markup=False),
        rich.TextColumn("{task.fields[words]}", markup=False),
    )
    left = TimeLeft(units, seconds, jobs)
    with rich.Progress(*columns, console=console) as bar:
        done = len(units) - len(left.left)
        first = time_words(left.seconds())
        task = bar.add_task("", total=len(units), completed=done, words="", left=first)
        yield Bar(bar, task, left)

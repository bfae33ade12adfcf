"""Figures of one prediction, and their differences between two; printed, tables of text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from typing import Any, Literal, get_args

from setwise.targets import get_target

Group = Literal["instance", "micro", "macro", "hierarchy", "ranking", "calibration", "target"]
Better = Literal["higher", "lower"]
GROUPS: tuple[Group, ...] = get_args(Group)
# What the names of the figures of targets begin with.
LOSS = "loss: "


@dataclass(frozen=True)
class Figure:
    """One number about predictions.

    Attributes
    ----------
    name : str
        For example ``"instance f1"`` or ``"precision@3"``.
    group : str
        ``"instance"``, ``"micro"``, ``"macro"``, ``"hierarchy"``, ``"ranking"``,
        ``"calibration"`` or ``"target"``.
    value : float
        On the rows as they are; NaN where it is not defined.
    low, high : float or None
        Ends of the bootstrap interval, which covers the value; None without a bootstrap or value.
    better : {"higher", "lower"} or None
        Which values are good; None for a figure that only describes, such as a mean size.

    Examples
    --------
    >>> from setwise.evaluation import evaluate
    >>> evaluate([[1, 0], [1, 1]], [[1, 0], [0, 1]], n_bootstrap=0)["micro f1"]
    Figure(name='micro f1', group='micro', value=0.8, low=None, high=None, better='higher')
    """

    name: str
    group: Group
    value: float
    low: float | None = None
    high: float | None = None
    better: Better | None = None

    def cells(self) -> list[str]:
        """Its line of a table."""
        better = f"{self.better} is better" if self.better else ""
        return [f"  {self.name}", number(self.value), interval(self.low, self.high), better]


@dataclass(frozen=True)
class Difference:
    """One figure for two predictions, and their difference.

    Attributes
    ----------
    name, group, better
        As in `Figure`.
    a, b : float
        The figure of the first and of the second prediction.
    value : float
        b - a.
    low, high : float or None
        Ends of the bootstrap interval of the difference; None without a bootstrap.
    p : float or None
        Two-sided bootstrap p-value of "there is no difference".
    adjusted_p : float or None
        The p-value after Holm's correction for all figures of the comparison.
    significant : bool or None
        Whether ``adjusted_p`` is at most 1 - confidence.

    Examples
    --------
    >>> from setwise.evaluation import compare
    >>> differences = compare([[1, 0], [1, 1]], [[1, 0], [0, 1]], [[1, 0], [0, 1]], n_bootstrap=0)
    >>> found = differences["micro f1"]
    >>> round(found.a, 3), found.b, round(found.value, 3)
    (0.8, 1.0, 0.2)
    >>> print(found)
    micro f1: 0.8000 to 1.0000, a difference of 0.2000 (higher is better)
    """

    name: str
    group: Group
    a: float
    b: float
    value: float
    low: float | None
    high: float | None
    p: float | None
    adjusted_p: float | None
    significant: bool | None
    better: Better | None

    def __str__(self) -> str:
        ends = interval(self.low, self.high)
        told = "" if self.adjusted_p is None else f", adjusted p {self.adjusted_p:.4f}"
        change = f"{number(self.a)} to {number(self.b)}, a difference of {number(self.value)}"
        better = "" if self.better is None else f" ({self.better} is better)"
        return f"{self.name}: {change} {ends}".rstrip() + told + better

    def cells(self) -> list[str]:
        """Its line of a table."""
        p = ["" if p is None else f"{p:.4f}" for p in (self.p, self.adjusted_p)]
        values = map(number, (self.a, self.b, self.value))
        star = "*" if self.significant else ""
        better = f"{self.better} is better"
        return [f"  {self.name}", *values, interval(self.low, self.high), *p, star, better]


@dataclass(frozen=True)
class Evaluation(Mapping[str, Figure]):
    """All figures of one prediction, by name; printed, a table.

    The figure of a target is found by every name of it that `get_target` takes.

    Attributes
    ----------
    figures : dict of str to Figure
        In the order of the groups.
    n_rows, n_labels : int
        Size of the data.
    n_bootstrap : int
        Number of resamples behind the intervals; 0 if there are none.
    confidence : float
        Level of the intervals.
    sample, options : Sample and Options, or None
        The label sets and probabilities it was made of, checked, and what was asked of them: what
        a report is drawn from. No part of what is compared, printed or written to JSON.

    Examples
    --------
    >>> from setwise.evaluation import evaluate
    >>> figures = evaluate([[1, 0], [1, 1]], [[1, 0], [0, 1]], n_bootstrap=0)
    >>> figures.n_rows, round(figures["instance jaccard"].value, 2)
    (2, 0.75)
    """

    figures: dict[str, Figure]
    n_rows: int
    n_labels: int
    n_bootstrap: int
    confidence: float
    sample: Any = field(default=None, compare=False, repr=False)
    options: Any = field(default=None, compare=False, repr=False)

    def __getitem__(self, name: str) -> Figure:
        return _found(self.figures, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.figures)

    def __len__(self) -> int:
        return len(self.figures)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, ready for JSON; None for a value that is not defined."""
        entries = asdict(replace(self, sample=None, options=None))
        for figure in entries["figures"].values():
            figure["value"] = None if math.isnan(figure["value"]) else figure["value"]
        return {key: value for key, value in entries.items() if key not in ("sample", "options")}

    def __str__(self) -> str:
        head = described(self.n_rows, self.n_labels, self.n_bootstrap, self.confidence)
        note = "".join(f"\n{line}" for line in self._of_empty_rows())
        return f"{head}\n{aligned(_grouped(self.figures))}{note}"

    def _of_empty_rows(self) -> Iterator[str]:
        """A note where targets and instance figures count some rows differently."""
        if self.sample is None or not self.options.targets or self.options.zero_division == 1.0:
            return
        filled = [rows.sum(axis=1) > 0 for rows in (self.sample.true, self.sample.predicted)]
        n_empty = self.n_rows - int((filled[0] | filled[1]).sum())
        if n_empty:
            nothing = self.options.zero_division
            rule = "is left out" if math.isnan(nothing) else f"counts as {nothing:g}"
            told = (
                f"rows without true and predicted labels: {n_empty}. In instance figures they are "
                f"0/0, which {rule} (zero_division); a target has its own rule, by default that "
                f"they are right"
            )
            for name in map(str, self.options.targets):
                if f"instance {name}" in self.figures:
                    told += f". So 'instance {name}' is not 1 - 'loss: {name}'"
                    if nothing == 0.0:
                        told += f" but 1 - 'loss: {name}_samples', scikit-learn's number"
            yield told


@dataclass(frozen=True)
class Comparison(Mapping[str, Difference]):
    """The differences between two predictions, by name of the figure; printed, a table.

    Attributes
    ----------
    differences : dict of str to Difference
        For the figures that both have and of which some values are better than others.
    a, b : Evaluation
        Each prediction by itself, on the same resamples.

    Examples
    --------
    >>> from setwise.evaluation import compare
    >>> found = compare([[1, 0], [1, 1]], [[1, 0], [0, 1]], [[1, 0], [0, 1]], n_bootstrap=0)
    >>> found["subset accuracy"].value
    0.5
    """

    differences: dict[str, Difference]
    a: Evaluation
    b: Evaluation

    def __getitem__(self, name: str) -> Difference:
        return _found(self.differences, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.differences)

    def __len__(self) -> int:
        return len(self.differences)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, ready for JSON."""
        differences = {name: asdict(entry) for name, entry in self.differences.items()}
        return {"differences": differences, "a": self.a.to_dict(), "b": self.b.to_dict()}

    def __str__(self) -> str:
        a, n = self.a, len(self)
        head = ["", "a", "b", "b - a", "", "p", "adjusted p", "", ""]
        lines = [
            described(a.n_rows, a.n_labels, a.n_bootstrap, a.confidence),
            aligned([head, *_grouped(self.differences)]),
        ]
        if a.n_bootstrap:
            lines.append(f"* adjusted p (Holm, {n} figures) at most {1.0 - a.confidence:.4g}")
            lines += too_few_resamples(n, a.n_bootstrap, a.confidence)
        return "\n".join(lines)


def _found(entries: Mapping[str, Any], name: str) -> Any:
    known = name if name in entries else _by_target(name)
    if known not in entries:
        raise KeyError(f"there is no figure named {name!r}; there are {', '.join(entries)}")
    return entries[known]


def _by_target(name: Any) -> str:
    """The name that the figure of a target is kept under, from any that the target goes by."""
    if not isinstance(name, str) or not name.startswith(LOSS):
        return ""
    try:
        return f"{LOSS}{get_target(name.removeprefix(LOSS))}"
    except ValueError:
        return ""


def _grouped(entries: Mapping[str, Figure] | Mapping[str, Difference]) -> Iterator[list[str]]:
    """The lines of a table, each group under its heading."""
    for group, members in groupby(entries.values(), lambda entry: entry.group):
        yield [group]
        yield from (entry.cells() for entry in members)


def described(n_rows: int, n_labels: int, n_bootstrap: int, confidence: float) -> str:
    """The first line of a table: on what data, and what the intervals are."""
    size = f"{n_rows} row{'s' * (n_rows != 1)}, {n_labels} label{'s' * (n_labels != 1)}"
    if not n_bootstrap:
        return f"{size}; no intervals"
    return f"{size}; {100 * confidence:g} % intervals from {n_bootstrap} resamples"


def too_few_resamples(n_tests: int, n_bootstrap: int, confidence: float) -> list[str]:
    """A note where no p-value of so many can be small enough after Holm's correction, or none."""
    least = n_tests / (n_bootstrap + 1)
    if least <= 1.0 - confidence:
        return []
    return [
        f"  the smallest adjusted p that {n_bootstrap} resamples can show is "
        f"{min(least, 1.0):.4g}: increase n_bootstrap"
    ]


def number(value: float) -> str:
    """Four decimals, or three digits where these would hide a small value."""
    if math.isnan(value):
        return "undefined"
    return f"{value:.4f}" if value == 0 or abs(value) >= 1e-3 else f"{value:.2e}"


def interval(low: float | None, high: float | None) -> str:
    """``[low, high]``, or nothing where there is no interval."""
    return "" if low is None or high is None else f"[{number(low)}, {number(high)}]"


def aligned(lines: Iterable[Sequence[str]]) -> str:
    """One line for each row; the first column to the left, the others to the right.

    A row of one cell is a heading and takes no part in the widths.
    """
    rows = list(lines)
    full = [row for row in rows if len(row) > 1]
    widths = [max(map(len, column)) for column in zip(*full, strict=True)]

    def line(row: Sequence[str]) -> str:
        cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=False)]
        return "  ".join([row[0].ljust(widths[0]), *cells]).rstrip()

    return "\n".join(line(row) for row in rows)

"""A figure is one number about predictions, with its interval; an evaluation holds them all.

Both are printed as text tables: numbers of readable length in columns of equal width.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any, Literal, get_args

Group = Literal["instance", "micro", "macro", "hierarchy", "ranking", "calibration", "target"]
Better = Literal["higher", "lower"]
GROUPS: tuple[Group, ...] = get_args(Group)


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
        On the rows as they are.
    low, high : float or None
        Ends of the bootstrap interval; None without a bootstrap.
    better : {"higher", "lower"} or None
        Which values are good; None for a figure that only describes, such as a mean size.
    """

    name: str
    group: Group
    value: float
    low: float | None = None
    high: float | None = None
    better: Better | None = None


@dataclass(frozen=True)
class Evaluation(Mapping[str, Figure]):
    """All figures of one prediction, by name; printed, a table.

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
    """

    figures: dict[str, Figure]
    n_rows: int
    n_labels: int
    n_bootstrap: int
    confidence: float
    sample: Any = field(default=None, compare=False, repr=False)
    options: Any = field(default=None, compare=False, repr=False)

    def __getitem__(self, name: str) -> Figure:
        return found(self.figures, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.figures)

    def __len__(self) -> int:
        return len(self.figures)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, ready for JSON."""
        return {
            "figures": {name: asdict(figure) for name, figure in self.figures.items()},
            "n_rows": self.n_rows,
            "n_labels": self.n_labels,
            "n_bootstrap": self.n_bootstrap,
            "confidence": self.confidence,
        }

    def __str__(self) -> str:
        lines: list[list[str]] = []
        for group, figures in groupby(self.figures.values(), lambda figure: figure.group):
            lines.append([group])
            lines += [
                [
                    f"  {figure.name}",
                    number(figure.value),
                    interval(figure.low, figure.high),
                    f"{figure.better} is better" if figure.better else "",
                ]
                for figure in figures
            ]
        head = described(self.n_rows, self.n_labels, self.n_bootstrap, self.confidence)
        return f"{head}\n{aligned(lines)}"


def described(n_rows: int, n_labels: int, n_bootstrap: int, confidence: float) -> str:
    """The first line of a table: on what data, and what the intervals are."""
    size = f"{n_rows} row{'s' * (n_rows != 1)}, {n_labels} label{'s' * (n_labels != 1)}"
    if not n_bootstrap:
        return f"{size}; no intervals"
    return f"{size}; {100 * confidence:g} % intervals from {n_bootstrap} resamples"


def found(entries: Mapping[str, Any], name: str) -> Any:
    """The entry of that name, or a KeyError that lists the names there are."""
    if name not in entries:
        raise KeyError(f"there is no figure named {name!r}; there are {', '.join(entries)}")
    return entries[name]


def number(value: float) -> str:
    """Four decimals, or three digits where these would hide a small value."""
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
    return "\n".join(row[0] if len(row) == 1 else _line(row, widths) for row in rows)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
    return "  ".join([row[0].ljust(widths[0]), *cells[1:]]).rstrip()

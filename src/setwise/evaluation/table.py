"""Text tables: numbers of readable length in columns of equal width."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


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

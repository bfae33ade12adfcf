"""The values of one column of a table: numbers, categories, 0/1, lists of labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise.datasets.arff_rows import NUMBER, SPARSE
from setwise.datasets.data_error import shown
from setwise.datasets.label_source import TRUTH, Place
from setwise.datasets.numerals import numerals
from setwise.labels import some

# What a cell of a number or a category says when its value is missing, in lower case.
MISSING = frozenset({"", "?", "na", "n/a", "nan", "null", "none"})


def numbers(cells: Sequence[Any], name: str, place: Place) -> NDArray[np.float64]:
    """A column of numbers; NaN where one is missing."""
    values = cells if isinstance(cells, np.ndarray) else _quick_numbers(cells)
    if values is None:
        values = np.array([_number(cell, name, row, place) for row, cell in enumerate(cells)])
    if np.isinf(values).any():
        row = int(np.argmax(np.isinf(values)))
        raise place.error(row, f"column {shown(name)} is infinite")
    return values


def _quick_numbers(cells: Sequence[str]) -> NDArray[np.float64] | None:
    """All cells at once, if each is a number and nothing else; else None."""
    text = ",".join(cells)
    if not text.isascii() or text.encode().translate(None, SPARSE):
        return None
    found = numerals(text.encode())
    if found is None or len(found.values) != len(cells):
        return None
    # Each number after as many commas as cells before it.
    return found.values if (found.marks == np.arange(len(cells))).all() else None


def _number(cell: Any, name: str, row: int, place: Place) -> float:
    text = str(cell).strip()
    if text.lower() in MISSING:
        return np.nan
    if NUMBER.fullmatch(text) or text.lower() in ("inf", "-inf", "infinity"):
        return float(text)
    raise place.error(
        row,
        f"column {shown(name)} is {shown(text)}, which is no number; read the column as categories "
        f"(categorical=[{name!r}]) or text (text=[{name!r}]), or leave it out (drop=[{name!r}])",
    )


def category_codes(cells: Sequence[Any], kind: Any, name: str, place: Place) -> NDArray[np.float64]:
    """A column of categories: the number of its feature, NaN where one is missing."""
    codes = []
    for row, cell in enumerate(as_text(cells)):
        value = cell.strip()
        code = kind.codes.get(value)
        if code is None and value.lower() in MISSING:
            code = np.nan
        if code is None and kind.unseen == "zeros":
            code = 0.0
        if code is None:
            raise place.error(
                row,
                f"column {shown(name)} has the new category {shown(value)}; known are "
                f"{some(kind.values[:11].tolist())}",
            )
        codes.append(code)
    return np.array(codes, np.float64)


def as_text(cells: Sequence[Any]) -> list[str]:
    """Cells as text; numbers of Parquet as short as they can be."""
    if isinstance(cells, np.ndarray):
        return ["" if np.isnan(value) else f"{value:.17g}" for value in cells.tolist()]
    return [cell if isinstance(cell, str) else str(cell) for cell in cells]


def truths(cells: Sequence[Any], name: str, place: Place) -> NDArray[np.float64]:
    """A column of 0 and 1; NaN where it is not known."""
    if isinstance(cells, np.ndarray):
        return cells
    codes = []
    for row, cell in enumerate(cells):
        value = str(cell).strip().lower()
        code = np.nan if value in MISSING else TRUTH.get(value)
        if code is None:
            expected = "expected is 0 or 1 (or true or false, yes or no)"
            raise place.error(row, f"label {shown(name)} is {shown(cell)}; {expected}")
        codes.append(code)
    return np.array(codes, np.float64)


def lists(cells: Sequence[Any]) -> Sequence[Any]:
    """Cells that list labels; a number is a single one."""
    return as_text(cells) if isinstance(cells, np.ndarray) else cells

"""What a later file has that the first one had not: how it is read, and how much there was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from setwise.spelling import argument, counted, shown

# How a new category and a new label can be read.
CATEGORIES, LABELS = ("refuse", "zeros"), ("refuse", "missed")
# So many of the new values of a column are named.
MOST_NAMED = 5


def unseen_hint() -> str:
    """What is said of a label of a later file that is not known."""
    return f" ({argument('unseen_labels', 'missed')} counts it as missed)"


@dataclass(frozen=True)
class Unseen:
    r"""Categories and labels of a file that the first file had not, and how many rows have each.

    Parameters
    ----------
    categories : dict of str to Counter
        By column: each new category, 0 in all features of the column.
    labels : Counter
        Each new label, which no model of the first file can predict.

    Examples
    --------
    >>> found = Unseen({"cover": Counter(silk=2)}) + Unseen({"cover": Counter(silk=1, tin=1)})
    >>> print("\n".join(found.words()))
    new categories in 4 cells of column 'cover', 0 in all its features: 'silk' 3, 'tin' 1
    """

    categories: Mapping[str, Counter[str]] = field(default_factory=dict)
    labels: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: Unseen) -> Unseen:
        every = dict.fromkeys([*self.categories, *other.categories])
        empty: Counter[str] = Counter()
        columns = (
            (name, self.categories.get(name, empty) + other.categories.get(name, empty))
            for name in every
        )
        return Unseen(dict(columns), self.labels + other.labels)

    def __bool__(self) -> bool:
        return any(self.categories.values()) or bool(self.labels)

    def to_dict(self) -> dict[str, Any]:
        """As JSON: how often there was something new, how many different, the most frequent."""
        columns = {name: _told(found) for name, found in self.categories.items() if found}
        return {"categories": columns, "labels": _told(self.labels)}

    def words(self) -> list[str]:
        """A line for each column with new categories, and one for new labels."""
        lines = [
            f"new categories in {counted(found.total(), 'cell')} of column {shown(name)}, 0 in all "
            f"its features: {_named(found)}"
            for name, found in self.categories.items()
            if found
        ]
        if self.labels:
            lines.append(
                f"{counted(len(self.labels), 'new label')}, {counted(self.labels.total(), 'time')} "
                f"true, counted as missed: {_named(self.labels)}"
            )
        return lines


def _told(found: Counter[str]) -> dict[str, Any]:
    frequent = dict(found.most_common(MOST_NAMED))
    return {"times": found.total(), "different": len(found), "most_frequent": frequent}


def _named(found: Counter[str]) -> str:
    words = [f"{shown(value)} {times}" for value, times in found.most_common(MOST_NAMED)]
    more = len(found) - len(words)
    return ", ".join(words) + (f" and {more} more" if more else "")

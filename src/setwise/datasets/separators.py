"""Whether lists of labels look as though another separator parts them than the one named."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence

from setwise.spelling import shown

# Marks that are rarely in a name, and marks that often are: in path names, in names of two words.
CLEAR, DOUBTFUL = ";|,\t", "/ "
# From this share of the lists on, a mark is in many of them.
MANY = 0.25


def other_separator(lists: Sequence[str], separator: str) -> str | None:
    """Another mark that seems to part the labels, where the separator is in no list; else None.

    A clear mark (; | , or a tab) in a quarter of the lists is enough. A slash or a space has to
    show that it parts labels: there are fewer different parts than different lists, and one
    part stands first in one list and later in another, as the parts of path names seldom do.
    """
    filled = [text for text in (text.strip() for text in lists) if text]
    if not filled or any(separator in text for text in filled):
        return None
    times = Counter(mark for text in filled for mark in CLEAR + DOUBTFUL if mark in text)
    many = [mark for mark in CLEAR + DOUBTFUL if times[mark] >= MANY * len(filled)]
    usual = [mark for mark in many if mark in CLEAR or _parts_labels(filled, mark)]
    # (Where a comma and a space part the labels, it is the comma.)
    return max(usual, key=lambda mark: (mark in CLEAR, times[mark]), default=None)


def _parts_labels(lists: Sequence[str], mark: str) -> bool:
    parted = [[part.strip() for part in text.split(mark)] for text in set(lists)]
    first = {parts[0] for parts in parted}
    later = {part for parts in parted for part in parts[1:]}
    return bool(first & later) and len(first | later) < len(parted)


def warn_of_separator(
    lists: Sequence[str], separator: str, where: str, hint: Callable[[str], str]
) -> None:
    """Warn where another mark seems to part the labels; ``hint`` says what to do about it."""
    mark = other_separator(lists, separator)
    if mark is not None:
        example = next(text.strip() for text in lists if mark in text.strip())
        warnings.warn(
            f"{where}: {shown(example)} is read as one label, because labels are separated by "
            f"{separator!r}, which is in none of the lists; {mark!r} is in many: {hint(mark)}",
            stacklevel=2,
        )

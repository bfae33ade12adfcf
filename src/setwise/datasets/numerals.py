"""Many decimal numbers in a text at once, each as ``float`` reads it.

A number of at most 2**53 without its point, divided by a power of ten of at most 10**22, is one
division of two exact floats, and so correctly rounded (Clinger 1990); others are left to ``float``.
Between two and three times as fast as ``float`` for each, on the short numbers of sparse files.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

BLANK, DIGIT, POINT, SIGN, POWER, MARK, OTHER = range(7)
_KIND = np.full(256, OTHER, np.uint8)
for _kind, _characters in (
    (BLANK, b" \t"),
    (DIGIT, b"0123456789"),
    (POINT, b"."),
    (SIGN, b"+-"),
    (POWER, b"eE"),
    (MARK, b",:;"),
):
    _KIND[list(_characters)] = _kind
# The characters of a text that can be read at once.
ORDINARY = b" \t0123456789.+-eE,:;"
_LONGEST = 18
_POWERS = 10.0 ** np.arange(_LONGEST + 1)


class Numerals(NamedTuple):
    """The numbers of a text, and what stands between them.

    Attributes
    ----------
    values : float64 array
        The numbers, in order.
    whole : bool array
        Whether a number is written with digits only.
    marks : int array
        How many of ``,:;`` stand before each number, since the beginning of the text.
    starts, ends : int arrays
        Where each number stands.
    """

    values: NDArray[np.float64]
    whole: NDArray[np.bool_]
    marks: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


def numerals(text: bytes) -> Numerals | None:
    """The numbers in a text of `ORDINARY` characters; None if one of them is no number."""
    characters = np.frombuffer(text, np.uint8)
    kind = _KIND[characters]
    inside = np.zeros(len(kind) + 2, np.int8)
    inside[1:-1] = (kind >= DIGIT) & (kind <= POWER)
    edges = np.flatnonzero(np.diff(inside))
    starts, ends = edges[::2], edges[1::2]
    marks = np.concatenate([[0], np.cumsum(kind == MARK)])[starts]
    values, whole, hard = _simple(characters, kind, starts, ends)
    for place in np.flatnonzero(hard).tolist():
        try:
            values[place] = float(text[starts[place] : ends[place]])
        except ValueError:
            return None
    return Numerals(values, whole, marks, starts, ends)


def _simple(characters, kind, starts, ends):
    """Values of all numbers that are simple, which are whole, and which are not simple."""
    lengths = ends - starts
    mantissa = np.zeros(len(starts), np.int64)
    digits = np.zeros(len(starts), np.int8)
    decimals = np.full(len(starts), -1, np.int8)
    hard = lengths > _LONGEST
    negative = characters[starts] == ord("-") if len(starts) else np.zeros(0, bool)
    signed = kind[starts] == SIGN if len(starts) else negative
    active = np.flatnonzero(~hard)
    for step in range(_LONGEST):
        active = active[lengths[active] > step]
        if not len(active):
            break
        at = starts[active] + step
        what = kind[at]
        digit = what == DIGIT
        number = active[digit]
        mantissa[number] = 10 * mantissa[number] + (characters[at[digit]] - ord("0"))
        digits[number] += 1
        decimals[number] += decimals[number] >= 0
        rest = ~digit
        if rest.any():
            others = active[rest]
            point = (what[rest] == POINT) & (decimals[others] < 0)
            decimals[others[point]] = 0
            hard[others[~point & ~((what[rest] == SIGN) & (step == 0))]] = True
    hard |= (digits == 0) | (mantissa > 2**53)
    whole = (digits == lengths) & ~hard
    values = mantissa / _POWERS[np.maximum(decimals, 0)]
    values = np.where(negative, -values, values)
    return values, whole & ~signed, hard

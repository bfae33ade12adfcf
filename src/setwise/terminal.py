"""Text from files and users, made harmless for a terminal or a spreadsheet."""

from __future__ import annotations

import math
import re
from typing import Any

# Control characters but tab and newline (an escape code begins with one); marks, embeddings,
# overrides and isolates of direction, which show text in another order than it has; separators of
# lines and paragraphs.
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
# What a cell begins with that spreadsheets take for a formula, in full width too.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def printable(text: str, json: bool = False) -> str:
    r"""The text with control characters written as escapes, for JSON in its own way of writing.

    Examples
    --------
    >>> print(printable("\x1b[31mred\u202e"))
    \x1b[31mred\u202e
    >>> print(printable("\x9b", json=True))
    \u009b
    """
    short = "\\x{:02x}" if not json else "\\u{:04x}"

    def escaped(found: re.Match[str]) -> str:
        code = ord(found[0])
        return (short if code < 0x100 else "\\u{:04x}").format(code)

    return CONTROL.sub(escaped, text)


def no_formula(cell: Any) -> Any:
    """A cell that no spreadsheet runs: an apostrophe before text that is no number but looks so.

    Examples
    --------
    >>> no_formula("=1+1"), no_formula("-1.5"), no_formula(-1.5)
    ("'=1+1", '-1.5', -1.5)
    """
    if not isinstance(cell, str) or not cell.startswith(FORMULA):
        return cell
    try:
        return cell if math.isfinite(float(cell)) else f"'{cell}"
    except ValueError:
        return f"'{cell}"

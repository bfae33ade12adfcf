"""Numbers as they are read: no leading 0, a true minus, as many digits as mean something."""

from __future__ import annotations

import math

MINUS, TIMES, NOTHING = "\u2212", "\u00d7", "\u2013"
RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def share(value: float | None, decimals: int = 3) -> str:
    """A number that is mostly between -1 and 1, such as ``.662``.

    Examples
    --------
    >>> share(0.6618), share(-0.05, 2), share(1.0, 2), share(None)
    ('.662', '−.05', '1.00', '–')
    """
    if value is None or math.isnan(value):
        return NOTHING
    if math.isinf(value):
        return f"{MINUS if value < 0 else ''}∞"
    digits = f"{abs(value):.{decimals}f}"
    digits = digits.removeprefix("0") if decimals else digits
    negative = value < 0 and any(digit in digits for digit in "123456789")
    return f"{MINUS if negative else ''}{digits}"


def interval(low: float | None, high: float | None, decimals: int = 3) -> str:
    """``[.641, .683]``, or nothing where there is none."""
    if low is None or high is None:
        return ""
    return f"[{share(low, decimals)}, {share(high, decimals)}]"


def decimals_for(low: float | None, high: float | None) -> int:
    """So many that half an interval of that width shows one digit; at least two.

    Examples
    --------
    >>> decimals_for(0.64, 0.68), decimals_for(0.1501, 0.1513)
    (2, 4)
    """
    if low is None or high is None or not 0.0 < high - low < math.inf:
        return 3
    return min(max(2, -math.floor(math.log10((high - low) / 2.0))), 5)


def small(value: float | None) -> str:
    """A number that may be tiny: ``.034``, ``2.1×10⁻⁵``.

    Examples
    --------
    >>> small(0.0341), small(2.13e-5), small(0.0), small(12.34)
    ('.034', '2.1×10⁻⁵', '0', '12.3')
    """
    if value is None or not math.isfinite(value):
        return share(value)
    if value == 0:
        return "0"
    if 1e-3 <= abs(value) < 10:
        return share(value)
    if 10 <= abs(value) < 1e4:
        return f"{MINUS if value < 0 else ''}{abs(value):.1f}"
    digits, exponent = f"{abs(value):.1e}".split("e")
    return f"{MINUS if value < 0 else ''}{digits}{TIMES}10{str(int(exponent)).translate(RAISED)}"


def seconds(value: float) -> str:
    """A time: ``12 ms``, ``3.4 s``, ``2 min 05 s``.

    Examples
    --------
    >>> seconds(0.0123), seconds(3.41), seconds(125), seconds(7300)
    ('12 ms', '3.4 s', '2 min 05 s', '2 h 02 min')
    """
    if not math.isfinite(value):
        return share(value)
    if value < 0.0995:
        return f"{1e3 * value:.{0 if value >= 0.00995 else 1}f} ms"
    if value < 59.95:
        return f"{value:.1f} s"
    if value < 3599.5:
        return f"{round(value) // 60} min {round(value) % 60:02d} s"
    minutes = round(value / 60)
    return f"{count(minutes // 60)} h {minutes % 60:02d} min"


def count(value: int) -> str:
    """A whole number with its thousands apart: ``12,345``."""
    return f"{value:,}"


def listed(words: list[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"

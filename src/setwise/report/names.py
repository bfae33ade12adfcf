"""Names from data, as they may stand in a page: escaped, isolated, of bounded length."""

from __future__ import annotations

import re
import unicodedata

from markupsafe import Markup

# Of a longer name the page holds this much, also in its tooltip.
LONGEST = 300
# Characters that show nothing but act on what stands around them: controls, line and paragraph
# separators, halves of surrogate pairs, and those that embed, override or isolate directions.
ACTING = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")


def plain(text: object) -> str:
    r"""The text with acting characters written out, such as ``\u202e``.

    What is left of right-to-left text (letters and implicit marks) stays within one element.

    Examples
    --------
    >>> plain("a\u202eb")
    'a\\u202eb'
    """
    shown = ACTING.sub(lambda found: f"\\u{ord(found.group()):04x}", str(text))
    if not shown.strip():
        return f"“{shown}”"
    return shown if len(shown) <= LONGEST else clipped(shown, LONGEST)


def prose(text: object) -> str:
    """A text of any length with acting characters written out, in the lines it came in."""
    return "\n".join(
        ACTING.sub(lambda found: f"\\u{ord(found.group()):04x}", line)
        for line in str(text).splitlines()
    )


def clipped(text: str, width: int) -> str:
    """The beginning of a text that is longer than ``width``, and an ellipsis.

    A letter is not cut from the marks that combine with it, unless they are all there is.
    """
    if len(text) <= width:
        return text
    cut = width - 1
    while cut > 0 and unicodedata.combining(text[cut]):
        cut -= 1
    return text[: cut or width - 1].rstrip() + "…"


def isolated(text: object) -> str:
    """A name within a text that has no elements, such as a tooltip."""
    return f"\u2068{plain(text)}\u2069"


def name(text: object, width: int = 40) -> Markup:
    """A name as an element of its own direction; a clipped one has a tooltip."""
    whole = plain(text)
    short = clipped(whole, width)
    if short == whole:
        return Markup("<bdi>{}</bdi>").format(whole)
    return Markup('<bdi title="{}">{}</bdi>').format(whole, short)

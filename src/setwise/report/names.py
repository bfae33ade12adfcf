"""Names in the page: those from data escaped, isolated and of bounded length; those of targets."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from markupsafe import Markup

from setwise.study import Scale

# Of a longer name the page holds this much, also in its tooltip.
LONGEST = 300
# Characters that show nothing but act on what stands around them: controls, line and paragraph
# separators, halves of surrogate pairs, and those that embed, override or isolate directions.
ACTING = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")
# Patterns of targets' names; what stands for the number takes the place of {}.
KNOWN = {
    r"hamming": ("Hamming loss", True, "the share of labels that are wrong"),
    r"subset": ("Subset accuracy", False, "the share of rows whose label set is exactly right"),
    r"jaccard": ("Jaccard", False, "labels both true and predicted, over labels either"),
    r"f1": ("F1", False, "the harmonic mean of a row’s precision and recall"),
    r"f(\d+(?:\.\d+)?)": (
        "F{}",
        False,
        "the mean of a row’s precision and recall, recall weighing {} times as much",
    ),
    r"precision@(\d+)": ("Precision@{}", False, "the share of {} predicted labels that are true"),
    r"recall@(\d+)": ("Recall@{}", False, "the share of a row’s true labels among {} predicted"),
}


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


# ----------------------------------------------------------------------------------------- measures


@dataclass(frozen=True)
class Measure:
    """A target as it is shown: its loss, or 1 less the loss where people say it that way.

    Attributes
    ----------
    target, title, meaning : str
        Name of the target, name in the page, and what is averaged over rows.
    is_loss : bool
        Whether the loss itself is shown, and lower is better.
    scale : Scale or None
        Of a tree distance, what its loss is in units of length.
    """

    target: str
    title: str
    is_loss: bool
    meaning: str
    scale: Scale | None = None

    @property
    def spoken(self) -> str:
        """The title within a sentence: a capital stays where it is a name."""
        is_word = self.title.startswith(("Subset", "Precision", "Recall", "Tree"))
        return self.title[0].lower() + self.title[1:] if is_word else self.title

    @property
    def better(self) -> str:
        """Which values are good."""
        return "lower is better" if self.is_loss else "higher is better"

    def distance(self, loss: float) -> str:
        """The loss of a tree distance in units of length; nothing for other targets."""
        return "" if self.scale is None else self.scale.said(loss)

    def shown(self, loss: float) -> float:
        """The loss, or 1 less it."""
        return loss if self.is_loss else 1.0 - loss

    def ends(self, low: float | None, high: float | None) -> tuple[float | None, float | None]:
        """The ends of an interval of the loss, as shown."""
        if low is None or high is None or self.is_loss:
            return low, high
        return 1.0 - high, 1.0 - low


def measure_of(target: str, scale: Scale | None = None) -> Measure:
    """How the target of that name is shown; an unknown one as its loss, a tree distance as such.

    Examples
    --------
    >>> measure_of("f0.5").title, measure_of("my own").title
    ('F0.5', 'my own')
    """
    if scale is not None:
        return Measure(target, _tree_title(target), True, _tree_meaning(scale), scale)
    for pattern, (title, is_loss, meaning) in KNOWN.items():
        found = re.fullmatch(pattern, target)
        if found:
            number = "".join(found.groups())
            return Measure(target, title.format(number), is_loss, meaning.format(number))
    return Measure(target, clipped(plain(target), 40), True, "a loss of its own")


def _tree_title(target: str) -> str:
    """Of the name that it has by itself or on the command line; another is its user's."""
    own = target == "tree" or re.fullmatch(r"TreeDistance over \d+ labels", target)
    return "Tree distance" if own else clipped(plain(target), 40)


def _tree_meaning(scale: Scale) -> str:
    whole = f"{scale.whole:,.0f}" if scale.whole == round(scale.whole) else f"{scale.whole:,.4g}"
    return (
        f"the length of the edges on which prediction and truth differ, of the sets as predicted, "
        f"as a share of all {whole} {scale.unit}"
    )

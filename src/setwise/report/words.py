"""Numbers, names and targets as they are read.

Numbers have no leading 0, a true minus, and as many digits as mean something. Names from data are
escaped, isolated and of bounded length.
"""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass

from markupsafe import Markup

from setwise.study import Scale

MINUS, TIMES, NOTHING = "\u2212", "\u00d7", "\u2013"
RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
# Of a longer name the page holds this much, also in its tooltip.
LONGEST = 300
# Characters that show nothing but act on what stands around them: controls, line and paragraph
# separators, halves of surrogate pairs, and those that embed, override or isolate directions.
ACTING = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")
# Patterns of targets' names with title, whether the loss is shown, and meaning; what stands for the
# number takes the place of {}.
KNOWN = {
    "hamming": ("Hamming loss", True, "the share of labels that are wrong"),
    "subset": ("Subset accuracy", False, "the share of rows whose label set is exactly right"),
    "jaccard": ("Jaccard", False, "labels both true and predicted, over labels true or predicted"),
    "f1": ("F1", False, "the harmonic mean of a row’s precision and recall"),
    r"f(\d+(?:\.\d+)?)": (
        "F{}",
        False,
        "the weighted harmonic mean of a row’s precision and recall, recall counting {} times",
    ),
    r"precision@(\d+)": ("Precision@{}", False, "the share of the {} predicted that are true"),
    r"recall@(\d+)": (
        "Recall@{}",
        False,
        "the share of a row’s true labels in the {} predicted",
    ),
}
# Of measures of all rows together: what is averaged, and how it is said.
AVERAGED = {
    "jaccard": "Jaccard",
    r"f(\d+(?:\.\d+)?)": "F{}",
    "precision": "precision",
    "recall": "recall",
    "balanced_accuracy": "balanced accuracy",
    "g_mean": "G-mean",
    "hamming": "accuracy",
}
AVERAGES = {
    "macro": "{} of each label over all rows, averaged over labels",
    "micro": "{} of the decisions on all labels in all rows, counted together",
    "weighted": "{} of each label over all rows, averaged with weights by how often it is true",
}
OVER_ROWS = ", averaged over rows"


def share(value: float | None, decimals: int = 3) -> str:
    """A number that is mostly between -1 and 1, such as ``.662``.

    Examples
    --------
    >>> share(0.6618), share(-0.05, 2), share(1.0, 2), share(None)
    ('.662', '−.05', '1.00', '–')
    """
    if value is None or math.isnan(value):
        return NOTHING
    digits = "∞" if math.isinf(value) else f"{abs(value):.{decimals}f}"
    digits = digits.removeprefix("0") if decimals else digits
    return f"{MINUS if value < 0 and digits.strip('.0') else ''}{digits}"


def interval(ends: tuple[float | None, float | None], decimals: int = 3) -> str:
    """``[.641, .683]``, or nothing where there is none."""
    return "" if None in ends else f"[{share(ends[0], decimals)}, {share(ends[1], decimals)}]"


def decimals_for(low: float | None, high: float | None, least: int = 2) -> int:
    """So many that half an interval of that width shows one digit; 3 where there is none.

    Examples
    --------
    >>> decimals_for(0.64, 0.68), decimals_for(0.1501, 0.1513)
    (2, 4)
    """
    if low is None or high is None or not 0.0 < high - low < math.inf:
        return 3
    return min(max(least, -math.floor(math.log10((high - low) / 2.0))), 5)


def small(value: float | None) -> str:
    """A number that may be tiny: ``.034``, ``2.1×10⁻⁵``.

    Examples
    --------
    >>> small(0.0341), small(2.13e-5), small(0.0), small(12.34)
    ('.034', '2.1×10⁻⁵', '0', '12.3')
    """
    if value is None or not math.isfinite(value) or 1e-3 <= abs(value) < 10:
        return share(value)
    if value == 0:
        return "0"
    if 10 <= abs(value) < 1e4:
        return share(value, 1)
    digits, exponent = f"{abs(value):.1e}".split("e")
    return f"{MINUS if value < 0 else ''}{digits}{TIMES}{power_of_ten(int(exponent))}"


def power_of_ten(exponent: int) -> str:
    """``10⁻⁵`` of -5."""
    return f"10{str(exponent).translate(RAISED)}"


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
    hours, minutes = divmod(round(value / 60), 60)
    return f"{count(hours)} h {minutes:02d} min"


def count(value: int) -> str:
    """A whole number with its thousands apart: ``12,345``."""
    return f"{value:,}"


def zero(value: float) -> str:
    """What 0/0 is taken for."""
    return "left out" if math.isnan(value) else f"{value:.0f}"


def percent(part: float) -> str:
    """A share in percent; 100 % is all of it, and 0 % nothing."""
    if part in (0.0, 1.0):
        return f"{100 * part:.0f} %"
    return f"{min(max(100 * part, 0.1), 99.9):.1f} %"


def listed(words: list[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _harmless(text: object) -> str:
    return ACTING.sub(lambda found: f"\\u{ord(found.group()):04x}", str(text))


def prose(text: object) -> str:
    """A text of any length with acting characters written out, in the lines it came in."""
    return "\n".join(map(_harmless, str(text).splitlines()))


def first_sentence(text: str) -> tuple[str, str]:
    """A text's first sentence, and the rest.

    Examples
    --------
    >>> first_sentence("It holds (Koyejo et al., 2015). The regret is at most 0.5 of it.")
    ('It holds (Koyejo et al., 2015).', 'The regret is at most 0.5 of it.')
    """
    end = re.search(r"(?:(?<=\w\w)|(?<=\)))\.\s+(?=[\w(])", text)
    return (text, "") if end is None else (text[: end.start() + 1], text[end.end() :])


def plain(text: object) -> str:
    r"""A name in one line with acting characters written out, such as ``\u202e``, and not too long.

    What is left of right-to-left text (letters and implicit marks) stays within one element.

    Examples
    --------
    >>> plain("a\u202eb")
    'a\\u202eb'
    """
    shown = _harmless(text)
    return clipped(shown, LONGEST) if shown.strip() else f"“{shown}”"


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


def names(texts: list[str]) -> Markup:
    """Names as elements, in a list of words."""
    return Markup(listed([str(name(text)) for text in texts]))


@dataclass(frozen=True)
class Measure:
    """A target as it is shown: its loss, or 1 less the loss where people say it that way.

    Attributes
    ----------
    title, meaning : str
        Its name in the page, and what it is.
    is_loss : bool
        Whether the loss itself is shown, and lower is better.
    scale : Scale or None
        Of a tree distance, what its loss is in units of length.
    """

    title: str
    is_loss: bool
    meaning: str
    scale: Scale | None = None

    @property
    def spoken(self) -> str:
        """The title within a sentence: a capital stays where it is a name."""
        is_word = self.title.startswith(
            ("Subset", "Precision", "Recall", "Tree", "Macro", "Micro", "Weighted")
        )
        return self.title[0].lower() + self.title[1:] if is_word else self.title

    def shown(self, loss: float, whole: float = 1.0) -> float:
        """The loss, or ``whole`` less it; 0 for a difference of losses."""
        return loss if self.is_loss else whole - loss

    def ends(self, low: float | None, high: float | None, whole: float = 1.0):
        """The ends of an interval of the loss, as shown."""
        if low is None or high is None or self.is_loss:
            return low, high
        return whole - high, whole - low


def measure_of(target: str, scale: Scale | None = None) -> Measure:
    """How the target of that name is shown; an unknown one as its loss, a tree distance as such.

    Examples
    --------
    >>> measure_of("f0.5").title, measure_of("macro_f1").title, measure_of("my own").title
    ('F0.5', 'Macro F1', 'my own')
    """
    own_name = clipped(plain(target), 40)
    if scale is not None:
        unnamed = target == "tree" or re.fullmatch(r"TreeDistance over \d+ labels", target)
        whole = (
            f"{scale.whole:,.0f}" if scale.whole == round(scale.whole) else f"{scale.whole:,.4g}"
        )
        meaning = (
            f"the length of the edges on which prediction and truth differ, of the sets as "
            f"predicted, as a share of all {whole} {scale.unit}{OVER_ROWS}"
        )
        return Measure("Tree distance" if unnamed else own_name, True, meaning, scale)
    average, _, of = target.partition("_")
    for pattern, title in AVERAGED.items() if average in AVERAGES else ():
        if found := re.fullmatch(pattern, of):
            title = title.format(*found.groups())
            return Measure(f"{average.title()} {title}", False, AVERAGES[average].format(title))
    plain_name = target.removesuffix("_samples")
    zero = "" if plain_name == target else "; 0 for a row with neither true nor predicted labels"
    for pattern, (title, is_loss, meaning) in KNOWN.items():
        if found := re.fullmatch(pattern, plain_name):
            number, said = "".join(found.groups()), " (samples)" * bool(zero)
            over = "" if plain_name == "subset" else OVER_ROWS
            whole = f"{meaning.format(number)}{over}{zero}"
            return Measure(f"{title.format(number)}{said}", is_loss, whole)
    return Measure(own_name, True, f"a custom loss{OVER_ROWS}")

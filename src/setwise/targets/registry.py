"""Targets by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

from setwise.targets.additive import Hamming, PrecisionAtK, RecallAtK
from setwise.targets.arbitrary import ZeroOne
from setwise.targets.linear_fractional import FBeta, Jaccard
from setwise.targets.names import ALIASES, NEAR, bare, joined
from setwise.targets.population import Macro, Micro, Weighted, population_measure
from setwise.targets.rates import BalancedAccuracy, GMean, Precision, Recall
from setwise.targets.target import MEMBERS, Target

# A name with a number in it is written with a star: "f*" makes "f1", "f2", "f0.5".
TARGETS: dict[str, Callable[..., Target]] = {
    "hamming": Hamming,
    "subset": ZeroOne,
    "jaccard": Jaccard,
    "f*": lambda number: FBeta(float(number)),
    "precision@*": lambda number: PrecisionAtK(_whole("precision", number)),
    "recall@*": lambda number: RecallAtK(_whole("recall", number)),
    # As scikit-learn's scorers, for which a row without true and predicted labels is 0.
    "jaccard_samples": lambda: Jaccard(empty=0.0),
    "f*_samples": lambda number: FBeta(float(number), empty=0.0),
    "precision_samples": Precision,
    "recall_samples": Recall,
    "balanced_accuracy_samples": BalancedAccuracy,
    "g_mean_samples": GMean,
}
# Measures of a population; the question mark stands for what is averaged.
AVERAGES: dict[str, Callable[..., Target]] = {
    "macro_?": Macro,
    "micro_?": Micro,
    "weighted_?": Weighted,
}
# What can be averaged beside targets: of single rows these go by another name.
PARTS = ("precision", "recall", "balanced_accuracy", "g_mean")
AVERAGED = ("f*", "jaccard", "hamming", *PARTS)
# What says in a name that a mean over rows is meant.
OVER_ROWS = re.compile(r"samples?|instances?|examples?", re.IGNORECASE)
# What a star and a question mark in a name stand for.
NUMBER, REST = r"((?:0|[1-9]\d*)(?:\.\d+)?)", r"([^\W_].*)"


def register(name: str, make: Callable[..., Target]) -> None:
    """Make a target known by name; a ``*`` in the name stands for a number handed to ``make``.

    Examples
    --------
    >>> from setwise.targets import FBeta
    >>> register("fish*", lambda beta: FBeta(float(beta)))
    >>> get_target("fish3")
    FBeta(beta=3.0, empty=1.0)
    >>> del TARGETS["fish*"]
    """
    if name in TARGETS:
        raise ValueError(f"there is already a target named {name!r}")
    TARGETS[name] = make


def get_target(target: Any) -> Target:
    """The target of that name, or the object itself if it is one.

    Names are understood as people write them: "F1", "f1_score" and "F1-score" are "f1". The names
    of scikit-learn's scorers are the same numbers as theirs: "accuracy", "f1_samples" (for which a
    row without true and predicted labels is 0, where for "f1" it is 1), "f1_macro",
    "jaccard_micro", "recall_weighted" and so on. One of a measure that is no target is refused with
    what to use in its place.

    Examples
    --------
    >>> get_target("f0.5")
    FBeta(beta=0.5, empty=1.0)
    >>> get_target("Subset accuracy"), get_target("p@5")
    (ZeroOne(), PrecisionAtK(k=5))
    >>> get_target("f1_macro")
    Macro(of=FBeta(beta=1.0, empty=1.0), zero_division=0.0)
    """
    if not isinstance(target, str):
        if all(hasattr(target, name) for name in MEMBERS) and not isinstance(target, type):
            return target
        raise ValueError(
            f"a target is a name such as 'f1' or an object such as FBeta(1.0), not {target!r}"
        )
    known, parts = _found(target)
    if known in TARGETS:
        return TARGETS[known](*parts)
    if known in AVERAGES:
        return AVERAGES[known](_part(target, *parts))
    raise ValueError(f"{target!r} is no target: {NEAR[known].format(*parts)}")


def part_of_average(part: Any) -> Target:
    """What is averaged over a population, by name or as an object."""
    if not isinstance(part, str):
        return get_target(part)
    found = match(part, PARTS)
    return get_target(part if found is None else f"{found[0]}_samples")


def _part(name: str, part: str) -> Target:
    """What is averaged by a name such as "macro_f1"; a sentence for what has no such average."""
    if match(part, AVERAGES) is not None or OVER_ROWS.search(part):
        raise ValueError(f"{name!r} is no target: it names two averages, of which one is enough")
    try:
        found = part_of_average(part)
    except ValueError as error:
        unknown = "no target named" in str(error)
        said = str(error).rpartition("is no target: ")[2]
        raise ValueError(_unknown(name) if unknown else f"{name!r} is no target: {said}") from None
    if population_measure(found, 0.0) is None:
        raise ValueError(
            f"{name!r} is no target: {found} judges a label set as a whole, so it has no average "
            f"over labels or entries; near is {str(found)!r}, the mean over rows"
        )
    return found


def known_name(name: str) -> str:
    """The name by which the registry knows what is meant; a ValueError if it does not.

    Examples
    --------
    >>> known_name("Subset accuracy"), known_name("F1 score"), known_name("TreeDistance")
    ('subset', 'f1', 'tree')
    """
    known, parts = _found(name)
    if known in AVERAGES:
        return str(get_target(name))
    return _filled(known, parts)


def match(name: str, known: Iterable[str]) -> tuple[str, tuple[str, ...]] | None:
    """The one of the known names that is meant, and what its stars and question marks stand for."""
    # Whole names before parts of one, and as it is written before what it could mean.
    known = sorted(known, key=lambda one: "?" in one)
    for asked, own in ((name, str), (joined(name), joined), (bare(name), joined)):
        for one in known:
            pattern = re.escape(own(one)).replace(r"\*", NUMBER).replace(r"\?", REST)
            found = re.fullmatch(pattern, asked)
            if found:
                return one, found.groups()
    return None


def _found(name: str) -> tuple[str, tuple[str, ...]]:
    """The entry of `TARGETS`, `AVERAGES` or `NEAR` that is meant, and what its stars stand for."""
    known = [*TARGETS, *AVERAGES, *NEAR]
    found = match(name, [*known, *ALIASES])
    if found is not None and found[0] not in known:
        alias, parts = found
        found = match(_filled(ALIASES[alias], parts), known)
    if found is None:
        raise ValueError(_unknown(name))
    return found


def _filled(known: str, parts: Iterable[str]) -> str:
    """A known name with its stars replaced by what they stand for."""
    for part in parts:
        known = re.sub(r"[*?]", lambda _, part=part: part, known, count=1)
    return known


def _unknown(name: str) -> str:
    """That there is no such target, which are near in writing, and which there are."""
    # Averages are offered where nothing simpler is near.
    by_writing = _by_writing(name)
    plain = {one: known for one, known in by_writing.items() if not match(one, AVERAGES)}
    for meant in (plain, by_writing):
        close = dict.fromkeys(meant[one] for one in get_close_matches(bare(name), meant))
        if close:
            break
    nearest = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
    plain_names = [one for one in TARGETS if "_samples" not in one]
    known = [one.replace("*", "5" if "@" in one else "1") for one in plain_names]
    averages = [one.replace("?", "f1") for one in AVERAGES]
    return (
        f"there is no target named {name!r}; {nearest}known are {', '.join(known)}, tree, other "
        f"numbers in their place, averages such as {', '.join(averages)}, and scikit-learn's "
        f"scorer names such as f1_samples"
    )


def _by_writing(name: str) -> dict[str, str]:
    """Names that could have been meant, by how they are written; with the number of the name."""
    usual = "5" if "@" in name else "1"
    numbers = re.findall(NUMBER, name.replace(",", "."))
    number = next((one for one in numbers if float(one) > 0.0), usual)
    written = {one: ALIASES.get(one, one) for one in [*ALIASES, *TARGETS] if "?" not in one}
    for average in AVERAGES:
        own = average.removesuffix("_?")
        for part in AVERAGED:
            # The average may stand in front, or behind (where `bare` looks for no wrong letters).
            written[f"{own}_{part}"] = written[f"{part}{own}."] = f"{own}_{part}"
    meant = {}
    for one, known in written.items():
        known, key = _filled(known, [number]), bare(_filled(one, [number])).rstrip(".")
        is_known = match(known, [*TARGETS, *AVERAGES]) is not None
        if is_known and ("@" not in known or number.isdigit()) and "_samples" not in known:
            meant[key] = known
    return meant


def _whole(name: str, number: str) -> int:
    if not number.isdigit() or int(number) < 1:
        raise ValueError(f"{name}@k needs a whole number k of at least 1, not {name}@{number}")
    return int(number)

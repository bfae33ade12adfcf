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
from setwise.targets.target import Target, predicted_size, utility_quotient

# A name with a number in it is written with a star: "f*" makes "f1", "f2", "f0.5".
TARGETS: dict[str, Callable[..., Target]] = {
    "hamming": Hamming,
    "subset": ZeroOne,
    "jaccard": Jaccard,
    "f*": lambda number: FBeta(float(number)),
    "precision@*": lambda number: PrecisionAtK(_whole("precision", number)),
    "recall@*": lambda number: RecallAtK(_whole("recall", number)),
}
# What a star and a question mark in a name stand for.
NUMBER, REST = r"((?:0|[1-9]\d*)(?:\.\d+)?)", r"([^\W_].*)"


def register(name: str, make: Callable[..., Target]) -> None:
    """Make a target known by name; a ``*`` in the name stands for a number handed to ``make``."""
    if name in TARGETS:
        raise ValueError(f"there is already a target named {name!r}")
    TARGETS[name] = make


def get_target(target: Any) -> Target:
    """The target of that name, or the object itself if it is one.

    Names are understood as people write them: "F1", "f1_samples" and "F1-score" are "f1". One of a
    measure that is no target is refused with what to use in its place.

    Examples
    --------
    >>> get_target("f0.5")
    FBeta(beta=0.5, empty=1.0)
    >>> get_target("Subset accuracy"), get_target("p@5")
    (ZeroOne(), PrecisionAtK(k=5))
    """
    if not isinstance(target, str):
        if isinstance(target, Target) and not isinstance(target, type):
            return target
        raise ValueError(
            f"a target is a name such as 'f1' or an object such as FBeta(1.0), not {target!r}"
        )
    known, parts = _found(target)
    if known in TARGETS:
        return TARGETS[known](*parts)
    said = NEAR[known]
    for part in parts:
        said = _of_average(target, part, said)
    raise ValueError(f"{target!r} is no target: {said}")


def _of_average(name: str, part: str, said: str) -> str:
    """What is said of a name that asks for the average of a part of it, such as "macro_f1"."""
    try:
        known, parts = _found(part)
    except ValueError:
        raise ValueError(_unknown(name)) from None
    own = _filled(known, parts)
    if known in TARGETS:
        judged = TARGETS[known](*parts)
        is_of_counts = utility_quotient(judged) is not None and predicted_size(judged) is None
    else:
        is_of_counts = known == "balanced_accuracy"
    if is_of_counts:
        return said.format(own)
    if known in NEAR:
        return NEAR[known].format(*parts)
    return (
        f"{own} judges a label set as a whole, so it has no average over labels or entries; near "
        f"is {own!r}, the mean over rows"
    )


def known_name(name: str) -> str:
    """The name by which the registry knows what is meant; a ValueError if it does not.

    Examples
    --------
    >>> known_name("Subset accuracy"), known_name("F1 score"), known_name("TreeDistance")
    ('subset', 'f1', 'tree')
    """
    known, parts = _found(name)
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
    """The entry of `TARGETS` or `NEAR` that is meant, with what its stars stand for."""
    found = match(name, [*TARGETS, *ALIASES, *NEAR])
    if found is not None and found[0] not in (*TARGETS, *NEAR):
        alias, parts = found
        found = match(_filled(ALIASES[alias], parts), [*TARGETS, *NEAR])
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
    usual = "1" if name[:1] in ("f", "F") else "5"
    numbers = re.findall(NUMBER, name.replace(",", "."))
    number = next((one for one in numbers if float(one) > 0.0), usual)
    written = {one: ALIASES.get(one, one) for one in [*TARGETS, *ALIASES] if "?" not in one}
    meant = {
        bare(_filled(one, [number])): _filled(known, [number])
        for one, known in written.items()
        if match(_filled(known, [number]), TARGETS) and ("@" not in known or number.isdigit())
    }
    close = dict.fromkeys(meant[one] for one in get_close_matches(bare(name), meant))
    nearest = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
    known = ", ".join(one.replace("*", "NUMBER") for one in [*TARGETS, "tree"])
    return f"there is no target named {name!r}; {nearest}known are {known}"


def _whole(name: str, number: str) -> int:
    if not number.isdigit() or int(number) < 1:
        raise ValueError(f"{name}@k needs a whole number k of at least 1, not {name}@{number}")
    return int(number)

"""Targets by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from setwise.targets.additive import Hamming, PrecisionAtK, RecallAtK
from setwise.targets.arbitrary import ZeroOne
from setwise.targets.linear_fractional import FBeta, Jaccard
from setwise.targets.target import Target

# A name with a number in it is written with a star: "f*" makes "f1", "f2", "f0.5".
TARGETS: dict[str, Callable[..., Target]] = {
    "hamming": Hamming,
    "subset": ZeroOne,
    "jaccard": Jaccard,
    "f*": lambda number: FBeta(float(number)),
    "precision@*": lambda number: PrecisionAtK(_whole("precision", number)),
    "recall@*": lambda number: RecallAtK(_whole("recall", number)),
}


def register(name: str, make: Callable[..., Target]) -> None:
    """Make a target known by name; a ``*`` in the name stands for a number handed to ``make``."""
    if name in TARGETS:
        raise ValueError(f"there is already a target named {name!r}")
    TARGETS[name] = make


def get_target(target: Any) -> Target:
    """The target of that name, or the object itself if it is one.

    Examples
    --------
    >>> get_target("f0.5")
    FBeta(beta=0.5, empty=1.0)
    """
    if not isinstance(target, str):
        if isinstance(target, Target) and not isinstance(target, type):
            return target
        raise ValueError(
            f"a target is a name such as 'f1' or an object such as FBeta(1.0), not {target!r}"
        )
    found = _found(target)
    if found is None:
        known = ", ".join(repr(name.replace("*", "NUMBER")) for name in TARGETS)
        raise ValueError(
            f"there is no target named {target!r}; known are {known}, or pass an object"
        )
    make, numbers = found
    return make(*numbers)


def is_named(name: str) -> bool:
    """Whether there is a target of that name; its number may still be refused."""
    return _found(name) is not None


def _found(name: str) -> tuple[Callable[..., Target], tuple[str, ...]] | None:
    """What makes the target of that name, and the numbers in the name."""
    for known, make in TARGETS.items():
        pattern = re.escape(known).replace(r"\*", r"(\d+(?:\.\d+)?)")
        found = re.fullmatch(pattern, name)
        if found:
            return make, found.groups()
    return None


def _whole(name: str, number: str) -> int:
    if not number.isdigit() or int(number) < 1:
        raise ValueError(f"{name}@k needs a whole number k of at least 1, not {name}@{number}")
    return int(number)

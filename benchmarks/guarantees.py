"""Every target, surrogate, small space and kind of scores, certified: the rows of the table.

`python -m benchmarks guarantees` writes them, docs/guarantees.md from them, and its pictures. A row
is a verdict as plain values, with the names of its cell and the time it took. What a theorem says
is not written out in each of its rows: its letter tells.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cache
from typing import Any

from benchmarks.rows import machine
from setwise.consistency.certify import certify
from setwise.consistency.conditional import KINDS, Kind
from setwise.consistency.naming import named_space
from setwise.consistency.verdicts import Verdict
from setwise.spaces import Catalog, Space
from setwise.surrogates.names import SURROGATES
from setwise.targets import TreeDistance, get_target
from setwise.targets.target import Target

LISTED = [
    [0, 0, 0, 1], [0, 1, 1, 0], [1, 0, 0, 0], [1, 0, 0, 1], [1, 0, 1, 0], [1, 1, 1, 0],
    [1, 1, 1, 1],
]  # fmt: skip
TARGETS = ("hamming", "f1", "f2", "jaccard", "subset")
MORE_TARGETS = {"slice": ("precision@2", "recall@2"), "closed": ("tree",), "paths": ("tree",)}

# What follows from the letter of a theorem, and from the cell.
FOLLOWS = {"statement", "source", "proof", "question"}
# The names of a cell: space, kind of scores, target, surrogate.
Cell = tuple[str, Kind, str, str]


@cache
def spaces() -> dict[str, tuple[Space, str]]:
    """The small spaces by their names, each with what it is in words.

    Not made at import: some count their sets by a kernel, which may have to be compiled.
    """
    return {
        "cube": (named_space("cube", 3), "all sets of three labels"),
        "slice": (named_space("slice", 4), "the sets of two of four labels"),
        "sized": (named_space("sized", 3), "three labels, the empty and the full set raised by 1"),
        "chain": (named_space("chain", 3), "three labels, neighbours raised by 1 where they agree"),
        "closed": (named_space("closed", 3), "label 0 over labels 1 and 2, sets closed upwards"),
        "paths": (named_space("paths", 5, [-1, 0, 0, 1, 1]), "paths of a taxonomy of five nodes"),
        "list": (Catalog(LISTED), "seven listed sets of four labels"),
    }


def cells() -> Iterator[tuple[Cell, Target, Space]]:
    """Every combination, its target and its space; what cannot be combined is left out."""
    for name, (space, _) in spaces().items():
        for kind in KINDS:
            for target in (*TARGETS, *MORE_TARGETS.get(name, ())):
                for surrogate in SURROGATES:
                    if kind == "joint" and surrogate == "binary_relevance":
                        continue
                    yield (name, kind, target, surrogate), _target(target, space), space


def guarantees() -> Iterator[dict[str, Any]]:
    """A row for each cell."""
    for cell, target, space in cells():
        _, kind, _, surrogate = cell
        began = time.perf_counter()
        verdict = certify(target, surrogate, space, kind)
        seconds = {"seconds": time.perf_counter() - began}
        yield {"cell": list(cell)} | _plain(verdict) | seconds | machine()


def _plain(verdict: Verdict) -> dict[str, Any]:
    values = {name: v for name, v in verdict.to_dict().items() if name not in FOLLOWS}
    if values.get("gamma") is not None:
        values["gamma"] = {n: v for n, v in values["gamma"].items() if n != "assumptions"}
    return values


def _target(name: str, space: Space) -> Target:
    """The target of that name, tree distance with the taxonomy of the space."""
    return TreeDistance(space.parents) if name == "tree" else get_target(name)  # type: ignore

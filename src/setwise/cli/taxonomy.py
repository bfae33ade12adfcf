"""A taxonomy over labels as the command line names it: a file, or what parts path names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from setwise.taxonomy import Taxonomy

FILE_HELP = (
    "A hierarchy over the labels, which are found by name: a text file with lines of parent, child "
    "and perhaps length, or of path names such as a/b/c."
)
PATH_HELP = (
    "Instead: labels are path names, and this parts them, such as / in Home/Garden/Hoses; what "
    "stands above a label is a label too."
)
NEEDED = "--taxonomy FILE names one, or --path-separator / where labels are path names such as a/b"


def taxonomy_over(
    names: Sequence[str], file: Path | None, separator: str | None, where: str
) -> Taxonomy | None:
    """The taxonomy that has these labels, or None if none is asked for."""
    from setwise.datasets.files import existing
    from setwise.taxonomy import Taxonomy

    if file is not None and separator is not None:
        raise ValueError("--taxonomy and --path-separator exclude each other")
    if file is not None:
        return Taxonomy.read(existing(file))
    if separator is None:
        return None
    if not any(separator in name for name in names):
        raise ValueError(
            f"--path-separator parts path names, but {separator!r} is in no label of {where}, such "
            f"as {names[0]!r}"
        )
    found = Taxonomy.from_paths(names, separator, missing="add")
    return found.over(_from_above(names, separator))


def _from_above(names: Sequence[str], separator: str) -> list[str]:
    """The names with all above them, each after what stands above it."""
    found: dict[str, None] = {}
    for name in names:
        parts = name.split(separator)
        found.update(dict.fromkeys(separator.join(parts[:n]) for n in range(1, len(parts) + 1)))
    return list(found)

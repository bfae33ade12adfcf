"""How the commands read data files, and what they are asked to judge them by."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import accumulate, chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from setwise.cli.options import concerning, names, say_unseen
from setwise.spelling import argument, some

if TYPE_CHECKING:
    from setwise.datasets import Dataset
    from setwise.targets import Target
    from setwise.taxonomy import Taxonomy

NEEDED = "--taxonomy FILE names one, or --path-separator / where labels are path names such as a/b"
# Fields of `Reading` that `setwise.datasets.read` does not take, or not in the same way.
OUTSIDE = ("format", "taxonomy", "path_separator", "close", "unseen_labels")
# In fewer rows, numbers that only rise or only fall may do so by chance.
LEAST_NUMBERED = 10


@dataclass(frozen=True)
class Reading:
    """How a file is read: options of `setwise.datasets.read` under the same names, a hierarchy.

    None where nothing is said.
    """

    labels: str | None = None
    label_prefix: str | None = None
    label_column: str | None = None
    separator: str | None = None
    text_columns: str | None = None
    categorical: str | None = None
    drop: str | None = None
    delimiter: str | None = None
    encoding: str | None = None
    unknown_labels: Literal["refuse", "leave_out"] | None = None
    unseen_categories: Literal["refuse", "zeros"] | None = None
    unseen_labels: Literal["refuse", "missed"] | None = None
    xml: Path | None = None
    format: str | None = None
    taxonomy: Path | None = None
    path_separator: str | None = None
    close: bool = False

    @property
    def options(self) -> dict[str, Any]:
        """What was said, as the readers take it."""
        given = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name not in OUTSIDE
        }
        given["text"] = given.pop("text_columns")
        given = {name: value for name, value in given.items() if value is not None}
        for name in ("labels", "text", "categorical", "drop"):
            if name in given and (name, given[name]) != ("categorical", "auto"):
                # (--drop '' is the column without a name.)
                given[name] = names(given[name]) or [""]
        if self.labels is not None and self.labels.removeprefix("-").isdecimal():
            given["labels"] = int(self.labels)
        if self.delimiter in ("tab", "\\t"):
            given["delimiter"] = "\t"
        return given

    def read(self, path: Path, test: Path | None = None) -> Dataset:
        """The file, and the rows to test on if they are in another."""
        from setwise.datasets import read
        from setwise.datasets.reading import with_test

        if test is None and self.unseen_labels is not None:
            raise ValueError("--unseen-labels is for labels that only a second file has (--test)")
        data = read(path, format=self.format, **self.options)
        _warn_of_row_numbers(data)
        data = self.placed(data)
        data = data if test is None else with_test(data, test, self.unseen_labels)
        say_unseen(data.unseen)
        return data

    def placed(self, data: Dataset) -> Dataset:
        """The data with the labels of the taxonomy that was asked for, closed if it was."""
        taxonomy = self.over(data.label_names.tolist(), data.name)
        if taxonomy is None and not self.close:
            return data
        if taxonomy is None and data.hierarchy is None:
            raise ValueError(
                f"--close adds what stands above labels, but {data.name} has no hierarchy; {NEEDED}"
            )
        with concerning("with --close" if self.close else "without --close"):
            return data.under(data.taxonomy if taxonomy is None else taxonomy, self.close)

    def over(self, labels: Sequence[str], where: str) -> Taxonomy | None:
        """The taxonomy that has these labels, or None if none is asked for."""
        from setwise.taxonomy import Taxonomy

        mark = self.path_separator
        if self.taxonomy is not None and mark is not None:
            raise ValueError("--taxonomy and --path-separator exclude each other")
        if self.taxonomy is not None:
            return Taxonomy.read(self.taxonomy)
        if mark is None:
            return None
        if not any(mark in label for label in labels):
            raise ValueError(
                f"--path-separator parts path names, but {mark!r} is in no label of {where}, such "
                f"as {labels[0]!r}"
            )
        above = (accumulate(label.split(mark), f"{{}}{mark}{{}}".format) for label in labels)
        return Taxonomy.from_paths(list(dict.fromkeys(chain.from_iterable(above))), mark)


def _warn_of_row_numbers(data: Dataset) -> None:
    """Warn of features of a table that seem to number its rows; other formats drop no columns."""
    import numpy as np
    from scipy.sparse import issparse

    from setwise.datasets.columns import Number
    from setwise.datasets.table_schema import TableSchema

    if not isinstance(data.schema, TableSchema) or data.n_rows < LEAST_NUMBERED:
        return
    coded = data.schema.features.coded
    numbers = [name for name, kind in coded.items() if isinstance(kind, Number)]
    places = np.flatnonzero(np.isin(data.feature_names, numbers))
    # (One column at a time: a table may be large.)
    columns = (data.X[:, [place]].toarray().ravel() for place in places)
    columns = columns if issparse(data.X) else (data.X[:, place] for place in places)
    found = [
        str(data.feature_names[place])
        for place, column in zip(places, columns, strict=True)
        if _numbers_rows(column)
    ]
    if found:
        warnings.warn(
            f"{'columns' if found[1:] else 'column'} {some(found)}: whole numbers that only rise "
            f"or only fall from row to row are used as a feature, but may be row numbers or ids, "
            f"which mean nothing for new rows; to leave them out: {argument('drop', found)}",
            stacklevel=2,
        )


def _numbers_rows(column: Any) -> bool:
    """Whether a feature is whole numbers that rise, or fall, at each row; none may be missing."""
    import numpy as np

    steps = np.diff(column)
    return bool(((steps > 0).all() or (steps < 0).all()) and (column == np.floor(column)).all())


def refuse_unknown(*targets: str) -> None:
    """Raise for a name that is no target's, before anything is read."""
    from setwise.targets.registry import known_name

    for name in targets:
        if known_name(name) != "tree":
            target_for(name)


def target_for(name: str, data: Any = None) -> Target:
    """A target by name; "tree" is the distance in the hierarchy of the data."""
    from setwise.targets import TreeDistance, get_target
    from setwise.targets.registry import known_name

    if data is not None and known_name(name) == "tree":
        if data.hierarchy is None:
            raise ValueError(f"{data.name} has no hierarchy, which the target tree needs; {NEEDED}")
        return TreeDistance(data.taxonomy)
    return get_target(name)


@dataclass(frozen=True)
class Decoding:
    """How probabilities are to become label sets: by which decoder, with how many labels a row."""

    decoder: str = "auto"
    budget: int | None = None
    at_most: int | None = None

    def asked(self, target: Any) -> Any:
        """What label sets of the target are decided by: a name, or a rule with a budget."""
        from setwise.decoders import PopulationRule
        from setwise.targets.target import judges_all_rows

        if self.budget is None and self.at_most is None:
            return self.decoder
        if not judges_all_rows(target):
            raise ValueError(
                f"--budget and --at-most are for measures of all rows together, such as macro_f1, "
                f"but the target is {target}; precision@3 and recall@3 ask for 3 labels a row"
            )
        rule: Any = self.decoder
        return PopulationRule(target, rule, self.budget, self.at_most)


def held_out(data: Dataset, share: float | None, seed: int) -> Dataset:
    """The data with a random share of the rows to test on, if asked for."""
    if share is None:
        return data
    if not 0.0 < share < 1.0:
        raise ValueError(f"--test-share must be between 0 and 1, such as 0.3, but it is {share}")
    if data.split is not None:
        raise ValueError(
            f"{data.name} has a test part already: --test-share is for a file without one"
        )
    return data.split_off(seed=seed, train=1.0 - share)

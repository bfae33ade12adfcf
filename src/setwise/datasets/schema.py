"""How a file was read, and how others are read into the same columns."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import update_wrapper
from pathlib import Path
from typing import Any, Generic, NamedTuple, ParamSpec

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from setwise.datasets.columns import Labels
from setwise.datasets.dataset import Dataset
from setwise.datasets.unseen import CATEGORIES, LABELS, Unseen, unseen_hint
from setwise.files import DataError, File, Place, existing, named, plain_name
from setwise.validation import require_one_of, whole_number

# Rows that are read at once where nobody says how many.
BLOCK_ROWS = 2**16
# So many numbers or cells of a first file are kept while it is looked through.
MOST_KEPT = 2**25


class Rows(NamedTuple):
    """Some rows: features, label sets, label sets as written in a hierarchy, and what is new."""

    X: Any
    Y: Any = None
    specific: Any = None
    unseen: Unseen = Unseen()


class Again:
    """Parts that can be iterated several times: kept in memory while small, else read again.

    ``size`` counts the numbers or cells of a part.
    """

    def __init__(self, make: Callable[[], Iterator[Any]], size: Callable[[Any], int]):
        self.make, self.size = make, size
        self.kept: list[Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        if self.kept is not None:
            yield from self.kept
            return
        kept, left = [], MOST_KEPT
        for part in self.make():
            left -= self.size(part)
            if left >= 0:
                kept.append(part)
            else:
                kept.clear()
            yield part
        self.kept = kept if left >= 0 else None

    def once_more(self) -> Iterator[Any]:
        """Iterate for the last time: what is kept leaves memory as it is handed out."""
        if self.kept is None:
            return self.make()
        parts, self.kept = self.kept, None
        return (parts.pop(0) for _ in range(len(parts)))


class First(NamedTuple):
    """A first file as read: its schema, its rows, and further arguments of its `Dataset`."""

    schema: Any
    parts: Callable[[], Iterable[Rows]]
    more: dict[str, Any]


Options = ParamSpec("Options")


class Reader(Generic[Options]):
    """Reads a first file: as a data set, or as what it is made from (``first``)."""

    def __init__(self, first: Callable[Options, First]):
        self.first = first
        update_wrapper(self, first)

    def __call__(self, *given: Options.args, **options: Options.kwargs) -> Dataset:
        path: Any = given[0]
        with named(path):
            first = self.first(*given, **options)
            return first.schema.gathered(first.parts(), path, **first.more)


class Schema(ABC):
    r"""Reads files into the columns of the first: same features, same labels.

    `setwise.save` keeps one beside a model, so that predictions for a new file see the columns the
    model was fitted on.

    Attributes
    ----------
    format : str
        The format of its files.
    feature_names : array of str, or None
        The features, where they have names.
    label_names : array of str
        The labels.

    Examples
    --------
    >>> import tempfile
    >>> from setwise.datasets import read
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (first := Path(folder, "a.csv")).write_text("tempo,moods\n1.2,calm;sad\n0.7,glad\n")
    ...     _ = (second := Path(folder, "b.csv")).write_text("tempo,moods\n0.3,sad\n")
    ...     schema = read(first, label_column="moods", separator=";").schema
    ...     print(schema.read(second).Y.toarray())
    [[0 0 1]]
    """

    format: Any
    label_names: Any
    feature_names: Any = None
    hierarchy: Any = None
    edge_lengths: Any = None

    @abstractmethod
    def parts(self, path: Path, labels: bool, rows: int) -> Iterator[Rows]:
        """The rows of a file, at most so many at a time."""

    def read(
        self,
        path: File,
        *,
        labels: bool = True,
        unseen_categories: str | None = None,
        unseen_labels: str | None = None,
    ) -> Dataset:
        """A file as a data set; ``unseen`` of it says what the first file had not.

        Parameters
        ----------
        path : path
            What to read.
        labels : bool, default True
            Without them, labels may be absent, and Y is None.
        unseen_categories : {"refuse", "zeros"}, optional
            What a category means that the first file had not: an error, or 0 in all features of
            its column. By default as the first file was read, which refuses unless it was told.
        unseen_labels : {"refuse", "missed"}, optional
            What a true label means that the first file had not. "missed": it gets a column of Y of
            its own, behind all others, so that a prediction, which cannot have it, misses it.
        """
        with named(path):
            schema = self.reading(unseen_categories, unseen_labels)
            return schema.whole(existing(path), labels)

    def chunks(
        self,
        path: File,
        rows: int = 10_000,
        *,
        labels: bool = False,
        unseen_categories: str | None = None,
    ) -> Iterator[Dataset]:
        """A file in parts of at most ``rows`` rows, for files larger than memory."""
        with named(path):
            schema = self.reading(unseen_categories, None)
            for part in schema.parts(existing(path), labels, whole_number(rows, "rows", 1)):
                if part.X.shape[0]:
                    yield schema.dataset(part, path)

    def reading(self, unseen_categories: str | None, unseen_labels: str | None) -> Schema:
        """This schema with other rules for what is new; of None its own."""
        require_one_of(unseen_categories or "refuse", CATEGORIES, "unseen_categories")
        require_one_of(unseen_labels or "refuse", LABELS, "unseen_labels")
        return self

    def texts(self, path: File, columns: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """The cells of some columns of a file as they are written, a tuple for each row."""
        raise ValueError(
            f"the format {self.format!r} has no columns with names, and so none to keep: "
            f"{', '.join(columns)}"
        )

    def whole(self, path: Path, labels: bool) -> Dataset:
        """All rows of a file that is there."""
        return self.gathered(self.parts(path, labels, BLOCK_ROWS), path)

    def gathered(self, parts: Iterable[Rows], path: File, **more: Any) -> Dataset:
        """All parts of a file as one data set."""
        *columns, unseen = [list(c) for c in zip(*parts, strict=True)] or [[]]
        if not columns:
            raise DataError(path, None, "no rows")
        X, Y, specific = map(stacked, columns)
        return self.dataset(Rows(X, Y, specific, sum(unseen, Unseen())), path, **more)

    def dataset(self, rows: Rows, path: File, **more: Any) -> Dataset:
        """A data set of some rows; by default its name is that of the file without suffixes."""
        title = os.path.splitext(plain_name(path))[0] or plain_name(path)
        known: dict[str, Any] = {"name": title} | {n: value for n, value in more.items() if value}
        return Dataset(
            rows.X,
            rows.Y,
            self.feature_names,
            self.label_names,
            hierarchy=self.hierarchy,
            edge_lengths=self.edge_lengths,
            Y_specific=rows.specific,
            schema=self,
            source=os.fspath(path),
            unseen=rows.unseen,
            **known,
        )


def with_new_labels(data: Dataset, n_new: int) -> Dataset:
    """The data set, which says of its last labels that they are new."""
    if n_new == 0:
        return data
    times = np.asarray(data.Y[:, -n_new:].sum(axis=0, dtype=np.int64)).ravel().tolist()
    found = Counter(dict(zip(data.label_names[-n_new:].tolist(), times, strict=True)))
    return replace(data, unseen=data.unseen + Unseen(labels=found))


def stacked(parts: list[Any]) -> Any:
    """Matrices one below the other; CSR if any is."""
    if parts[0] is None or len(parts) == 1:
        return parts[0]
    if any(map(issparse, parts)):
        return csr_array(vstack([csr_array(part) for part in parts], format="csr"))
    return np.concatenate(parts)


class Raw(NamedTuple):
    """Rows before they become features and label sets: codes, texts by column, label cells, place.

    ``codes`` are (n, number of coded columns), dense or CSR; ``cells`` what `Labels` takes, or None
    if labels are not read; ``unseen`` has the new categories that are read as zeros.
    """

    codes: Any
    texts: dict[str, list[str]]
    cells: Any
    place: Place
    unseen: Unseen = Unseen()


@dataclass(frozen=True, eq=False)
class ColumnSchema(Schema):
    """A schema whose columns are found by their names, or numbers; others are not looked at.

    Parameters
    ----------
    features : Features or Indexed
        Which columns are features, and how.
    labels : Labels
        Which are labels.
    unknown_labels : {"refuse", "leave_out"}
        What is done with a row that has an unknown label ('?').
    encoding : str
        Of names and text.
    max_bytes : int, optional
        How much a compressed file may unfold to.
    unseen_labels : {"refuse", "missed"}
        What a label means that is not among ``labels``, in the column that lists them.
    """

    features: Any
    labels: Labels
    unknown_labels: str = "refuse"
    encoding: str = "utf-8"
    max_bytes: int | None = None
    unseen_labels: str = "refuse"

    def __post_init__(self):
        require_one_of(self.unknown_labels, ("refuse", "leave_out"), "unknown_labels")

    @property
    def feature_names(self) -> Any:
        return self.features.names

    @property
    def label_names(self) -> Any:
        return self.labels.names

    @property
    def hierarchy(self) -> Any:
        return self.labels.edges

    @abstractmethod
    def raws(self, path: Path, labels: bool, rows: int) -> Iterator[Raw]:
        """The rows of a file as `Raw`, at most so many at a time."""

    def reading(self, unseen_categories: str | None, unseen_labels: str | None) -> Schema:
        super().reading(unseen_categories, unseen_labels)
        changed: dict[str, Any] = {}
        if unseen_categories is not None:
            changed["features"] = self.features.reading(unseen_categories)
        if unseen_labels is not None:
            changed["unseen_labels"] = unseen_labels
        return replace(self, **changed) if changed else self

    def whole(self, path: Path, labels: bool) -> Dataset:
        if not labels or self.unseen_labels == "refuse":
            return super().whole(path, labels)
        # Which labels there are is known once all rows are read.
        raws = list(self.raws(path, True, BLOCK_ROWS))
        new = set[str]().union(*(self.labels.new(raw.cells, raw.place) for raw in raws))
        wider = replace(self.labels, names=[*self.labels.names.tolist(), *sorted(new)])
        schema = replace(self, labels=wider, unseen_labels="refuse")
        return with_new_labels(schema.gathered(map(schema.rows, raws), path), len(new))

    def parts(self, path: Path, labels: bool, rows: int) -> Iterator[Rows]:
        return (self.rows(raw, unseen_hint()) for raw in self.raws(path, labels, rows))

    def rows(self, raw: Raw, hint: str = "") -> Rows:
        """Features and label sets of some rows; ``hint`` is said of a label that is not known."""
        X = self.features.assemble(raw.codes, raw.texts)
        if raw.cells is None:
            return Rows(X, unseen=raw.unseen)
        made = self.labels.sets(raw.cells, raw.place, self.unknown_labels, hint)
        X = X if made.known.all() else X[made.known]
        return Rows(X, made.Y, made.specific, raw.unseen)

    def first(self, make: Callable[[], Iterator[Raw]], **more: Any) -> First:
        """The first file, whose texts say which terms there are."""
        schema, raws = self, Again(make, lambda raw: sum(map(len, raw.texts.values())))
        if self.features.texts:
            texts = {n: (t for raw in raws for t in raw.texts[n]) for n in self.features.texts}
            schema = replace(self, features=self.features.fitted(texts))
        return First(schema, lambda: map(schema.rows, raws.once_more()), more)

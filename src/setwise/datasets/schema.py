"""How a file was read, and how others are read into the same columns."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from setwise.datasets.columns import Features, Labels
from setwise.datasets.dataset import Dataset
from setwise.files import DataError, File, Place, existing, named, plain_name
from setwise.validation import require_one_of, whole_number

# Rows that are read at once where nobody says how many.
BLOCK_ROWS = 2**16


class Rows(NamedTuple):
    """Some rows of a file: features, label sets, and label sets as written in a hierarchy."""

    X: Any
    Y: Any = None
    specific: Any = None


class Schema(ABC):
    """Reads files into the columns of the first: same features, same labels.

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
    """

    format: Any
    label_names: Any
    feature_names: Any = None
    hierarchy: Any = None
    edge_lengths: Any = None

    @abstractmethod
    def parts(self, path: Path, labels: bool, rows: int) -> Iterator[Rows]:
        """The rows of a file, at most so many at a time."""

    def read(self, path: File, *, labels: bool = True) -> Dataset:
        """A file as a data set; without ``labels`` they may be absent, and Y is None."""
        with named(path):
            return self.gathered(self.parts(existing(path), labels, BLOCK_ROWS), path)

    def chunks(self, path: File, rows: int = 10_000, *, labels: bool = False) -> Iterator[Dataset]:
        """A file in parts of at most ``rows`` rows, for files larger than memory."""
        with named(path):
            for part in self.parts(existing(path), labels, whole_number(rows, "rows", 1)):
                if part.X.shape[0]:
                    yield self.dataset(part, path)

    def gathered(self, parts: Iterable[Rows], path: File, **more: Any) -> Dataset:
        """All parts of a file as one data set."""
        columns = [list(column) for column in zip(*parts, strict=True)]
        if not columns:
            raise DataError(path, None, "no rows")
        return self.dataset(Rows(*map(stacked, columns)), path, **more)

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
            **known,
        )


def stacked(parts: list[Any]) -> Any:
    """Matrices one below the other; CSR if any is."""
    if parts[0] is None or len(parts) == 1:
        return parts[0]
    if any(map(issparse, parts)):
        return csr_array(vstack([csr_array(part) for part in parts], format="csr"))
    return np.concatenate(parts)


class Raw(NamedTuple):
    """Some rows on their way: codes of the features, texts by column, label cells, their place.

    ``codes`` are (n, number of coded columns), dense or CSR; ``cells`` what `Labels` takes, or None
    if labels are not read.
    """

    codes: Any
    texts: dict[str, list[str]]
    cells: Any
    place: Place


@dataclass(frozen=True, eq=False)
class NamedColumns(Schema):
    """A schema whose columns have names: they are found by them, and others are not looked at.

    Parameters
    ----------
    features : Features
        Which columns are features, and how.
    labels : Labels
        Which are labels.
    unknown_labels : {"refuse", "leave_out"}
        What is done with a row that has an unknown label ('?').
    encoding : str
        Of names and text.
    max_bytes : int, optional
        How much a compressed file may unfold to.
    """

    features: Features
    labels: Labels
    unknown_labels: str = "refuse"
    encoding: str = "utf-8"
    max_bytes: int | None = None

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
        """The rows of a file on their way, at most so many at a time."""

    def parts(self, path: Path, labels: bool, rows: int) -> Iterator[Rows]:
        return map(self.rows, self.raws(path, labels, rows))

    def rows(self, raw: Raw) -> Rows:
        """Features and label sets of some rows."""
        X = self.features.assemble(raw.codes, raw.texts)
        if raw.cells is None:
            return Rows(X)
        made = self.labels.sets(raw.cells, raw.place, self.unknown_labels)
        return Rows(X if made.known.all() else X[made.known], made.Y, made.specific)

    def first(self, raws: Iterable[Raw], path: File, **more: Any) -> Dataset:
        """The data set of a first file, whose texts say which terms there are."""
        schema = self
        if self.features.texts:
            raws = list(raws)
            texts = {n: [t for raw in raws for t in raw.texts[n]] for n in self.features.texts}
            schema = replace(self, features=self.features.fitted(texts))
        return schema.gathered(map(schema.rows, raws), path, **more)

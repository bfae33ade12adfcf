"""Schemas of files that are read block by block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from setwise.datasets.dataset import Dataset
from setwise.datasets.features import Features
from setwise.datasets.label_source import LabelSource, check_unknown
from setwise.datasets.schema import File, Rows, dataset_of, existing, gathered, named
from setwise.validation import whole_number

# Rows that are read at once where nobody says how many.
BLOCK_ROWS = 4096


class Streamed(ABC):
    """A `Schema` whose files come in blocks of rows, by ``parts``."""

    @abstractmethod
    def parts(self, path: Path, labels: bool, rows: int) -> Iterator[Rows]:
        """The rows of a file, at most so many at a time."""

    def read(self, path: File, *, labels: bool = True) -> Dataset:
        """A file as a data set; without ``labels`` they may be absent or '?', and Y is None."""
        with named(path):
            return gathered(self, self.parts(existing(path), labels, BLOCK_ROWS), path)

    def chunks(self, path: File, rows: int = 10_000, *, labels: bool = False) -> Iterator[Dataset]:
        """A file in parts of at most ``rows`` rows."""
        with named(path):
            for part in self.parts(existing(path), labels, whole_number(rows, "rows", 1)):
                if part.X.shape[0]:
                    yield dataset_of(self, part, path)


@dataclass(frozen=True, eq=False)
class NamedColumns(Streamed):
    """A schema whose columns have names: they are found by them, and others are not looked at.

    Parameters
    ----------
    features : Features
        Which columns are features, and how.
    labels : LabelColumns or LabelList
        Which are labels.
    unknown_labels : {"refuse", "leave_out"}
        What is done with a row that has an unknown label ('?').
    """

    features: Features
    labels: LabelSource
    unknown_labels: str = "refuse"

    def __post_init__(self):
        check_unknown(self.unknown_labels)

    @property
    def feature_names(self) -> Any:
        """The name of each feature."""
        return self.features.names

    @property
    def label_names(self) -> Any:
        """The name of each label."""
        return self.labels.names

    @property
    def hierarchy(self) -> Any:
        """Edges [parent, child] of labels, or None."""
        return self.labels.edges

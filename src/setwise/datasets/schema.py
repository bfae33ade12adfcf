"""How a file was read, and how others are read into the same columns."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from setwise.datasets.data_error import DataError, refuse
from setwise.datasets.dataset import Dataset
from setwise.datasets.lines import plain_name

File = str | os.PathLike[str]


class Schema(Protocol):
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

    @property
    def format(self) -> str: ...
    @property
    def feature_names(self) -> Any: ...
    @property
    def label_names(self) -> Any: ...

    def read(self, path: File, *, labels: bool = True) -> Dataset:
        """A file as a data set; without ``labels`` they may be absent, and Y is None."""
        ...

    def chunks(self, path: File, rows: int = 10_000, *, labels: bool = False) -> Iterator[Dataset]:
        """A file in parts of at most ``rows`` rows, for files larger than memory."""
        ...


class Rows(NamedTuple):
    """Some rows of a file: features, label sets, and label sets as written in a hierarchy."""

    X: Any
    Y: Any = None
    specific: Any = None


def title_of(path: File) -> str:
    """What a data set is called: its file's name without suffixes."""
    return os.path.splitext(plain_name(path))[0] or plain_name(path)


def dataset_of(schema: Any, rows: Rows, path: File, **more: Any) -> Dataset:
    """A data set of some rows."""
    more.setdefault("name", title_of(path))
    return Dataset(
        rows.X,
        rows.Y,
        schema.feature_names,
        schema.label_names,
        hierarchy=getattr(schema, "hierarchy", None),
        edge_lengths=getattr(schema, "edge_lengths", None),
        Y_specific=rows.specific,
        schema=schema,
        source=os.fspath(path),
        **more,
    )


def gathered(schema: Any, parts: Iterable[Rows], path: File, **more: Any) -> Dataset:
    """All parts of a file as one data set."""
    collected = list(parts)
    if not collected:
        refuse(path, None, "no rows")
    joined = [stacked(list(columns)) for columns in zip(*collected, strict=True)]
    return dataset_of(schema, Rows(*joined), path, **more)


def stacked(parts: list[Any]) -> Any:
    """Matrices one below the other; CSR if any is."""
    if parts[0] is None or len(parts) == 1:
        return parts[0]
    if any(map(issparse, parts)):
        return csr_array(vstack([csr_array(part) for part in parts], format="csr"))
    return np.concatenate(parts)


@contextmanager
def named(path: File) -> Iterator[None]:
    """Whatever is wrong with the values of a file is a `DataError` that names the file."""
    try:
        yield
    except DataError:
        raise
    except (ValueError, OverflowError, MemoryError) as error:
        raise DataError(path, None, str(error) or type(error).__name__) from error


def existing(path: File) -> Path:
    """A path to something that is there."""
    found = Path(path)
    if not found.exists():
        raise FileNotFoundError(f"there is no file {os.fspath(path)!r}")
    return found

"""Rows with features and label sets, whatever file they came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from setwise.datasets.unseen import Unseen
from setwise.labels import zeros_and_ones
from setwise.sparse import refuse_entries
from setwise.spelling import counted
from setwise.taxonomy import Taxonomy
from setwise.validation import input_matrix, real_number, real_vector, refuse_repeated, same_rows

if TYPE_CHECKING:
    from setwise.datasets.schema import Schema

# Numpy gives every name the room of the longest. Beyond this many bytes names are objects instead.
MOST_BYTES = 2**26


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Features, label sets and what is known about them.

    Parameters
    ----------
    X : float array or csr_array of shape (n_rows, n_features)
        The features, float32 or float64. NaN is a missing value (see `has_missing`); infinity is
        refused.
    Y : uint8 array or csr_array of shape (n_rows, n_labels), or None
        The label sets, 0/1. None if the file was read without its labels.
    feature_names : array of str, or None
        A name for each feature; None where the format has none.
    label_names : array of str
        A name for each label, no two alike.
    split : dict of str to int array, optional
        The rows of each part, such as "train" and "test"; no row is in two parts.
    hierarchy : int array of shape (m, 2), optional
        Edges [parent, child] between labels, without cycles; a parent of -1 is none.
    Y_specific : as Y, optional
        In a hierarchy, the labels as they were written, where Y has their ancestors too.
    name, source : str
        What the data set is called and where it came from.
    schema : Schema, optional
        How the file was read: reads other files into the same columns.
    edge_lengths : array of shape (m,), optional
        The length of each edge of the hierarchy; 1 by default.
    unseen : Unseen
        What the file has that the first one had not, where that is not refused.

    Examples
    --------
    >>> data = Dataset([[1.0], [2.0]], [[0, 1], [1, 1]], ["size"], ["art", "law"], name="books")
    >>> print(data)
    books: 2 rows, 1 feature, 2 labels, 1.50 labels per row, 2 distinct sets
    >>> data.split_off(train=0.5).train().n_rows
    1
    """

    X: Any
    Y: Any
    feature_names: Any = None
    label_names: Any = None
    split: Mapping[str, Any] | None = None
    hierarchy: Any = None
    Y_specific: Any = None
    name: str = ""
    source: str = ""
    schema: Schema | None = None
    edge_lengths: Any = None
    unseen: Unseen = field(default_factory=Unseen)

    def __post_init__(self):
        X = _features(self.X)
        Y = None if self.Y is None else zeros_and_ones(self.Y, "Y")
        if Y is not None:
            same_rows(X=X, Y=Y)
        labels = self.label_names
        if labels is None:
            labels = np.arange(0 if Y is None else Y.shape[1]).astype(str)
        labels = _names(labels, len(labels) if Y is None else Y.shape[1], "label_names")
        edges, lengths = self.hierarchy, self.edge_lengths
        if edges is not None:
            edges = edge_array(edges, labels, lengths)
        if lengths is not None:
            if edges is None:
                raise ValueError("edge_lengths are those of a hierarchy, but there is none")
            lengths = real_vector(lengths, len(edges), "edge_lengths")
        vars(self).update(
            X=X, Y=Y, label_names=labels, hierarchy=edges, edge_lengths=lengths,
            feature_names=_names(self.feature_names, X.shape[1], "feature_names"),
            split=None if self.split is None else _parts(self.split, X.shape[0]),
            Y_specific=_specific(self.Y_specific, Y),
        )  # fmt: skip

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.X.shape[0]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.X.shape[1]

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.label_names)

    @cached_property
    def cardinality(self) -> float:
        """Mean number of labels per row."""
        return float(self._labels().sum(dtype=np.int64)) / self.n_rows

    @cached_property
    def distinct_sets(self) -> int:
        """Number of different label sets."""
        Y = self._labels()
        if not issparse(Y):
            return len({row.tobytes() for row in np.packbits(Y, axis=1)})
        ends = Y.indptr[1:].tolist()
        return len({Y.indices[a:b].tobytes() for a, b in zip([0, *ends], ends, strict=False)})

    @cached_property
    def n_missing(self) -> int:
        """Number of missing features: entries of X that are NaN."""
        return int(np.isnan(self.X.data if issparse(self.X) else self.X).sum())

    @property
    def is_sparse(self) -> bool:
        """Whether the features are sparse."""
        return issparse(self.X)

    @property
    def has_missing(self) -> bool:
        """Whether a feature is NaN somewhere."""
        return self.n_missing > 0

    @cached_property
    def taxonomy(self) -> Taxonomy:
        """The hierarchy with the names of the labels, as `TreeDistance` takes it."""
        if self.hierarchy is None:
            raise ValueError(
                f"{self.name or 'this data set'} has no hierarchy; under(taxonomy) gives it one"
            )
        return Taxonomy(self.hierarchy, self.label_names, self.edge_lengths)

    @property
    def parents(self) -> NDArray[np.int64]:
        """The parent of each label, -1 for a root; refused where a label has two."""
        return self.taxonomy.parents

    def under(self, taxonomy: Taxonomy, close: bool = False) -> Dataset:
        """The same rows with the labels of a taxonomy, which are found by their names.

        Parameters
        ----------
        taxonomy : Taxonomy
            Has every label of the data. Those that it has beside them are never true, unless
            something under them is.
        close : bool, default False
            Whether label sets get all that stands above their labels; else they must have it.

        Examples
        --------
        >>> shop = Dataset([[1.0], [2.0]], [[1, 0], [0, 1]], None, ["home/hoses", "toys"])
        >>> taxonomy = Taxonomy.from_paths(shop.label_names, missing="add")
        >>> shop.under(taxonomy, close=True).Y
        array([[1, 0, 1],
               [0, 1, 0]], dtype=uint8)
        """
        if not isinstance(taxonomy, Taxonomy):
            expected = "a Taxonomy, such as Taxonomy.from_parents(parents, names)"
            raise ValueError(f"taxonomy must be {expected}, not a {type(taxonomy).__name__}")
        schema: Any = self.schema
        labels = getattr(schema, "labels", None)
        if labels is not None and labels.column is not None and labels.edges is None:
            # One column lists the labels: those of later files may be any of the taxonomy.
            schema = replace(schema, labels=replace(labels, names=taxonomy.names))
        from setwise.datasets.taxonomy_schema import TaxonomySchema

        return TaxonomySchema(schema, taxonomy, close).placed(self)

    def rows(self, rows: Any) -> Dataset:
        """Some of the rows, by number or mask, as a data set without a split."""
        Y, specific = (None if sets is None else sets[rows] for sets in (self.Y, self.Y_specific))
        return replace(self, X=self.X[rows], Y=Y, Y_specific=specific, split=None)

    def part(self, name: str) -> Dataset:
        """The rows of one part of the split."""
        if self.split is None or name not in self.split:
            known = "no split" if self.split is None else f"only the parts {', '.join(self.split)}"
            raise ValueError(
                f"{self.name or 'this data set'} has {known}, not {name!r}; "
                f"split_off() makes 'train' and 'test'"
            )
        return self.rows(self.split[name])

    def train(self) -> Dataset:
        """The rows to train on."""
        return self.part("train")

    def test(self) -> Dataset:
        """The rows to test on."""
        return self.part("test")

    def split_off(self, seed: int = 7, train: float = 0.7) -> Dataset:
        """The same data with a random split.

        ``numpy.random.default_rng(seed).permutation(n_rows)``; the first ``int(train * n_rows)``
        rows of it are "train", the others "test".
        """
        order = np.random.default_rng(seed).permutation(self.n_rows)
        size = int(real_number(train, "train", 0.0, 1.0) * self.n_rows)
        if not 0 < size < self.n_rows:
            raise ValueError(
                f"both parts must have rows, but {train} of {self.n_rows} rows are {size}"
            )
        return replace(self, split={"train": order[:size], "test": order[size:]})

    def __str__(self) -> str:
        sizes = {"row": self.n_rows, "feature": self.n_features, "label": self.n_labels}
        counts = [counted(size, noun) for noun, size in sizes.items()]
        if self.Y is not None:
            counts += [f"{self.cardinality:.2f} labels per row"]
            counts += [counted(self.distinct_sets, "distinct set")]
        parts = [f"{name} {len(rows)}" for name, rows in (self.split or {}).items()]
        more = ["; " + ", ".join(parts)] if parts else []
        more += ["; a hierarchy"] if self.hierarchy is not None else []
        more += ["; missing values"] if self.has_missing else []
        more += ["; labels not read"] if self.Y is None else []
        return f"{self.name or 'data'}: {', '.join(counts)}{''.join(more)}"

    __repr__ = __str__

    def _labels(self) -> Any:
        if self.Y is None:
            raise ValueError(f"the labels of {self.name or 'this data set'} were not read")
        return self.Y


def _features(X: Any) -> Any:
    """Inputs with rows and features; NaN stays, infinity is refused."""
    inputs = input_matrix(X)
    if 0 in inputs.shape:
        raise ValueError(
            f"X must have at least one row and one feature, but its shape is {inputs.shape}"
        )
    values = inputs.data if issparse(inputs) else inputs
    refuse_entries(inputs, np.isinf(values), "X", "be finite or NaN")
    return inputs


def text_array(names: Iterable[Any]) -> NDArray[Any]:
    """Names as an array of text; of objects where the longest would make it huge."""
    if isinstance(names, np.ndarray) and names.ndim == 1 and names.dtype.kind == "U":
        return names
    listed = [str(name) for name in names]
    longest = max(map(len, listed), default=1)
    # (Numpy's text drops zeros at the end.)
    is_plain = 4 * longest * len(listed) <= MOST_BYTES and not any(
        name.endswith("\0") for name in listed
    )
    array = np.empty(len(listed), dtype=f"<U{max(longest, 1)}" if is_plain else object)
    array[:] = listed
    return array


def _names(names: Any, count: int, what: str) -> Any:
    if names is None:
        return None
    array = text_array(names)
    if len(array) != count:
        raise ValueError(f"{what} must have {count} names, one a column, but it has {len(array)}")
    if what == "label_names":
        refuse_repeated(array.tolist())
    return array


def _parts(split: Mapping[str, Any], n_rows: int) -> dict[str, NDArray[np.int64]]:
    """The rows of each part: numbers of rows that exist, each once."""
    parts = {str(name): np.asarray(rows) for name, rows in split.items()}
    for name, rows in parts.items():
        if rows.ndim != 1 or rows.dtype.kind not in "iu" or len(rows) == 0:
            raise ValueError(f"split[{name!r}] must be a list of rows, but it is {rows!r}")
        if rows.min() < 0 or rows.max() >= n_rows:
            expected = f"rows from 0 to {n_rows - 1}"
            found = f"from {rows.min()} to {rows.max()}"
            raise ValueError(f"split[{name!r}] must have {expected}, but they are {found}")
    every = np.concatenate([np.zeros(0, np.int64), *parts.values()])
    if len(np.unique(every)) < len(every):
        raise ValueError("no row may be in the split twice, but one is")
    return {name: rows.astype(np.int64) for name, rows in parts.items()}


def _specific(sets: Any, Y: Any) -> Any:
    if sets is None or Y is None:
        return None
    specific = zeros_and_ones(sets, "Y_specific")
    if specific.shape != Y.shape:
        raise ValueError(f"Y_specific must have the shape {Y.shape} of Y, not {specific.shape}")
    beyond: Any = csr_array(specific) > csr_array(Y)
    if beyond.nnz:
        raise ValueError("Y must have every label of Y_specific, but some are not in it")
    return specific


def edge_array(edges: Any, names: Any, lengths: Any = None) -> NDArray[np.int64]:
    """Edges [parent, child] as an (m, 2) array: of a taxonomy with labels of these names."""
    try:
        Taxonomy(edges, names, lengths)
    except ValueError as error:
        raise ValueError(f"hierarchy must be a list of edges between labels: {error}") from error
    return np.asarray(edges, dtype=np.int64).reshape(-1, 2)

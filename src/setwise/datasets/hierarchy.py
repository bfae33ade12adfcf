"""The labels of a data set in a taxonomy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from setwise.datasets.names import text_array
from setwise.labels import some
from setwise.taxonomy import Taxonomy

if TYPE_CHECKING:
    from setwise.datasets.dataset import Dataset
    from setwise.datasets.schema import File, Schema


def edge_array(edges: Any, names: Any, lengths: Any = None) -> NDArray[np.int64]:
    """Edges [parent, child] as an (m, 2) array: of a taxonomy with labels of these names."""
    try:
        Taxonomy(edges, names, lengths)
    except ValueError as error:
        raise ValueError(f"hierarchy must be a list of edges between labels: {error}") from error
    return np.asarray(edges, dtype=np.int64).reshape(-1, 2)


@dataclass(frozen=True, eq=False)
class TaxonomySchema:
    """A `Schema` that reads as another does, with a column of Y for each label of a taxonomy.

    Parameters
    ----------
    schema : Schema
        Reads the files; each of its labels is one of the taxonomy, by name.
    taxonomy : Taxonomy
        Labels that the files do not have are never true.
    close : bool
        Whether label sets get all that stands above their labels; else they must have it.
    """

    schema: Schema
    taxonomy: Taxonomy
    close: bool = False

    @property
    def format(self) -> str:
        """That of the files."""
        return self.schema.format

    @property
    def feature_names(self) -> Any:
        """The name of each feature, or None."""
        return self.schema.feature_names

    @property
    def label_names(self) -> Any:
        """The labels of the taxonomy."""
        return text_array(self.taxonomy.names)

    @property
    def labels(self) -> Any:
        """Where the labels stand in a file, if the schema says it."""
        return getattr(self.schema, "labels", None)

    def read(self, path: File, *, labels: bool = True) -> Dataset:
        """A file as a data set; without ``labels`` they may be absent, and Y is None."""
        return self.placed(self.schema.read(path, labels=labels))

    def chunks(self, path: File, rows: int = 10_000, *, labels: bool = False) -> Iterator[Dataset]:
        """A file in parts of at most ``rows`` rows."""
        return map(self.placed, self.schema.chunks(path, rows, labels=labels))

    def placed(self, data: Dataset) -> Dataset:
        """The data with the labels of the taxonomy; label sets are closed, or must be."""
        written, Y = None, data.Y
        if Y is not None:
            Y = spread(Y, data.label_names, self.label_names)
            if self.close:
                own = data.Y_specific
                written = Y if own is None else spread(own, data.label_names, self.label_names)
                Y = self.taxonomy.close(Y)
            else:
                self.taxonomy.refuse_open(Y, data.name or "Y")
        return replace(
            data,
            Y=Y,
            Y_specific=written,
            label_names=self.label_names,
            hierarchy=self.taxonomy.edges,
            edge_lengths=self.taxonomy.lengths_of_edges,
            schema=self,
        )


def spread(values: Any, names: Any, wider: Any) -> Any:
    """The columns of these names among those of the wider ones, all others 0; dense or CSR."""
    place = {name: number for number, name in enumerate(np.asarray(wider).tolist())}
    missing = [name for name in np.asarray(names).tolist() if name not in place]
    if missing:
        raise ValueError(
            f"every label must be one of the taxonomy, but {some(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not among its {len(place)} labels "
            f"{some(list(place))}"
        )
    columns = np.array([place[name] for name in np.asarray(names).tolist()], dtype=np.int64)
    shape = (values.shape[0], len(place))
    if issparse(values):
        rows: Any = csr_array(values)
        wide = csr_array((rows.data, columns[rows.indices], rows.indptr), shape=shape)
        wide.sort_indices()
        return wide
    wide = np.zeros(shape, values.dtype)
    wide[:, columns] = values
    return wide


def raised(probability: NDArray[Any], taxonomy: Taxonomy) -> NDArray[Any]:
    """The probabilities, each at least those of the labels under its own; (n, l)."""
    raised = probability.copy()
    between = taxonomy.edges[taxonomy.edges[:, 0] >= 0]
    deepest_first = np.argsort(-taxonomy.levels[between[:, 1]], kind="stable")
    for above, label in between[deepest_first].tolist():
        np.maximum(raised[:, above], raised[:, label], out=raised[:, above])
    return raised

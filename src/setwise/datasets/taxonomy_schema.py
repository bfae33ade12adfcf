"""Files read into the labels of a taxonomy, which are found by their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from setwise.datasets.dataset import Dataset, text_array
from setwise.files import File
from setwise.sparse import columns_among
from setwise.spelling import known_names, some
from setwise.taxonomy import Taxonomy


@dataclass(frozen=True, eq=False)
class TaxonomySchema:
    """A `Schema` that reads as another does, with a column of Y for each label of a taxonomy.

    Each label of ``schema`` is one of the taxonomy, by name; labels that its files do not have are
    never true. With ``close`` label sets get all that stands above their labels; else they must
    have it.
    """

    schema: Any
    taxonomy: Taxonomy
    close: bool = False

    @property
    def format(self) -> str:
        return self.schema.format

    @property
    def feature_names(self) -> Any:
        return self.schema.feature_names

    @property
    def label_names(self) -> Any:
        return text_array(self.taxonomy.names)

    @property
    def labels(self) -> Any:
        """Where the labels stand in a file, if the schema says it."""
        return getattr(self.schema, "labels", None)

    def read(self, path: File, **options: Any) -> Dataset:
        return self.placed(self.schema.read(path, **options))

    def chunks(self, path: File, rows: int = 10_000, **options: Any) -> Iterator[Dataset]:
        return map(self.placed, self.schema.chunks(path, rows, **options))

    def texts(self, path: File, columns: Sequence[str]) -> Iterator[tuple[str, ...]]:
        return self.schema.texts(path, columns)

    def placed(self, data: Dataset) -> Dataset:
        """The data with the labels of the taxonomy; label sets are closed, or must be.

        A label that the first file had not stands by itself, as another root.
        """
        known, taxonomy, schema = set(self.taxonomy.names.tolist()), self.taxonomy, self
        new = Counter({n: times for n, times in data.unseen.labels.items() if n not in known})
        if new:
            taxonomy = replace(taxonomy, names=[*taxonomy.names.tolist(), *new])
            schema = replace(self, schema=data.schema, taxonomy=taxonomy)
        names, written, Y = text_array(taxonomy.names), None, data.Y
        if Y is not None:
            Y = spread(Y, data.label_names, names)
            if self.close:
                own = data.Y_specific
                written = Y if own is None else spread(own, data.label_names, names)
                Y = taxonomy.close(Y)
            else:
                taxonomy.refuse_open(Y, data.name or "Y")
        return replace(
            data,
            Y=Y,
            Y_specific=written,
            label_names=names,
            hierarchy=taxonomy.edges,
            edge_lengths=taxonomy.lengths_of_edges,
            schema=schema,
            unseen=replace(data.unseen, labels=new),
        )


def spread(values: Any, names: Any, wider: Any) -> Any:
    """The columns of these names among those of the wider ones, all others 0; dense or CSR."""
    place = {name: number for number, name in enumerate(np.asarray(wider).tolist())}
    given = np.asarray(names).tolist()
    missing = [name for name in given if name not in place]
    if missing:
        what = f"{some(missing)} {'is' if len(missing) == 1 else 'are'} not among its"
        known = f"{len(place)} labels; {known_names(missing[0], place)}"
        raise ValueError(f"every label must be one of the taxonomy, but {what} {known}")
    columns = np.array([place[name] for name in given], dtype=np.int64)
    return columns_among(values, columns, len(place))

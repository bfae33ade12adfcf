"""Label sets as lines: listed in one column, a column each, JSON, or their probabilities."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array

FORMATS = ("labels", "columns", "json", "probabilities")
SEPARATOR = ";"


@dataclass(frozen=True)
class LabelRows:
    """Turns label sets, or probabilities, into the bytes of a file.

    Parameters
    ----------
    names : list of str
        Of the labels.
    format : {"labels", "columns", "json", "probabilities"}
        CSV with one column that lists the labels of a row; CSV with a column of 0 and 1 for each
        label; a line of JSON for each row; CSV with the probability of each label.
    column, separator : str
        The name of the column that lists labels, and what stands between them.
    """

    names: Sequence[str]
    format: str = "labels"
    column: str = "labels"
    separator: str = SEPARATOR

    def __post_init__(self):
        if self.format not in FORMATS:
            raise ValueError(f"--format must be one of {', '.join(FORMATS)}, not {self.format!r}")
        if self.format != "labels":
            return
        if not self.separator:
            raise ValueError("--separator must be text, but it is empty")
        unclear = [n for n in self.names if self.separator in n or n != n.strip() or n == "?"]
        if unclear:
            raise ValueError(
                f"the label {unclear[0]!r} could not be told from others in a list with "
                f"{self.separator!r} between; choose another --separator, or --format json"
            )

    def header(self) -> bytes:
        """The first line."""
        if self.format == "json":
            return b""
        return _csv([[self.column] if self.format == "labels" else self.names])

    def stream(self, parts: Iterable[Any]) -> Iterator[bytes]:
        """The header with the rows of the first part, if there is one, and then the others."""
        head = self.header()
        for values in parts:
            yield head + self.rows(values)
            head = b""
        yield head

    def rows(self, values: Any) -> bytes:
        """A line for each row of label sets, (n, n_labels), or of probabilities."""
        if self.format in ("labels", "json"):
            return self._listed(csr_array(values, copy=True))
        dense = values.toarray() if hasattr(values, "toarray") else np.asarray(values)
        # (As short as is enough to read the same number again.)
        return _csv(dense.tolist())

    def _listed(self, sets: csr_array) -> bytes:
        sets.eliminate_zeros()
        sets.sort_indices()
        ends: Any = sets.indptr
        chosen = [self.names[label] for label in sets.indices.tolist()]
        lists = [chosen[start:end] for start, end in pairwise(ends)]
        if self.format == "json":
            lines = [json.dumps({"labels": labels}, ensure_ascii=False) for labels in lists]
            return "".join(line + "\n" for line in lines).encode()
        return _csv([[self.separator.join(labels)] for labels in lists])


def _csv(rows: Sequence[Sequence[Any]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()

"""Tables of which only the labels are read: predictions beside the truth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from setwise.cli.reading import Reading
from setwise.datasets.files import existing, named, refuse
from setwise.datasets.label_source import LabelColumns, LabelList, labelled, labels_in
from setwise.datasets.table import Cells, Table, open_table

ROWS = 4096


def label_tables(paths: Sequence[Path], reading: Reading) -> tuple[list[Any], list[str]]:
    """The label sets of each table, CSR with the same columns, and the names of these.

    Labels that are listed in one column are those of any of the tables; label columns have to be
    the same.
    """
    options = reading.options
    tables = [_opened(path, options) for path in paths]
    source = _source(tables, options)
    return [_sets(table, source) for table in tables], source.names.tolist()


def aligned_probabilities(path: Path, labels: Sequence[str], n_rows: int) -> Any:
    """Probabilities with a column for each of the labels, in their order."""
    from setwise.cli.probability_file import ProbabilityFile

    file = ProbabilityFile.opened(path)
    if sorted(file.names) != sorted(labels):
        raise ValueError(
            f"{path.name} must have a column for each of the {len(labels)} labels "
            f"{', '.join(labels[:5])}, ..., but its columns are {', '.join(file.names[:5])}, ..."
        )
    parts = list(file.parts(ROWS))
    found = vstack(parts).toarray() if hasattr(parts[0], "tocsr") else np.concatenate(parts)
    if len(found) != n_rows:
        raise ValueError(f"{path.name} has {len(found)} rows, but {n_rows} are expected")
    return found[:, [file.names.index(label) for label in labels]]


def _opened(path: Path, options: dict[str, Any]) -> Table:
    found = existing(path)
    with named(path):
        return open_table(found, options.get("delimiter"), options.get("encoding", "utf-8"), None)


def _source(tables: list[Table], options: dict[str, Any]) -> LabelColumns | LabelList:
    column = options.get("label_column")
    keys = ("labels", "label_prefix", "label_column")
    if sum(options.get(key) is not None for key in keys) != 1:
        raise ValueError(
            "which columns are labels? Say one of --labels A,B, --label-prefix P and "
            "--label-column C, as for the training file"
        )
    if column is None:
        columns = [_label_columns(table, options) for table in tables]
        if any(sorted(names) != sorted(columns[0]) for names in columns):
            raise ValueError(
                f"{tables[0].path.name} and {tables[1].path.name} must have the same label "
                f"columns, but have {', '.join(columns[0])} and {', '.join(columns[1])}"
            )
        return LabelColumns(columns[0])
    separator = options.get("separator", ",")
    parts = (cells for table in tables for cells in _cells(table, [column]))
    found = labels_in(((cells.lists(column), cells.place) for cells in parts), separator)
    if not found:
        refuse(tables[0].path, None, f"no row has a label in column {column!r}")
    return LabelList(column, separator, found)


def _label_columns(table: Table, options: dict[str, Any]) -> list[str]:
    prefix = options.get("label_prefix")
    if prefix is None:
        return list(options["labels"])
    return [name for name in table.names if name.startswith(prefix)]


def _cells(table: Table, columns: list[str]) -> Any:
    table.require(columns)
    return table.parts(columns, ROWS)


def _sets(table: Table, source: LabelColumns | LabelList) -> csr_array:
    with named(table.path):
        parts = [_rows(cells, source) for cells in _cells(table, source.columns)]
        if not parts:
            refuse(table.path, None, "no rows")
        return csr_array(vstack(parts))


def _rows(cells: Cells, source: LabelColumns | LabelList) -> csr_array:
    return csr_array(labelled(source, cells.labels(source), cells.place, "refuse").Y)

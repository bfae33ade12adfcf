"""Files turned into folders of blocks, a few rows at a time, so that they may exceed the memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from setwise.blocks import BlockWriter, FolderBlocks
from setwise.blocks.block import BLOCK_ROWS
from setwise.datasets.dataset import Dataset
from setwise.datasets.reading import reader_of
from setwise.datasets.schema import First, stacked
from setwise.files import File, named
from setwise.persistence import load, save
from setwise.spelling import argument
from setwise.validation import whole_number

SCHEMA = "schema.skops"


def convert(
    source: File,
    folder: File,
    *,
    rows: int = BLOCK_ROWS,
    format: str | None = None,
    part: str | None = None,
    placed: Callable[[Dataset], Dataset] | None = None,
    **options: Any,
) -> FolderBlocks:
    r"""Turn a file into a folder of blocks, which classifiers are fitted to from the disk.

    The file is read in parts. Where its columns say too little (which labels and categories there
    are, the terms of a text), it is looked through once before. Label sets are kept sparse. If it
    is interrupted, the same call goes on where it was.

    Parameters
    ----------
    source : path
        Any file that `read` reads.
    folder : path
        A new folder, or one whose conversion was interrupted.
    rows : int, default 65536
        Rows of a block. A solver has a few blocks in memory at a time.
    format, **options
        As in `read`.
    part : str, optional
        Of a file that has a split, such as "train": the part that is converted.
    placed : function, optional
        What becomes of each part, such as ``lambda data: data.under(taxonomy)``.

    Returns
    -------
    FolderBlocks
        `FolderBlocks.open` opens them again.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as place:
    ...     file = pathlib.Path(place, "books.csv")
    ...     _ = file.write_text("pages,tags\n120,art;law\n80,law\n70,art\n")
    ...     blocks = convert(file, pathlib.Path(place, "blocks"), rows=2, label_column="tags",
    ...                      separator=";")
    ...     len(blocks), blocks.n_rows, blocks.names.names.tolist()
    (2, 3, ['art', 'law'])
    """
    size, path = whole_number(rows, "rows", 1), Path(folder)
    reader = reader_of(source, format, options)
    with named(source):
        first = reader.first(source, **options)
        taken = _part(first.more.get("split"), part)
        parts = _data(first, source, taken, placed)
        begin = next(parts, None)
        if begin is None:
            raise ValueError("no rows")
        writer = BlockWriter(path, {**_about(source, begin, size), "part": part})
        if not (path / SCHEMA).exists():
            save(begin.schema, path / SCHEMA)
        pairs = ((data.X, data.Y) for data in chain([begin], parts))
        for X, Y in _cut(pairs, size, writer.n_rows):
            writer.add(X, Y)
        return writer.finish()


def schema_of(blocks: FolderBlocks) -> Any:
    """How the file was read that blocks were converted from."""
    return load(blocks.folder / SCHEMA)


def _part(split: Any, part: str | None) -> Any:
    """The rows of a part of a split, as a mask by number; None for all rows."""
    if not split and part is None:
        return None
    if part is None or part not in (split or {}):
        known = f"the parts {', '.join(split)}" if split else "no split"
        raise ValueError(f"there are {known}: name one of its parts ({argument('part', ...)})")
    taken = np.zeros(max(int(rows.max()) for rows in split.values()) + 1, bool)
    taken[split[part]] = True
    return taken


def _data(first: First, source: File, taken: Any, placed: Any) -> Iterator[Dataset]:
    """The parts of a file that have rows, as data sets."""
    number = 0
    for rows in first.parts():
        n = rows.X.shape[0]
        data = first.schema.dataset(rows, source, name=first.more.get("name")) if n else None
        if data is not None and taken is not None:
            kept = np.flatnonzero(taken[number : number + n])
            data = data.rows(kept) if len(kept) else None
        number += n
        if data is not None:
            yield data if placed is None else placed(data)


def _cut(pairs: Iterable[tuple[Any, Any]], size: int, written: int) -> Iterator[tuple[Any, Any]]:
    """Inputs and label sets in blocks of ``size`` rows, from row ``written`` on."""
    held: list[tuple[Any, Any]] = []
    count = 0
    for X, Y in pairs:
        skipped = min(written, X.shape[0])
        written -= skipped
        while skipped < X.shape[0]:
            taken = slice(skipped, min(skipped + size - count, X.shape[0]))
            held.append((X[taken], Y[taken]))
            count, skipped = count + taken.stop - taken.start, taken.stop
            if count == size:
                yield _joined(held)
                held, count = [], 0
    if held:
        yield _joined(held)


def _joined(held: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    inputs, sets = (stacked(list(parts)) for parts in zip(*held, strict=True))
    return inputs, sets


def _about(source: File, data: Dataset, rows: int) -> dict[str, Any]:
    """What blocks.json says of all blocks, and of where they came from."""
    state = os.stat(source)
    known = {
        "feature_names": data.feature_names,
        "label_names": data.label_names,
        "hierarchy_edges": data.hierarchy,
        "hierarchy_lengths": data.edge_lengths,
    }.items()
    return {
        "name": data.name,
        "source": {"file": os.fspath(source), "bytes": state.st_size, "changed": state.st_mtime},
        "block_rows": rows,
        "n_features": data.n_features,
        **{key: None if value is None else np.asarray(value).tolist() for key, value in known},
    }

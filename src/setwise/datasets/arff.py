"""ARFF files of Mulan (with an XML file), MEKA and Clus, dense and sparse.

No well-kept library reads sparse rows and hierarchical attributes. Values are parted line by line
and turned into numbers many at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from setwise.datasets.arff_header import (
    QUOTED,
    Attribute,
    Header,
    cells_in,
    labels_of,
    read_header,
    unquoted,
)
from setwise.datasets.columns import Categories, Features, Number, Text
from setwise.datasets.schema import ColumnSchema, First, Raw, Reader
from setwise.datasets.sparse_text import BLOCK_ROWS, Lines, blocks, number_pairs, sparse_matrix
from setwise.datasets.table import compute, parsed
from setwise.datasets.unseen import Unseen
from setwise.files import DataError, File, Place, decoded, existing, named, numbered, opened
from setwise.spelling import argument, known_names, shown, some

_ENTRY = re.compile(rf"\s*(\d+)\s+({QUOTED}|[^\s,'\"]+)\s*(,|$)")


class _Reader:
    """Reads lines of one ARFF file; ``kinds`` are those of its attributes, None to skip one."""

    def __init__(self, header: Header, kinds: Sequence[Any], path: Path, encoding: str):
        self.attributes, self.kinds = header.attributes, kinds
        self.path, self.encoding = path, encoding
        self.declared = [frozenset(attribute.values) for attribute in header.attributes]
        self.is_binary = np.array([kind == Number(binary=True) for kind in kinds], bool)
        # Attributes whose values are numbers and their own codes.
        pairs = zip(kinds, self.declared, strict=True)
        self.is_plain = np.array([isinstance(k, Number) and v <= {"0", "1"} for k, v in pairs])

    def block(self, lines: Lines) -> tuple[Any, dict[str, list[str]], Place, Unseen]:
        """The rows on some lines: codes (n, n_attributes), texts by name, place, what is new."""
        kept = [(number, line.strip()) for number, line in lines]
        kept = [(number, line) for number, line in kept if line and not line.startswith(b"%")]
        place = Place(self.path, lambda row: kept[row][0])
        is_sparse = any(line.startswith(b"{") for _, line in kept)
        if is_sparse:
            self._refuse_left_out()
        ends, index, codes, cells = self._numbers(kept) or self._values(kept, place)
        rows = np.repeat(np.arange(len(kept)), np.diff(ends))
        self._check(index, codes, rows, place)
        texts, new = {}, {}
        for i, kind in enumerate(self.kinds):
            if isinstance(kind, Text):
                column = [self.attributes[i].left_out] * len(kept)
                texts[self.attributes[i].name] = column
                for entry in np.flatnonzero(index == i).tolist():
                    column[rows[entry]] = cells[entry]
            elif isinstance(kind, Categories) and kind.unseen == "zeros":
                own = (cells[entry] for entry in np.flatnonzero(index == i).tolist())
                new[self.attributes[i].name] = kind.new(own)
        if is_sparse:
            codes = sparse_matrix(ends, index, codes, len(self.kinds), place)
        else:
            codes = codes.reshape(len(kept), len(self.kinds))
        return codes, texts, place, Unseen(new)

    def _numbers(self, lines: Lines) -> Any:
        """Ends, attributes and codes of rows of plain numbers and nothing else; None of others."""
        kinds = list(zip(self.is_plain, self.kinds, strict=True))
        bodies = [line[1:-1].strip() for _, line in lines if line[:1] + line[-1:] == b"{}"]
        if len(bodies) < len(lines) * bool(bodies) or not all(p or k is None for p, k in kinds):
            return None
        if bodies:
            ends = np.cumsum([0, *(body.count(b",") + 1 if body else 0 for body in bodies)])
            pairs = b"\n".join(filter(None, bodies)).replace(b", ", b",").replace(b",", b"\n")
            found = number_pairs(pairs, int(ends[-1]), " ", ["?"])
            return (ends, *found, []) if found and found[0].max() < len(kinds) else None
        types = {str(i): pa.float64() if plain else None for i, (plain, _) in enumerate(kinds)}
        table = parsed(b"\n".join([line for _, line in lines]), types, ["?"], quote_char=False)
        if table is None or len(table) != len(lines):
            return None
        codes = np.zeros((len(lines), len(kinds)))
        codes[:, self.is_plain] = np.column_stack([column.to_numpy() for column in table.columns])
        index = np.tile(np.arange(len(kinds)), len(lines))
        return np.arange(len(lines) + 1) * len(kinds), index, codes.ravel(), []

    def _values(self, lines: Lines, place: Place) -> Any:
        """Ends, attributes, codes and texts of the values of rows, as they are written."""
        ends, indices, cells = [0], [], []
        for number, line in lines:
            found = self._entries(decoded(line, self.path, number, self.encoding), number)
            indices += found[0]
            cells += found[1]
            ends.append(len(cells))
        index, text = np.array(indices, np.int64), pa.array(cells, pa.string())
        is_plain = self.is_plain[index] & ~np.asarray(compute.equal(text, "?"))
        try:
            numbers = compute.if_else(pa.array(is_plain), text, None).cast(pa.float64())
            codes = numbers.to_numpy(zero_copy_only=False).copy()
        except pa.ArrowInvalid:
            codes, is_plain = np.zeros(len(cells)), np.zeros(len(cells), bool)
        for entry in np.flatnonzero(~is_plain).tolist():
            code = self._code(index[entry], cells[entry])
            if code is None:
                row = np.searchsorted(ends, entry, "right") - 1
                raise place.error(row, self._wrong(index[entry], cells[entry]))
            codes[entry] = code
        return ends, index, codes, cells

    def _entries(self, text: str, number: int) -> tuple[Sequence[int], list[str]]:
        """The attributes and the values of a row."""
        count, reason = len(self.attributes), ""
        if not text.startswith("{"):
            cells = cells_in(text, self.path, number)
            if len(cells) == count:
                return range(count), cells
            reason = f"{len(cells)} values, but {count} attributes are declared"
        elif not text.endswith("}"):
            reason = "a sparse row that does not end with '}': cut off?"
        body, place = text[1:-1].strip(), 0
        indices, cells = [], []
        while place < len(body) and not reason:
            found = _ENTRY.match(body, place)
            if found is None:
                near = f"near {shown(body[place:])} it is not"
                reason = f"expected is '{{index value, ...}}', but {near}"
            elif len(found[1]) > 9 or int(found[1]) >= count:
                reason = f"index {found[1]}; expected is 0 to {count - 1}"
            else:
                indices.append(int(found[1]))
                cells.append(unquoted(found[2]))
                place = found.end()
        if reason:
            raise DataError(self.path, number, reason)
        return indices, cells

    def _check(self, index: Any, codes: Any, rows: Any, place: Place) -> None:
        """Raise for infinite values, and values of 0/1 attributes that are neither."""
        is_odd = self.is_binary[index] & (codes != 0) & (codes != 1) & ~np.isnan(codes)
        wrong = np.flatnonzero(np.isinf(codes) | is_odd)
        if len(wrong):
            name = shown(self.attributes[index[wrong[0]]].name)
            expected = "0 or 1" if is_odd[wrong[0]] else "a finite number"
            reason = f"attribute {name} must be {expected}, but it is {codes[wrong[0]]:g}"
            raise place.error(rows[wrong[0]], reason)

    def _code(self, index: int, cell: str) -> float | None:
        """What stands for a value; None if it is wrong."""
        kind, declared = self.kinds[index], self.declared[index]
        if kind is None or isinstance(kind, Text):
            return 0.0
        if cell == "?":
            return nan
        return None if declared and cell not in declared else kind.code(cell)

    def _wrong(self, index: int, cell: str) -> str:
        name, values = self.attributes[index].name, self.attributes[index].values
        if not values or cell in values:
            return f"attribute {shown(name)} {self.kinds[index].wrong(cell)}"
        declared = f"which is not declared; {known_names(cell, values)}"
        return f"attribute {shown(name)} is {shown(cell)}, {declared}"

    def _refuse_left_out(self) -> None:
        """Raise if the value that sparse rows leave out is not the one with code 0."""
        for i, attribute in enumerate(self.attributes):
            kind, left_out = self.kinds[i], attribute.left_out
            is_new = isinstance(kind, Categories) and kind.new([left_out])
            if attribute.kind == "nominal" and (is_new or self._code(i, left_out) != 0):
                first = f"{shown(attribute.name)} has the first value {shown(left_out)}"
                rest = "which the sparse rows of ARFF leave out; expected is one that means 0"
                raise DataError(self.path, attribute.line, f"attribute {first}, {rest}")


# ------------------------------------------------------------------------------------- the data set


@dataclass(frozen=True, eq=False)
class ArffSchema(ColumnSchema):
    """How an ARFF file is read."""

    format = "arff"

    def raws(self, path: Path, labels: bool, rows: int) -> Iterator[Raw]:
        with opened(path, self.max_bytes) as file:
            lines = numbered(file, path)
            header = read_header(lines, path, self.encoding)
            place = {name: i for i, name in enumerate(header.names)}
            wanted = {*self.features.columns.tolist(), *(self.labels.columns if labels else ())}
            header.require(sorted(wanted), path)
            kinds = [self._kind(a, path) if a.name in wanted else None for a in header.attributes]
            reader = _Reader(header, kinds, path, self.encoding)
            for block in blocks(lines, rows):
                codes, texts, where, new = reader.block(block)
                cells = None
                if labels and self.labels.column is not None:
                    cells = texts[self.labels.column]
                elif labels:
                    cells = codes[:, [place[name] for name in self.labels.columns]]
                inputs = codes[:, [place[name] for name in self.features.coded]]
                if codes.shape[0]:
                    yield Raw(inputs, texts, cells, where, new)

    def texts(self, path: File, columns: Sequence[str]) -> Iterator[tuple[str, ...]]:
        kept = Features([*dict.fromkeys(columns)], {name: Text() for name in columns})
        with named(path):
            for raw in replace(self, features=kept).raws(existing(path), False, BLOCK_ROWS):
                yield from zip(*(raw.texts[name] for name in columns), strict=True)

    def _kind(self, attribute: Attribute, path: Path) -> Any:
        """How the values of an attribute are read."""
        name, values = attribute.name, attribute.values
        binary, is_nominal = Number(binary=True), attribute.kind == "nominal"
        if name == self.labels.column:
            return Text()
        if name in self.labels.columns:
            if attribute.kind == "numeric":
                return Number()
            if not is_nominal or any(binary.code(value) is None for value in values):
                declared = some(list(values)) if values else attribute.kind
                reason = f"label {shown(name)} must be declared {{0,1}}, not {declared}"
                raise DataError(path, attribute.line, reason)
            return binary
        kind = self.features.kinds.get(name)
        if kind is None and is_nominal and set(values) == {"0", "1"}:
            return binary
        expected = "nominal" if isinstance(kind, Categories) else "numeric"
        if not isinstance(kind, Text) and attribute.kind != expected:
            raise DataError(path, attribute.line, f"attribute {shown(name)} must be {expected}")
        return kind or Number()


@Reader
def read_arff(
    path: File,
    *,
    labels: Sequence[str] | int | None = None,
    xml: File | None = None,
    text: Sequence[str] = (),
    text_options: Mapping[str, Any] | None = None,
    drop: Sequence[str] = (),
    dag: bool | None = None,
    unseen_categories: str = "refuse",
    unknown_labels: str = "refuse",
    dtype: str = "float64",
    encoding: str = "utf-8",
    max_bytes: int | None = None,
) -> First:
    r"""Read an ARFF file, dense or sparse.

    Numbers are features as they are. A nominal attribute is a 0/1 feature for each value but the
    first, which sparse rows of ARFF leave out; {0,1} is the number itself. Strings have to be named
    in ``text`` or ``drop``.

    Parameters
    ----------
    path, unknown_labels, dtype, encoding, max_bytes
        As in `read`.
    labels : list of str, or int, optional
        The attributes that are labels; or how many, first or, if negative, last (MEKA's ``-C``).
    xml : path, optional
        Mulan's XML file; by default that of the same name, if it is needed.
    text, text_options : list of str and dict, optional
        Attributes of text, for TF-IDF, and options of scikit-learn's TfidfVectorizer.
    drop : list of str
        Attributes not to read.
    dag : bool, optional
        Whether the values of a hierarchical attribute are edges ``parent/child`` between labels
        (Clus writes the Gene Ontology so; a label may have several parents, ``root`` is no label)
        and not paths from the root. By default they are edges if each has two parts, one is
        ``root/...`` or leads on from the child of another, and what stands above them is not
        listed too; a file that could be either is refused.
    unseen_categories : {"refuse", "zeros"}
        What a value of a nominal attribute means that later files declare and this one does not.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> text = "@relation tiny\n@attribute size numeric\n@attribute red {0,1}\n@data\n1.5,1\n2,0\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (file := Path(folder, "tiny.arff")).write_text(text)
    ...     print(read_arff(file, labels=["red"]))
    tiny: 2 rows, 1 feature, 1 label, 0.50 labels per row, 2 distinct sets
    """
    file = existing(path)
    with opened(file, max_bytes) as stream:
        header = read_header(numbered(stream, file), file, encoding)
    source = labels_of(header, labels, xml, file, dag)
    kinds = {name: Text(dict(text_options or {})) for name in text}
    features = _features(header, {*source.columns, *drop}, file, kinds, dtype)
    features = features.reading(unseen_categories)
    schema = ArffSchema(features, source, unknown_labels, encoding, max_bytes)
    title = header.relation.partition(":")[0].strip()
    return schema.first(lambda: schema.raws(file, True, BLOCK_ROWS), name=title)


def _features(
    header: Header, others: set[str], path: Path, kinds: dict[str, Any], dtype: str
) -> Features:
    """The attributes that are features, all but ``others``; ``kinds`` are those of text."""
    header.require([*kinds, *others], path)
    inputs = [attribute for attribute in header.attributes if attribute.name not in others]
    if not inputs:
        raise DataError(path, header.line, "no attribute is left to be a feature")
    for attribute in inputs:
        name = attribute.name
        if name not in kinds and attribute.kind == "nominal" and attribute.values != ("0", "1"):
            kinds[name] = Categories(attribute.values, base=True)
        elif name not in kinds and attribute.kind not in ("numeric", "nominal"):
            reason = f"attribute {shown(name)} is of the type {attribute.kind}; read it as text"
            text, drop = (argument(option, [name]) for option in ("text", "drop"))
            hint = f"({text}) or leave it out ({drop})"
            raise DataError(path, attribute.line, f"{reason} {hint}")
    return Features([attribute.name for attribute in inputs], kinds, dtype)

"""ARFF files of Mulan (with an XML file), MEKA and Clus, dense and sparse.

No well-kept library reads sparse rows and hierarchical attributes. Rows of plain values are parsed
many at once by pyarrow; others (escapes, nominal values in sparse rows, mistakes) value by value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.sparse import coo_array

from setwise.datasets.arff_header import (
    QUOTED,
    Attribute,
    Header,
    cells_of,
    label_source_of,
    read_header,
    unquoted,
)
from setwise.datasets.columns import Categories, Features, Number, Text
from setwise.datasets.dataset import Dataset
from setwise.datasets.files import (
    File,
    Lines,
    Place,
    blocks,
    decoded,
    existing,
    named,
    numbered,
    opened,
    parsed,
    refuse,
    shown,
)
from setwise.datasets.label_source import LabelList, LabelSource
from setwise.datasets.schema import BLOCK_ROWS, NamedColumns, Raw, Rows
from setwise.datasets.sparse_text import Entries, quick_entries, sparse_matrix
from setwise.labels import some

_ENTRY = re.compile(rf"\s*(\d+)\s+({QUOTED}|[^\s,'\"]+)\s*(,|$)")


# --------------------------------------------------------------------------------------------- rows


class _RowReader:
    """Reads lines of one ARFF file; ``kinds`` are those of its attributes, None to skip one."""

    def __init__(self, header: Header, kinds: Sequence[Any], path: Path, encoding: str):
        self.attributes, self.kinds = header.attributes, kinds
        self.path, self.encoding = path, encoding
        self.declared = [frozenset(attribute.values) for attribute in header.attributes]
        self.texts = [i for i, kind in enumerate(kinds) if isinstance(kind, Text)]
        self.binary = np.array([kind == Number(binary=True) for kind in kinds], bool)
        # Attributes whose values are numbers and their own codes.
        pairs = zip(kinds, self.declared, strict=True)
        self.plain = [isinstance(k, Number) and values <= {"0", "1"} for k, values in pairs]

    def block(self, lines: Lines) -> tuple[Any, dict[str, list[str]], Place]:
        """The rows on some lines: codes (n, n_attributes), texts by name, and their place."""
        kept = [(number, line.strip()) for number, line in lines]
        kept = [(number, line) for number, line in kept if line and not line.startswith(b"%")]
        texts = {self.attributes[i].name: [""] * len(kept) for i in self.texts}
        place = Place(self.path, lambda row: kept[row][0])
        if any(line.startswith(b"{") for _, line in kept):
            self._refuse_left_out()
            entries = self._quick_sparse(kept) or self._slow(kept, texts)
            codes: Any = sparse_matrix(entries, len(self.kinds), place)
        else:
            codes = self._quick_dense(kept, texts) if kept else None
            if codes is None:
                codes = self._slow(kept, texts).values.reshape(len(kept), len(self.kinds))
        self._check(codes, place)
        return codes, texts, place

    def _quick_dense(self, lines: Lines, texts: dict[str, list[str]]) -> Any:
        """All rows at once, as codes; None if some are out of the ordinary."""
        text = b"\n".join([line for _, line in lines])
        if b'"' in text or b"\\" in text or text.count(b"'") % 2 or self.encoding != "utf-8":
            return None
        types = {
            attribute.name: None if kind is None else pa.float64() if plain else pa.string()
            for attribute, kind, plain in zip(self.attributes, self.kinds, self.plain, strict=True)
        }
        table = parsed(text, types, ["?"], quote_char="'", double_quote=False)
        if table is None or len(table) != len(lines):
            return None
        codes = np.zeros((len(lines), len(types)))
        for i, (name, kind) in enumerate(types.items()):
            if kind == pa.float64():
                codes[:, i] = table.column(name).to_numpy()
            elif kind is not None:
                cells = [cell.strip() for cell in table.column(name).to_pylist()]
                each = {cell: self._code(i, cell) for cell in set(cells)}
                if None in each.values():
                    return None
                codes[:, i] = [each[cell] for cell in cells]
                if name in texts:
                    texts[name] = cells
        return codes

    def _quick_sparse(self, lines: Lines) -> Entries | None:
        """All rows at once, if they are plain numbers in braces and nothing else; else None."""
        plain = all(p or kind is None for p, kind in zip(self.plain, self.kinds, strict=True))
        bodies = [line[1:-1].strip() for _, line in lines if line[:1] + line[-1:] == b"{}"]
        if not plain or len(bodies) < len(lines):
            return None
        counts = [body.count(b",") + 1 if body else 0 for body in bodies]
        pairs = b"\n".join(bodies).replace(b", ", b",").replace(b",", b"\n")
        return quick_entries(counts, pairs, " ")

    def _slow(self, lines: Lines, texts: dict[str, list[str]]) -> Entries:
        """Value by value: what is wrong is named."""
        ends, indices, values = [0], [], []
        for row, (number, line) in enumerate(lines):
            text = decoded(line, self.path, number, self.encoding)
            for index, cell in self._entries(text, number):
                name, code = self.attributes[index].name, self._code(index, cell)
                if code is None:
                    reason = self._wrong(index, cell)
                    refuse(self.path, number, f"attribute {shown(name)} {reason}")
                if name in texts:
                    texts[name][row] = cell
                indices.append(index)
                values.append(code)
            ends.append(len(indices))
        return Entries(np.array(ends), np.array(indices, np.int64), np.array(values, np.float64))

    def _entries(self, text: str, number: int) -> Iterator[tuple[int, str]]:
        """Attribute and value of each entry of a row."""
        count = len(self.attributes)
        if not text.startswith("{"):
            cells = cells_of(text, self.path, number)
            if len(cells) != count:
                reason = f"{len(cells)} values, but {count} attributes are declared"
                refuse(self.path, number, reason)
            yield from enumerate(cells)
            return
        if not text.endswith("}"):
            refuse(self.path, number, "a sparse row that does not end with '}': cut off?")
        body, place = text[1:-1].strip(), 0
        while place < len(body):
            found = _ENTRY.match(body, place)
            if found is None:
                near = f"near {shown(body[place:])} it is not"
                refuse(self.path, number, f"expected is '{{index value, ...}}', but {near}")
            index = int(found.group(1)) if len(found.group(1)) < 18 else 2**62
            if index >= count:
                refuse(self.path, number, f"index {index}; expected is 0 to {count - 1}")
            yield index, unquoted(found.group(2))
            place = found.end()

    def _code(self, index: int, cell: str) -> float | None:
        """What stands for a value; None if it is wrong."""
        kind, declared = self.kinds[index], self.declared[index]
        if kind is None or isinstance(kind, Text):
            return 0.0
        if cell == "?":
            return nan
        return None if declared and cell not in declared else kind.code(cell)

    def _wrong(self, index: int, cell: str) -> str:
        values = self.attributes[index].values
        if values and cell not in values:
            return f"is {shown(cell)}, which is not declared; declared are {some(list(values))}"
        return self.kinds[index].wrong(cell)

    def _refuse_left_out(self) -> None:
        """Raise if the value that sparse rows leave out is not the one with code 0."""
        for i, attribute in enumerate(self.attributes):
            if attribute.kind == "nominal" and self._code(i, attribute.values[0]) != 0:
                what = f"attribute {shown(attribute.name)} has the first value"
                rest = "which the sparse rows of ARFF leave out; expected is one that means 0"
                reason = f"{what} {shown(attribute.values[0])}, {rest}"
                refuse(self.path, attribute.line, reason)

    def _check(self, codes: Any, place: Place) -> None:
        """Raise for infinite values, and values of 0/1 attributes that are neither."""
        entries = coo_array(codes)
        values, binary = entries.data, self.binary[entries.col]
        wrong = np.isinf(values) | (binary & (values != 1) & (values != 0) & ~np.isnan(values))
        if wrong.any():
            entry = int(np.argmax(wrong))
            name = shown(self.attributes[entries.col[entry]].name)
            expected = "0 or 1" if binary[entry] else "a finite number"
            reason = f"attribute {name} must be {expected}, but it is {values[entry]:g}"
            raise place.error(entries.row[entry], reason)


# ------------------------------------------------------------------------------------- the data set


@dataclass(frozen=True, eq=False)
class ArffSchema(NamedColumns):
    """How an ARFF file is read."""

    @property
    def format(self) -> str:
        return "arff"

    def parts(self, path: Path, labels: bool, rows: int) -> Iterator[Rows]:
        return map(self.rows, self.raws(path, labels, rows))

    def raws(self, path: Path, labels: bool, rows: int) -> Iterator[Raw]:
        """The rows of a file as codes and text, by the names of its attributes."""
        with opened(path, self.max_bytes) as file:
            lines = numbered(file, path)
            header = read_header(lines, path, self.encoding)
            place = {attribute.name: i for i, attribute in enumerate(header.attributes)}
            wanted = [*self.features.columns.tolist(), *(self.labels.columns if labels else ())]
            missing = [name for name in wanted if name not in place]
            if missing:
                refuse(path, header.line, f"attributes are missing: {some(missing)}")
            kinds = [self._kind(a, a.name in wanted, path) for a in header.attributes]
            reader = _RowReader(header, kinds, path, self.encoding)
            for block in blocks(lines, rows):
                codes, texts, where = reader.block(block)
                cells = None
                if labels and isinstance(self.labels, LabelList):
                    cells = texts[self.labels.column]
                elif labels:
                    cells = codes[:, [place[name] for name in self.labels.columns]]
                inputs = codes[:, [place[name] for name in self.features.coded]]
                if codes.shape[0]:
                    yield Raw(inputs, texts, cells, where)

    def _kind(self, attribute: Attribute, wanted: bool, path: Path) -> Any:
        """How the values of an attribute are read; None if they are not."""
        name, values = attribute.name, attribute.values
        if not wanted:
            return None
        if name in self.labels.columns:
            if isinstance(self.labels, LabelList):
                return Text()
            if attribute.kind == "numeric":
                return Number()
            if not values or any(Number(binary=True).code(value) is None for value in values):
                declared = some(list(values)) if values else attribute.kind
                reason = f"label {shown(name)} must be declared {{0,1}}, not {declared}"
                refuse(path, attribute.line, reason)
            return Number(binary=True)
        kind = self.features.kinds.get(name)
        expected = "nominal" if isinstance(kind, Categories) else "numeric"
        if kind is None and attribute.kind == "nominal" and set(values) == {"0", "1"}:
            return Number(binary=True)
        if not isinstance(kind, Text) and attribute.kind != expected:
            refuse(path, attribute.line, f"attribute {shown(name)} must be {expected}")
        return kind or Number()


def read_arff(
    path: File,
    *,
    labels: Sequence[str] | int | None = None,
    xml: File | None = None,
    text: Sequence[str] = (),
    text_options: Mapping[str, Any] | None = None,
    drop: Sequence[str] = (),
    dag: bool | None = None,
    unknown_labels: str = "refuse",
    dtype: str = "float64",
    encoding: str = "utf-8",
    max_bytes: int | None = None,
) -> Dataset:
    """Read an ARFF file, dense or sparse.

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
    """
    file = existing(path)
    with named(path):
        with opened(file, max_bytes) as stream:
            header = read_header(numbered(stream, file), file, encoding)
        source = label_source_of(header, labels, xml, file, dag)
        kinds = {name: Text(dict(text_options or {})) for name in text}
        features = _features(header, source, file, kinds, drop, dtype)
        schema = ArffSchema(features, source, unknown_labels, encoding, max_bytes)
        title = header.relation.partition(":")[0].strip()
        return schema.first(schema.raws(file, True, BLOCK_ROWS), path, name=title)


def _features(
    header: Header,
    source: LabelSource,
    path: Path,
    kinds: dict[str, Any],
    drop: Sequence[str],
    dtype: str,
) -> Features:
    """The attributes that are features; ``kinds`` are those of text."""
    known = {attribute.name for attribute in header.attributes}
    missing = [name for name in (*kinds, *drop) if name not in known]
    if missing:
        refuse(path, header.line, f"text or drop names what is no attribute: {some(missing)}")
    others = {*source.columns, *drop}
    inputs = [attribute for attribute in header.attributes if attribute.name not in others]
    if not inputs:
        refuse(path, header.line, "no attribute is left to be a feature")
    for attribute in inputs:
        name = attribute.name
        if name in kinds:
            continue
        if attribute.kind == "nominal" and attribute.values != ("0", "1"):
            kinds[name] = Categories(attribute.values, base=True)
        elif attribute.kind not in ("numeric", "nominal"):
            refuse(
                path,
                attribute.line,
                f"attribute {shown(name)} is of the type {attribute.kind}; read it as text "
                f"(text=[{name!r}]) or leave it out (drop=[{name!r}])",
            )
    return Features([attribute.name for attribute in inputs], kinds, dtype)

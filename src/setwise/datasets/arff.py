"""ARFF files of Mulan (with an XML file), MEKA and Clus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from setwise.datasets.arff_header import Attribute, Header, read_header
from setwise.datasets.arff_labels import label_source_of
from setwise.datasets.arff_rows import CODED, PLAIN, SKIPPED, TEXT, Column, RowReader
from setwise.datasets.data_error import refuse, shown
from setwise.datasets.dataset import Dataset
from setwise.datasets.features import Categories, Features, Text
from setwise.datasets.label_source import (
    TRUTH,
    LabelList,
    LabelSource,
    Place,
    labelled,
)
from setwise.datasets.lines import blocks, numbered, opened
from setwise.datasets.schema import File, Rows, existing, gathered, named, title_of
from setwise.datasets.streamed import BLOCK_ROWS, NamedColumns
from setwise.labels import some


@dataclass(frozen=True, eq=False)
class ArffSchema(NamedColumns):
    """How an ARFF file is read: attributes are found by their names, others are not looked at.

    Parameters
    ----------
    features : Features
        Which attributes are features, and how.
    labels : LabelColumns or LabelList
        Which are labels.
    unknown_labels : {"refuse", "leave_out"}
        What is done with a row that has an unknown label ('?').
    encoding : str
        Of names and text.
    max_bytes : int, optional
        How much a compressed file may unfold to.
    """

    encoding: str = "utf-8"
    max_bytes: int | None = None

    @property
    def format(self) -> str:
        """Always "arff"."""
        return "arff"

    def parts(self, path: Path, labels: bool, rows: int) -> Iterator[Rows]:
        """The rows of a file, at most so many at a time."""
        return (self._rows(raw, path) for raw in self._raw(path, labels, rows))

    def _raw(self, path: Path, labels: bool, rows: int) -> Iterator[_Raw]:
        """The rows of a file as codes and text, by the names of its attributes."""
        with opened(path, self.max_bytes) as file:
            lines = numbered(file, path)
            header = read_header(lines, path, self.encoding)
            columns = self._columns(header, path, labels)
            reader = RowReader(columns, path, self.encoding)
            place = {attribute.name: i for i, attribute in enumerate(header.attributes)}
            inputs = [place[name] for name in self.features.coded]
            for block in blocks(lines, rows):
                codes, texts, numbers = reader.block(block)
                if not numbers:
                    continue
                cells = None
                if labels and isinstance(self.labels, LabelList):
                    cells = texts[self.labels.column]
                elif labels:
                    cells = _taken(codes, [place[name] for name in self.labels.columns])
                yield _Raw(_taken(codes, inputs), texts, cells, numbers)

    def _columns(self, header: Header, path: Path, labels: bool) -> list[Column]:
        wanted = [*self.features.columns.tolist(), *(self.labels.columns if labels else ())]
        there = {attribute.name for attribute in header.attributes}
        missing = [name for name in wanted if name not in there]
        if missing:
            refuse(path, header.line, f"attributes are missing: {some(missing)}")
        inputs = set(self.features.columns.tolist())
        targets = set(self.labels.columns) if labels else set()
        return [self._column(a, inputs, targets, path) for a in header.attributes]

    def _column(self, attribute: Attribute, inputs: set, targets: set, path: Path) -> Column:
        if attribute.name in targets:
            return self._label_column(attribute, path)
        kind = self.features.kinds.get(attribute.name)
        if attribute.name not in inputs:
            return Column(attribute, SKIPPED)
        if isinstance(kind, Text):
            return Column(attribute, TEXT)
        if kind is not None:
            unseen = 0.0 if kind.unseen == "zeros" else None
            if attribute.kind != "nominal":
                refuse(path, attribute.line, f"attribute {shown(attribute.name)} must be nominal")
            return Column(attribute, CODED, kind.codes, unseen)
        if attribute.kind == "nominal" and set(attribute.values) == {"0", "1"}:
            return Column(attribute, CODED, {"0": 0.0, "1": 1.0})
        if attribute.kind != "numeric":
            refuse(path, attribute.line, f"attribute {shown(attribute.name)} must be numeric")
        return Column(attribute, PLAIN)

    def _label_column(self, attribute: Attribute, path: Path) -> Column:
        if isinstance(self.labels, LabelList):
            return Column(attribute, TEXT)
        if attribute.kind == "numeric":
            return Column(attribute, PLAIN)
        codes = {v: TRUTH[v.lower()] for v in attribute.values if v.lower() in TRUTH}
        if not codes or len(codes) < len(attribute.values):
            declared = attribute.kind if not attribute.values else some(list(attribute.values))
            refuse(
                path,
                attribute.line,
                f"label {shown(attribute.name)} must be declared {{0,1}}, not {declared}",
            )
        return Column(attribute, CODED, codes)

    def _rows(self, raw: _Raw, path: File) -> Rows:
        X = self.features.assemble(raw.inputs, raw.texts)
        if raw.cells is None:
            return Rows(X)
        made = labelled(self.labels, raw.cells, Place(path, raw.lines), self.unknown_labels)
        return Rows(X if made.known.all() else X[made.known], made.Y, made.specific)


class _Raw(NamedTuple):
    """Some rows: codes of the features, texts, codes or lists of the labels, lines."""

    inputs: Any
    texts: dict[str, list[str]]
    cells: Any
    lines: list[int]


def _taken(codes: Any, columns: list[int]) -> Any:
    """Some columns; without a copy if they stand side by side in an array."""
    first = columns[0] if columns else 0
    if columns == list(range(first, first + len(columns))):
        return codes[:, first : first + len(columns)]
    return codes[:, columns]


# ------------------------------------------------------------------------------------ a first file


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
    path : path
        The file; compressed if its name ends in .gz, .bz2, .xz or .zst.
    labels : list of str, or int, optional
        The attributes that are labels; or how many, first or, if negative, last (MEKA's ``-C``).
    xml : path, optional
        Mulan's XML file; by default that of the same name, if it is needed.
    text : list of str
        Attributes of text, for TF-IDF.
    text_options : dict, optional
        Options of scikit-learn's TfidfVectorizer.
    drop : list of str
        Attributes not to read.
    dag : bool, optional
        Whether the values of a hierarchical attribute are edges ``parent/child`` between labels
        (Clus writes the Gene Ontology so; a label may have several parents, ``root`` is no label)
        and not paths from the root. By default they are edges if each has two parts, one is
        ``root/...`` or leads on from the child of another, and what stands above them is not
        listed too; a file that could be either is refused.
    unknown_labels : {"refuse", "leave_out"}
        What is done with a row that has an unknown label ('?').
    dtype : {"float64", "float32"}
        Type of X.
    encoding : str
        Of names and text.
    max_bytes : int, optional
        How much a compressed file may unfold to; by default 256 MiB and 200 times its size.
    """
    file = existing(path)
    with named(path):
        with opened(file, max_bytes) as stream:
            header = read_header(numbered(stream, file), file, encoding)
        source = label_source_of(header, labels, xml, file, dag)
        features = _features(header, source, file, text, text_options or {}, drop, dtype)
        schema = ArffSchema(features, source, unknown_labels, encoding, max_bytes)
        parts: Iterable[_Raw] = schema._raw(file, True, BLOCK_ROWS)
        if features.texts:
            parts = list(parts)
            texts = {
                name: [t for part in parts for t in part.texts[name]] for name in features.texts
            }
            schema = replace(schema, features=features.fitted(texts))
        title = header.relation.partition(":")[0].strip() or title_of(path)
        return gathered(schema, (schema._rows(part, path) for part in parts), path, name=title)


def _features(
    header: Header,
    source: LabelSource,
    path: Path,
    text: Sequence[str],
    text_options: Mapping[str, Any],
    drop: Sequence[str],
    dtype: str,
) -> Features:
    known = {attribute.name for attribute in header.attributes}
    missing = [name for name in (*text, *drop) if name not in known]
    if missing:
        refuse(path, header.line, f"text or drop names what is no attribute: {some(missing)}")
    others = {*source.columns, *drop}
    inputs = [attribute for attribute in header.attributes if attribute.name not in others]
    if not inputs:
        refuse(path, header.line, "no attribute is left to be a feature")
    kinds: dict[str, Categories | Text] = {}
    for attribute in inputs:
        if attribute.name in text:
            kinds[attribute.name] = Text(dict(text_options))
        elif attribute.kind == "nominal" and attribute.values != ("0", "1"):
            kinds[attribute.name] = Categories(attribute.values, base=True)
        elif attribute.kind not in ("numeric", "nominal"):
            name = attribute.name
            refuse(
                path,
                attribute.line,
                f"attribute {shown(name)} is of the type {attribute.kind}; read it as text "
                f"(text=[{name!r}]) or leave it out (drop=[{name!r}])",
            )
    return Features([attribute.name for attribute in inputs], kinds, dtype)

"""ARFF files of Mulan (with an XML file), MEKA and Clus, dense and sparse.

No well-kept library reads sparse rows and hierarchical attributes. Rows of plain values are parsed
many at once by pyarrow; others (escapes, nominal values in sparse rows, mistakes) value by value.

Which attributes are labels is said, in this order, by ``labels``, by ``xml``, by MEKA's ``-C n`` in
the name of the relation, by a ``hierarchical`` attribute of Clus, or by the XML file of Mulan
beside the file. Labels have the order of the attributes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from math import nan
from pathlib import Path
from typing import Any, NamedTuple
from xml.parsers import expat

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from setwise.datasets.columns import Categories, Features, Labels, Number, Text
from setwise.datasets.dataset import Dataset, repeated
from setwise.datasets.schema import NamedColumns, Raw
from setwise.datasets.sparse_text import BLOCK_ROWS, Lines, blocks, sparse_matrix
from setwise.datasets.table import compute
from setwise.files import (
    DataError,
    File,
    NumberedLines,
    Place,
    decoded,
    existing,
    named,
    numbered,
    opened,
    plain_name,
    shown,
)
from setwise.labels import some

# Levels of a path of labels: deeper ones would make names longer than the file.
MAX_DEPTH = 64
MOST_XML = 2**26
# A name or a value: quoted with ' or ", with \ before any character, or bare.
QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_NAME = re.compile(rf"\s*({QUOTED}|[^\s{{}}'\"][^\s{{}}]*)")
_CELL = re.compile(rf"(?:\s*({QUOTED})\s*|([^,'\"]*))(,|$)")
_ENTRY = re.compile(rf"\s*(\d+)\s+({QUOTED}|[^\s,'\"]+)\s*(,|$)")
_MEKA = re.compile(r"(?:^|[\s:])-[cC]\s+(-?\d{1,9})\b")
_PART = re.compile(r"[-_.](train|test|valid|dev|trainvalid)$")
TYPES = dict.fromkeys(("numeric", "real", "integer"), "numeric") | {
    "string": "string",
    "date": "date",
}


# ------------------------------------------------------------------------------------------- header


class Attribute(NamedTuple):
    """One column: its name, its kind, the values of a nominal or hierarchical one, its line."""

    name: str
    kind: str
    values: tuple[str, ...]
    line: int


class Header(NamedTuple):
    """What stands before the rows, and the line of ``@data``."""

    relation: str
    attributes: tuple[Attribute, ...]
    line: int


def read_header(lines: NumberedLines, path: Path, encoding: str) -> Header:
    """Read up to and with ``@data``."""
    relation, number, reason = "", None, "the file ends before @data: cut off, or no ARFF file"
    attributes: dict[str, Attribute] = {}
    for number, line in lines:
        if line.lstrip().startswith(b"%"):
            continue
        text = decoded(line.strip(), path, number, encoding)
        keyword, _, rest = text.replace("\t", " ", 1).partition(" ")
        match keyword.lower():
            case "@relation":
                relation = _unquoted(rest.strip())
            case "@attribute":
                attribute = _attribute(rest, path, number)
                if attribute.name in attributes:
                    reason = f"attribute {shown(attribute.name)} is declared twice"
                    break
                attributes[attribute.name] = attribute
            case "@data" if attributes:
                return Header(relation, tuple(attributes.values()), number)
            case _ if text:
                expected = "expected is @relation, @attribute or, after some, @data"
                reason = f"{expected}, not {shown(text)}"
                break
    raise DataError(path, number, reason)


def _unquoted(token: str) -> str:
    """A name or value without its quotes and escapes."""
    if len(token) >= 2 and token[0] in "'\"" and token[-1] == token[0]:
        token = token[1:-1]
    return re.sub(r"\\(.)", r"\1", token) if "\\" in token else token


def _attribute(rest: str, path: Path, line: int) -> Attribute:
    """What stands after ``@attribute``: a name, and a type."""
    found = _NAME.match(rest)
    name, kind = (_unquoted(found[1]), rest[found.end() :].strip()) if found else ("", rest)
    word, _, more = kind.partition(" ")
    word, values, reason = word.lower(), [], ""
    if word in TYPES:
        word = TYPES[word]
    elif kind.startswith("{"):
        word, values = "nominal", _cells(kind[1:].removesuffix("}"), path, line)
        reason = "" if kind.endswith("}") else "has no closing '}'"
    elif word == "hierarchical":
        values = [part.strip() for part in more.split(",")]
    else:
        known = f"{', '.join(TYPES)}, {{values}} and hierarchical"
        reason = f"has the type {shown(kind)}; known are {known}"
    if values == [""] or repeated(values) is not None:
        reason = f"has the value {shown(repeated(values))} twice" if values[1:] else "has no values"
    if reason:
        raise DataError(path, line, f"attribute {shown(name)} {reason}")
    return Attribute(name, word, tuple(values), line)


def _cells(text: str, path: Path, line: int) -> list[str]:
    """Values with commas between them."""
    if "'" not in text and '"' not in text:
        return [_unquoted(cell.strip()) for cell in text.split(",")]
    cells, place, comma = [], 0, ","
    while comma:
        found = _CELL.match(text, place)
        if found is None:
            near = shown(text[place:])
            raise DataError(path, line, f"a quote that is not closed, near {near}")
        quoted, bare, comma = found.groups()
        cells.append(_unquoted(quoted or bare.strip()))
        place = found.end()
    return cells


# ------------------------------------------------------------------------------------------- labels


def labels_of(
    header: Header, labels: Sequence[str] | int | None, xml: File | None, path: Path, dag: Any
) -> Labels:
    """Where the labels stand; a file that does not say it is refused."""
    names = [attribute.name for attribute in header.attributes]
    meka = _MEKA.search(header.relation)
    hierarchical = [a for a in header.attributes if a.kind == "hierarchical"]
    if labels is None and xml is None and meka:
        labels = int(meka[1])
    if isinstance(labels, int):
        if not 0 < abs(labels) < len(names):
            counts = f"{abs(labels)} labels, but {len(names)} attributes"
            raise DataError(path, None, f"{counts}; expected are some labels and some features")
        return Labels(names[:labels] if labels > 0 else names[labels:])
    if labels is None and xml is None and hierarchical:
        if len(hierarchical) > 1:
            raise DataError(path, hierarchical[1].line, "a second hierarchical attribute")
        return _hierarchical(hierarchical[0], path, dag)
    edges: list[tuple[str, str]] = []
    if labels is None:
        beside = xml_beside(path) if xml is None else existing(xml)
        if beside is None:
            what = "which attributes are labels? Name them (labels=[...]), say how many (labels=6:"
            rest = "the first, labels=-6: the last), or name the XML file of Mulan (xml=...)"
            raise DataError(path, header.line, f"{what} {rest}")
        labels, edges = read_xml(beside)
    missing = [name for name in labels if name not in set(names)]
    if missing:
        raise DataError(path, header.line, f"labels that are no attributes: {some(missing)}")
    if (twice := repeated(list(labels))) is not None:
        raise ValueError(f"labels must differ, but {twice!r} is named twice")
    ordered = [name for name in names if name in set(labels)]
    number = {name: i for i, name in enumerate(ordered)}
    return Labels(ordered, [(number[a], number[b]) for a, b in edges] or None)


def _hierarchical(attribute: Attribute, path: Path, dag: bool | None) -> Labels:
    """Labels that are nodes of edges parent/child, or paths a/b/c; above stands before below."""
    values = [value.split("/") for value in attribute.values]
    if dag is None:
        dag = _is_dag(attribute, values, path)
    nodes: dict[str, None] = {}
    pairs: list[tuple[str, str]] = []
    for value, parts in zip(attribute.values, values, strict=True):
        is_right = len(parts) == 2 and parts[1] != "root" if dag else len(parts) <= MAX_DEPTH
        if not is_right or not all(parts):
            most = f"path such as a/b/c, of at most {MAX_DEPTH} levels"
            expected = "edge parent/child, below the root or another label" if dag else most
            raise DataError(path, attribute.line, f"{shown(value)} is no {expected}")
        names = parts if dag else ["/".join(parts[: k + 1]) for k in range(len(parts))]
        names = names[1:] if dag and names[0] == "root" else names
        pairs += [pair for pair in pairwise(names) if dag or pair[1] not in nodes]
        nodes |= dict.fromkeys(names)
    circle = _circle(pairs)
    if circle:
        raise DataError(path, attribute.line, f"the edges go in a circle: {some(circle)}")
    number = {node: i for i, node in enumerate(nodes)}
    edges = [(number[above], number[below]) for above, below in pairs]
    return Labels([*nodes], edges or None, attribute.name, "@")


def _is_dag(attribute: Attribute, values: list[list[str]], path: Path) -> bool:
    """Whether the values are edges ``parent/child`` of nodes, and not paths from the root.

    Files of paths list what stands above each value: one that does, or that has a value of three
    parts or more, holds paths. A file of edges has two parts in every value, and either names the
    ``root`` of Clus or leads on from a child: ``A/B,B/C`` where no ``B`` is listed. Paths that were
    taken for edges would show at the first row that has one, as no node has a ``/`` in its name.
    Where such edges go in a circle, or stand beside values of one part, it could be either.
    """
    listed = set(attribute.values)
    if all("/".join(parts[:-1]) in listed for parts in values if len(parts) > 1):
        return False
    if max(map(len, values)) > 2 or not all(all(parts) for parts in values):
        return False
    pairs = [(parts[0], parts[1]) for parts in values if len(parts) == 2]
    above, below = ({pair[side] for pair in pairs} for side in (0, 1))
    onward = sorted((above & below) - listed)
    if "root" in above:
        onward.append("root")
    elif not onward or any(parent == child for parent, child in pairs):
        return False
    alone = [parts[0] for parts in values if len(parts) == 1]
    if alone or ("root" not in above and _circle(pairs)):
        why = f"{shown(alone[0])} is no edge" if alone else "such edges would go in a circle"
        raise DataError(
            path,
            attribute.line,
            f"the values of {shown(attribute.name)} look like edges parent/child, as "
            f"{shown(onward[0])} is not among them, but {why}; say dag=True if they are edges, "
            f"dag=False if they are paths from the root",
        )
    return True


def _circle(pairs: list[tuple[str, str]]) -> list[str]:
    """The labels of a circle that edges go in, from parent to child; empty if there is none."""
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for parent, child in pairs:
        sorter.add(child, parent)
    try:
        sorter.prepare()
    except CycleError as error:
        return error.args[1]
    return []


def xml_beside(path: Path) -> Path | None:
    """The XML file of an ARFF file: of its name, with or without -train, -test and the like."""
    stem = re.sub(r"\.arff$", "", plain_name(path))
    wanted = [f"{stem}.xml", _PART.sub("", stem) + ".xml"]
    found = {other.name.lower(): other for other in sorted(path.parent.glob("*.[xX][mM][lL]"))}
    return next((found[name] for name in wanted if name in found), None)


def read_xml(path: Path) -> tuple[list[str], list[tuple[str, str]]]:
    """The labels of a Mulan XML file and their edges; a ``label`` inside another is its child."""
    parser = expat.ParserCreate(namespace_separator=" ")
    names: dict[str, None] = {}
    edges: list[tuple[str, str]] = []
    around: list[str] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        tag, name, reason = tag.rpartition(" ")[2], attributes.get("name"), ""
        if tag != ("label" if around else "labels"):
            reason = f"expected is <label> inside <labels>, not <{shown(tag)[1:-1]}>"
        elif around and name is None:
            reason = "a <label> without a name"
        elif around and name in names:
            reason = f"the label {shown(name)} is there twice"
        if reason:
            raise DataError(path, parser.CurrentLineNumber, reason)
        if around:
            names[str(name)] = None
        if len(around) > 1:
            edges.append((around[-1], str(name)))
        around.append(str(name))

    def doctype(*_: Any) -> None:
        raise DataError(path, parser.CurrentLineNumber, "a document type: entities are not read")

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: around.pop()
    parser.StartDoctypeDeclHandler = doctype
    with opened(path) as file:
        data = file.read(MOST_XML + 1)
    if len(data) > MOST_XML:
        raise DataError(path, None, f"larger than {MOST_XML} bytes: this is no list of labels")
    try:
        parser.Parse(data, True)
    except DataError:
        raise
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise DataError(path, getattr(error, "lineno", None), f"no XML: {error}") from error
    if not names:
        raise DataError(path, None, "no <label> in it")
    return [*names], edges


# --------------------------------------------------------------------------------------------- rows


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

    def block(self, lines: Lines) -> tuple[Any, dict[str, list[str]], Place]:
        """The rows on some lines: codes (n, n_attributes), texts by name, and their place."""
        kept = [(number, line.strip()) for number, line in lines]
        kept = [(number, line) for number, line in kept if line and not line.startswith(b"%")]
        place = Place(self.path, lambda row: kept[row][0])
        ends, indices, cells = [0], [], []
        for number, line in kept:
            found = self._entries(decoded(line, self.path, number, self.encoding), number)
            indices += found[0]
            cells += found[1]
            ends.append(len(cells))
        index, rows = np.array(indices, np.int64), np.repeat(np.arange(len(kept)), np.diff(ends))
        codes = self._codes(index, cells, rows, place)
        texts = {}
        for i, kind in enumerate(self.kinds):
            if isinstance(kind, Text):
                texts[self.attributes[i].name] = column = [""] * len(kept)
                for entry in np.flatnonzero(index == i).tolist():
                    column[rows[entry]] = cells[entry]
        if not any(line.startswith(b"{") for _, line in kept):
            return codes.reshape(len(kept), len(self.kinds)), texts, place
        self._refuse_left_out()
        return sparse_matrix(ends, index, codes, len(self.kinds), place), texts, place

    def _entries(self, text: str, number: int) -> tuple[Sequence[int], list[str]]:
        """The attributes and the values of a row."""
        count, reason = len(self.attributes), ""
        if not text.startswith("{"):
            cells = _cells(text, self.path, number)
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
                cells.append(_unquoted(found[2]))
                place = found.end()
        if reason:
            raise DataError(self.path, number, reason)
        return indices, cells

    def _codes(self, index: Any, cells: list[str], rows: Any, place: Place) -> NDArray[np.float64]:
        """What stands for each value; what is wrong is named."""
        text = pa.array(cells, pa.string())
        is_plain = self.is_plain[index] & ~np.asarray(compute.equal(text, "?"))
        try:
            numbers = compute.if_else(pa.array(is_plain), text, None).cast(pa.float64())
            codes = numbers.to_numpy(zero_copy_only=False).copy()
        except pa.ArrowInvalid:
            codes, is_plain = np.zeros(len(cells)), np.zeros(len(cells), bool)
        for entry in np.flatnonzero(~is_plain).tolist():
            code = self._code(index[entry], cells[entry])
            if code is None:
                reason = self._wrong(index[entry], cells[entry])
                raise place.error(rows[entry], reason)
            codes[entry] = code
        is_odd = self.is_binary[index] & (codes != 0) & (codes != 1) & ~np.isnan(codes)
        wrong = np.flatnonzero(np.isinf(codes) | is_odd)
        if len(wrong):
            name = shown(self.attributes[index[wrong[0]]].name)
            expected = "0 or 1" if is_odd[wrong[0]] else "a finite number"
            reason = f"attribute {name} must be {expected}, but it is {codes[wrong[0]]:g}"
            raise place.error(rows[wrong[0]], reason)
        return codes

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
        declared = f"which is not declared; declared are {some(list(values))}"
        return f"attribute {shown(name)} is {shown(cell)}, {declared}"

    def _refuse_left_out(self) -> None:
        """Raise if the value that sparse rows leave out is not the one with code 0."""
        for i, attribute in enumerate(self.attributes):
            if attribute.kind == "nominal" and self._code(i, attribute.values[0]) != 0:
                first = f"{shown(attribute.name)} has the first value {shown(attribute.values[0])}"
                rest = "which the sparse rows of ARFF leave out; expected is one that means 0"
                raise DataError(self.path, attribute.line, f"attribute {first}, {rest}")


# ------------------------------------------------------------------------------------- the data set


@dataclass(frozen=True, eq=False)
class ArffSchema(NamedColumns):
    """How an ARFF file is read."""

    format = "arff"

    def raws(self, path: Path, labels: bool, rows: int) -> Iterator[Raw]:
        with opened(path, self.max_bytes) as file:
            lines = numbered(file, path)
            header = read_header(lines, path, self.encoding)
            place = {attribute.name: i for i, attribute in enumerate(header.attributes)}
            wanted = {*self.features.columns.tolist(), *(self.labels.columns if labels else ())}
            if missing := sorted(wanted - set(place)):
                raise DataError(path, header.line, f"attributes are missing: {some(missing)}")
            kinds = [self._kind(a, path) if a.name in wanted else None for a in header.attributes]
            reader = _Reader(header, kinds, path, self.encoding)
            for block in blocks(lines, rows):
                codes, texts, where = reader.block(block)
                cells = None
                if labels and self.labels.column is not None:
                    cells = texts[self.labels.column]
                elif labels:
                    cells = codes[:, [place[name] for name in self.labels.columns]]
                inputs = codes[:, [place[name] for name in self.features.coded]]
                if codes.shape[0]:
                    yield Raw(inputs, texts, cells, where)

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
        source = labels_of(header, labels, xml, file, dag)
        kinds = {name: Text(dict(text_options or {})) for name in text}
        features = _features(header, {*source.columns, *drop}, file, kinds, dtype)
        schema = ArffSchema(features, source, unknown_labels, encoding, max_bytes)
        title = header.relation.partition(":")[0].strip()
        return schema.first(schema.raws(file, True, BLOCK_ROWS), path, name=title)


def _features(
    header: Header, others: set[str], path: Path, kinds: dict[str, Any], dtype: str
) -> Features:
    """The attributes that are features, all but ``others``; ``kinds`` are those of text."""
    missing = {*kinds, *others} - {attribute.name for attribute in header.attributes}
    if missing:
        what = f"text or drop names what is no attribute: {some(sorted(missing))}"
        raise DataError(path, header.line, what)
    inputs = [attribute for attribute in header.attributes if attribute.name not in others]
    if not inputs:
        raise DataError(path, header.line, "no attribute is left to be a feature")
    for attribute in inputs:
        name = attribute.name
        if name not in kinds and attribute.kind == "nominal" and attribute.values != ("0", "1"):
            kinds[name] = Categories(attribute.values, base=True)
        elif name not in kinds and attribute.kind not in ("numeric", "nominal"):
            reason = f"attribute {shown(name)} is of the type {attribute.kind}; read it as text"
            hint = f"(text=[{name!r}]) or leave it out (drop=[{name!r}])"
            raise DataError(path, attribute.line, f"{reason} {hint}")
    return Features([attribute.name for attribute in inputs], kinds, dtype)

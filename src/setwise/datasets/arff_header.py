"""The head of an ARFF file: its relation, its attributes, and which of them are labels.

The last is said, in this order, by ``labels``, by ``xml``, by MEKA's ``-C n`` in the name of the
relation, by a ``hierarchical`` attribute of Clus, or by the XML file of Mulan beside the file.
Labels have the order of the attributes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from setwise.datasets.files import (
    DataError,
    File,
    decoded,
    existing,
    opened,
    plain_name,
    refuse,
    repeated,
    shown,
)
from setwise.datasets.label_source import LabelColumns, LabelList, LabelSource
from setwise.labels import some

# Levels of a path of labels: deeper ones would make names longer than the file.
MAX_DEPTH = 64
MOST_XML = 2**26
# A name or a value: quoted with ' or ", with \ before any character, or bare.
QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_NAME = re.compile(rf"\s*({QUOTED}|[^\s{{}}'\"][^\s{{}}]*)")
_CELL = re.compile(rf"(?:\s*({QUOTED})\s*|([^,'\"]*))(,|$)")
_ESCAPE = re.compile(r"\\(.)")
_MEKA = re.compile(r"(?:^|[\s:])-[cC]\s+(-?\d+)\b")
_PART = re.compile(r"[-_.](train|test|valid|dev|trainvalid)$")


@dataclass(frozen=True)
class Attribute:
    """One column: its name, its kind, the values of a nominal or hierarchical one, its line."""

    name: str
    kind: str
    values: tuple[str, ...] = ()
    line: int = 0


@dataclass(frozen=True)
class Header:
    """What stands before the rows, and the line of ``@data``."""

    relation: str
    attributes: tuple[Attribute, ...]
    line: int

    @property
    def meka_labels(self) -> int | None:
        """The n of MEKA's ``-C n`` in the name of the relation: labels first, or last if n < 0."""
        found = _MEKA.search(self.relation)
        return int(found.group(1)) if found and len(found.group(1)) < 10 else None


def read_header(lines: Iterator[tuple[int, bytes]], path: Path, encoding: str) -> Header:
    """Read up to and with ``@data``."""
    relation, number = "", 0
    attributes: dict[str, Attribute] = {}
    for number, raw in lines:
        line = raw.strip()
        if not line or line.startswith(b"%"):
            continue
        text = decoded(line, path, number, encoding)
        keyword, _, rest = text.replace("\t", " ", 1).partition(" ")
        match keyword.lower():
            case "@relation":
                relation = unquoted(rest.strip())
            case "@attribute":
                attribute = _attribute(rest, path, number)
                if attribute.name in attributes:
                    refuse(path, number, f"attribute {shown(attribute.name)} is declared twice")
                attributes[attribute.name] = attribute
            case "@data" if attributes:
                return Header(relation, tuple(attributes.values()), number)
            case "@data":
                refuse(path, number, "@data without any @attribute before it")
            case _:
                expected = "expected is @relation, @attribute or @data"
                refuse(path, number, f"{expected}, not {shown(line)}")
    refuse(path, number or None, "the file ends before @data: cut off, or no ARFF file")


def unquoted(token: str) -> str:
    """A name or value without its quotes and escapes."""
    if len(token) >= 2 and token[0] in "'\"" and token[-1] == token[0]:
        token = token[1:-1]
    return _ESCAPE.sub(r"\1", token) if "\\" in token else token


def _attribute(rest: str, path: Path, line: int) -> Attribute:
    found = _NAME.match(rest)
    if found is None:
        refuse(path, line, f"an attribute needs a name and a type, not {shown(rest)}")
    name, kind = unquoted(found.group(1)), rest[found.end() :].strip()
    word, _, more = kind.partition(" ")
    word = word.lower()
    if kind.startswith("{"):
        if not kind.endswith("}"):
            refuse(path, line, f"the values of attribute {shown(name)} have no closing '}}'")
        word, values = "nominal", cells_of(kind[1:-1], path, line)
    elif word == "hierarchical":
        values = [part.strip() for part in more.split(",")]
    elif word in ("numeric", "real", "integer", "string", "date"):
        return Attribute(name, word if word in ("string", "date") else "numeric", (), line)
    else:
        known = "numeric, real, integer, string, date, {values} and hierarchical"
        reason = f"attribute {shown(name)} has the type {shown(kind)}; known are {known}"
        refuse(path, line, reason)
    if repeated(values) is not None:
        reason = f"attribute {shown(name)} has the value {shown(repeated(values))} twice"
        refuse(path, line, reason)
    if values == [""]:
        refuse(path, line, f"attribute {shown(name)} has no values")
    return Attribute(name, word, tuple(values), line)


def cells_of(text: str, path: Path, line: int) -> list[str]:
    """Values with commas between them."""
    if "'" not in text and '"' not in text:
        return [unquoted(cell.strip()) for cell in text.split(",")]
    cells, place = [], 0
    while True:
        found = _CELL.match(text, place)
        if found is None:
            refuse(path, line, f"a quote that is not closed, near {shown(text[place:])}")
        quoted, bare, comma = found.groups()
        cells.append(unquoted(quoted if quoted else bare.strip()))
        if not comma:
            return cells
        place = found.end()


# ------------------------------------------------------------------------------------------ labels


def label_source_of(
    header: Header,
    labels: Sequence[str] | int | None,
    xml: File | None,
    path: Path,
    dag: bool | None,
) -> LabelSource:
    """Where the labels stand; a file that does not say it is refused."""
    names = [attribute.name for attribute in header.attributes]
    if labels is not None and not isinstance(labels, int):
        return LabelColumns(_in_order(list(labels), names, path, header.line))
    if xml is not None:
        return _from_tree(read_xml(existing(xml)), names, path, header.line)
    count = labels if labels is not None else header.meka_labels
    if count is not None:
        if not 0 < abs(count) < len(names):
            refuse(
                path,
                1 if labels is None else None,
                f"{abs(count)} labels, but {len(names)} attributes; expected is at least one label "
                f"and one feature",
            )
        return LabelColumns(names[:count] if count > 0 else names[count:])
    hierarchical = [a for a in header.attributes if a.kind == "hierarchical"]
    if hierarchical:
        if len(hierarchical) > 1:
            refuse(path, hierarchical[1].line, "a second hierarchical attribute")
        if dag is None:
            dag = _is_dag(hierarchical[0], path)
        return (_edges if dag else _paths)(hierarchical[0], path)
    beside = xml_beside(path)
    if beside is None:
        refuse(
            path,
            header.line,
            "which attributes are labels? Name them (labels=[...]), say how many (labels=6: the "
            "first, labels=-6: the last), or name the XML file of Mulan (xml=...)",
        )
    return _from_tree(read_xml(beside), names, path, header.line)


def _in_order(labels: list[str], names: list[str], path: Path, line: int) -> list[str]:
    """The labels in the order of the attributes, none of them missing."""
    there = set(names)
    missing = [name for name in labels if name not in there]
    if missing:
        refuse(path, line, f"labels that are no attributes: {some(missing)}")
    if len(set(labels)) < len(labels):
        raise ValueError(f"labels must differ, but {repeated(labels)!r} is named twice")
    wanted = set(labels)
    return [name for name in names if name in wanted]


def _from_tree(tree: LabelTree, names: list[str], path: Path, line: int) -> LabelColumns:
    ordered = _in_order(tree.names, names, path, line)
    number = {name: i for i, name in enumerate(ordered)}
    edges = [(number[parent], number[child]) for parent, child in tree.edges]
    return LabelColumns(ordered, edges or None)


def _is_dag(attribute: Attribute, path: Path) -> bool:
    """Whether the values are edges ``parent/child`` of nodes, and not paths from the root.

    Files of paths list what stands above each value: one that does, or that has a value of three
    parts or more, holds paths. A file of edges has two parts in every value, and either names the
    ``root`` of Clus or leads on from a child: ``A/B,B/C`` where no ``B`` is listed. Paths that were
    taken for edges would show at the first row that has one, as no node has a ``/`` in its name.
    Where such edges go in a circle, or stand beside values of one part, it could be either.
    """
    values, listed = [value.split("/") for value in attribute.values], set(attribute.values)
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
        refuse(
            path,
            attribute.line,
            f"the values of {shown(attribute.name)} look like edges parent/child, as "
            f"{shown(onward[0])} is not among them, but {why}; say dag=True if they are edges, "
            f"dag=False if they are paths from the root",
        )
    return True


def _circle(pairs: list[tuple[str, str]]) -> list[str]:
    """The labels of a circle that edges go in, from parent to child; empty if there is none."""
    above: dict[str, list[str]] = {}
    for parent, child in pairs:
        above.setdefault(child, []).append(parent)
    try:
        TopologicalSorter(above).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def _paths(attribute: Attribute, path: Path) -> LabelList:
    """Labels that are paths a/b/c; an ancestor that is not listed stands before its child."""
    number: dict[str, int] = {}
    edges = []
    for value in attribute.values:
        parts = value.split("/")
        if not all(parts):
            refuse(path, attribute.line, f"{shown(value)} is no path such as a/b/c")
        if len(parts) > MAX_DEPTH:
            refuse(path, attribute.line, f"{shown(value)} has more than {MAX_DEPTH} levels")
        above = None
        for depth in range(1, len(parts) + 1):
            name = "/".join(parts[:depth])
            if name not in number:
                number[name] = len(number)
                if above is not None:
                    edges.append((number[above], number[name]))
            above = name
    return LabelList(attribute.name, "@", list(number), edges or None)


def _edges(attribute: Attribute, path: Path) -> LabelList:
    """Labels that are nodes, from edges parent/child."""
    number: dict[str, int] = {}
    pairs = []
    for value in attribute.values:
        parent, slash, child = value.partition("/")
        if not parent or not child or not slash or "/" in child:
            refuse(path, attribute.line, f"{shown(value)} is no edge parent/child")
        if child == "root":
            refuse(path, attribute.line, f"{shown(value)} leads to the root, which is no label")
        ends = [node for node in (parent, child) if node != "root"]
        for node in ends:
            number.setdefault(node, len(number))
        if len(ends) == 2:
            pairs.append((parent, child))
    circle = _circle(pairs)
    if circle:
        refuse(path, attribute.line, f"the edges go in a circle: {some(circle)}")
    edges = [(number[parent], number[child]) for parent, child in pairs]
    return LabelList(attribute.name, "@", list(number), edges or None)


# -------------------------------------------------------------------------------- XML file of Mulan


class LabelTree(NamedTuple):
    """Names of labels, and edges (parent, child) between them."""

    names: list[str]
    edges: list[tuple[str, str]]


def xml_beside(path: Path) -> Path | None:
    """The XML file of an ARFF file: of its name, with or without -train, -test and the like."""
    stem = re.sub(r"\.arff$", "", plain_name(path))
    wanted = [f"{stem}.xml", _PART.sub("", stem) + ".xml"]
    found = {other.name.lower(): other for other in sorted(path.parent.glob("*.[xX][mM][lL]"))}
    return next((found[name] for name in wanted if name in found), None)


def read_xml(path: Path) -> LabelTree:
    """The labels of a Mulan XML file, in its order; a ``label`` inside another is its child."""
    parser = expat.ParserCreate(namespace_separator=" ")
    tree, around = LabelTree([], []), []

    def wrong(reason: str) -> None:
        refuse(path, parser.CurrentLineNumber, reason)

    def start(tag: str, attributes: dict[str, str]) -> None:
        tag, name = tag.rpartition(" ")[2], attributes.get("name")
        if tag != ("label" if around else "labels"):
            wrong(f"expected is <label> inside <labels>, not <{shown(tag)[1:-1]}>")
        if around and name is None:
            wrong("a <label> without a name")
        if around and name is not None:
            if name in seen:
                wrong(f"the label {shown(name)} is there twice")
            seen.add(name)
            tree.names.append(name)
            if len(around) > 1:
                tree.edges.append((around[-1], name))
        around.append(name)

    seen: set[str] = set()
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: around.pop()
    parser.StartDoctypeDeclHandler = lambda *_: wrong("a document type: entities are not read")
    with opened(path) as file:
        data = file.read(MOST_XML + 1)
    if len(data) > MOST_XML:
        refuse(path, None, f"larger than {MOST_XML} bytes: this is no list of labels")
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise DataError(path, error.lineno, f"no XML: {expat.ErrorString(error.code)}") from error
    except DataError:
        raise
    except (ValueError, LookupError) as error:
        raise DataError(path, None, f"no XML that can be read: {error}") from error
    if not tree.names:
        refuse(path, None, "no <label> in it")
    return tree

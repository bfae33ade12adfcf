"""The head of an ARFF file: its relation, its attributes, and which of them are labels.

The last is said, in this order, by ``labels``, by ``xml``, by MEKA's ``-C n`` in the name of the
relation, by a ``hierarchical`` attribute of Clus, or by the XML file of Mulan beside the file.
Labels have the order of the attributes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from setwise.datasets.columns import Labels
from setwise.files import DataError, File, NumberedLines, decoded, existing, opened, plain_name
from setwise.spelling import argument, shown, some, unknown_names
from setwise.validation import refuse_repeated, repeated

# Levels of a path of labels: deeper ones would make names longer than the file.
MAX_DEPTH = 64
MOST_XML = 2**26
# A name or a value: quoted with ' or ", with \ before any character, or bare.
QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_NAME = re.compile(rf"\s*({QUOTED}|[^\s{{}}'\"][^\s{{}}]*)")
_CELL = re.compile(rf"(?:\s*({QUOTED})\s*|([^,'\"]*))(,|$)")
_MEKA = re.compile(r"(?:^|[\s:])-[cC]\s+(-?\d{1,9})\b")
_PART = re.compile(r"[-_.](train|test|valid|dev|trainvalid)$")
TYPES = dict.fromkeys(("numeric", "real", "integer"), "numeric") | {
    "string": "string",
    "date": "date",
}


class Attribute(NamedTuple):
    """One column: its name, its kind, the values of a nominal or hierarchical one, its line."""

    name: str
    kind: str
    values: tuple[str, ...]
    line: int

    @property
    def left_out(self) -> str:
        """What a sparse row means that leaves the attribute out."""
        return self.values[0] if self.kind == "nominal" else "0" if self.kind == "numeric" else ""


class Header(NamedTuple):
    """What stands before the rows, and the line of ``@data``."""

    relation: str
    attributes: tuple[Attribute, ...]
    line: int

    @property
    def names(self) -> list[str]:
        """The names of the attributes."""
        return [attribute.name for attribute in self.attributes]

    def require(self, wanted: Iterable[str], path: File) -> None:
        """Raise if an attribute is not there."""
        if unknown := unknown_names(wanted, self.names):
            raise DataError(path, self.line, f"no attribute {unknown}")


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
                relation = unquoted(rest.strip())
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


def unquoted(token: str) -> str:
    """A name or value without its quotes and escapes."""
    if len(token) >= 2 and token[0] in "'\"" and token[-1] == token[0]:
        token = token[1:-1]
    return re.sub(r"\\(.)", r"\1", token) if "\\" in token else token


def _attribute(rest: str, path: Path, line: int) -> Attribute:
    """What stands after ``@attribute``: a name, and a type."""
    found = _NAME.match(rest)
    name, kind = (unquoted(found[1]), rest[found.end() :].strip()) if found else ("", rest)
    word, _, more = kind.partition(" ")
    word, values, reason = word.lower(), [], ""
    if word in TYPES:
        word = TYPES[word]
    elif kind.startswith("{"):
        word, values = "nominal", cells_in(kind[1:].removesuffix("}"), path, line)
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


def cells_in(text: str, path: Path, line: int) -> list[str]:
    """Values with commas between them."""
    if "'" not in text and '"' not in text:
        cells = [cell.strip() for cell in text.split(",")]
        return list(map(unquoted, cells)) if "\\" in text else cells
    cells, place, comma = [], 0, ","
    while comma:
        found = _CELL.match(text, place)
        if found is None:
            near = shown(text[place:])
            raise DataError(path, line, f"a quote that is not closed, near {near}")
        quoted, bare, comma = found.groups()
        cells.append(unquoted(quoted or bare.strip()))
        place = found.end()
    return cells


# ------------------------------------------------------------------------------------------- labels


def labels_of(
    header: Header, labels: Sequence[str] | int | None, xml: File | None, path: Path, dag: Any
) -> Labels:
    """Where the labels stand; a file that does not say it is refused."""
    names = header.names
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
            named, first, last = (argument("labels", value) for value in ([...], 6, -6))
            what = f"which attributes are labels? Name them ({named}), say how many ({first}: the"
            rest = (
                f"first, {last}: the last), or name the XML file of Mulan ({argument('xml', ...)})"
            )
            raise DataError(path, header.line, f"{what} {rest}")
        labels, edges = read_xml(beside)
    header.require(labels, path)
    refuse_repeated(list(labels))
    wanted = set(labels)
    ordered = [name for name in names if name in wanted]
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
    names: dict[str, None] = {}
    edges: list[tuple[str, str]] = []

    def visit(element: Any, around: str | None) -> None:
        for label in element:
            tag, name = label.tag.rpartition("}")[2], label.get("name")
            if tag != "label" or name is None or name in names:
                expected = "expected are <label name=...> inside <labels>, no two alike"
                raise DataError(path, None, f"{expected}, not <{tag} name={shown(name)}>")
            names[name] = None
            edges.extend([] if around is None else [(around, name)])
            visit(label, name)

    with opened(path) as file:
        data = file.read(MOST_XML)
    if b"<!DOCTYPE" in data:
        raise DataError(path, None, "a document type: entities are not read")
    try:
        visit(ElementTree.fromstring(data), None)
    except (ElementTree.ParseError, LookupError, RecursionError) as error:
        line = getattr(error, "position", (None,))[0]
        raise DataError(path, line, f"no XML that can be read: {error}") from error
    if not names:
        raise DataError(path, None, "no <label> in it")
    return [*names], edges

"""The XML file of Mulan: which attributes are labels, and their hierarchy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from setwise.datasets.data_error import DataError, refuse, shown
from setwise.datasets.lines import opened, plain_name

MOST_BYTES = 2**26
_PART = re.compile(r"[-_.](train|test|valid|dev|trainvalid)$")


class LabelTree(NamedTuple):
    """Names of labels, and edges (parent, child) between them."""

    names: list[str]
    edges: list[tuple[str, str]]


class _Handler:
    """Collects ``label`` elements; those inside another are its children."""

    def __init__(self, path: Path, parser: expat.XMLParserType):
        self.path, self.parser = path, parser
        self.names: dict[str, None] = {}
        self.edges: list[tuple[str, str]] = []
        self.open: list[str | None] = []
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.StartDoctypeDeclHandler = self.doctype

    def refuse(self, reason: str) -> None:
        refuse(self.path, self.parser.CurrentLineNumber, reason)

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(" ")[2]
        if tag == "labels" and not self.open:
            self.open.append(None)
            return
        if tag != "label" or not self.open:
            self.refuse(f"expected is <label> inside <labels>, not <{shown(tag)[1:-1]}>")
        name = attributes.get("name")
        if name is None:
            self.refuse("a <label> without a name")
        assert name is not None
        if name in self.names:
            self.refuse(f"the label {shown(name)} is there twice")
        self.names[name] = None
        if self.open[-1] is not None:
            self.edges.append((self.open[-1], name))
        self.open.append(name)

    def end(self, tag: str) -> None:
        self.open.pop()

    def doctype(self, *_: object) -> None:
        self.refuse("a document type: entities are not read")


def read_xml(path: Path) -> LabelTree:
    """The labels of a Mulan XML file, in its order."""
    with opened(path) as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        refuse(path, None, f"larger than {MOST_BYTES} bytes: this is no list of labels")
    parser = expat.ParserCreate(namespace_separator=" ")
    handler = _Handler(path, parser)
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise DataError(path, error.lineno, f"no XML: {expat.ErrorString(error.code)}") from error
    except (ValueError, LookupError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(path, None, f"no XML that can be read: {error}") from error
    if not handler.names:
        refuse(path, None, "no <label> in it")
    return LabelTree(list(handler.names), handler.edges)


def xml_beside(path: Path) -> Path | None:
    """The XML file of an ARFF file: of its name, with or without -train, -test and the like."""
    stem = re.sub(r"\.arff$", "", plain_name(path))
    wanted = [f"{stem}.xml", _PART.sub("", stem) + ".xml"]
    found = {other.name.lower(): other for other in sorted(path.parent.glob("*.[xX][mM][lL]"))}
    return next((found[name] for name in wanted if name in found), None)

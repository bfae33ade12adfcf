"""The head of an ARFF file: its relation and its attributes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from setwise.datasets.data_error import refuse, shown
from setwise.datasets.lines import decoded

NUMBERS = frozenset({"numeric", "real", "integer"})
# A name or a value: quoted with ' or ", with \ before any character, or bare.
QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_NAME = re.compile(rf"\s*({QUOTED}|[^\s{{}}'\"][^\s{{}}]*)")
_VALUE = re.compile(rf"(?:\s*({QUOTED})\s*|([^,'\"]*))(,|$)")
_ESCAPE = re.compile(r"\\(.)")
_MEKA = re.compile(r"(?:^|[\s:])-[cC]\s+(-?\d+)\b")


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
    relation, attributes, number = "", [], 0
    names: set[str] = set()
    for number, raw in lines:
        line = raw.strip()
        if not line or line.startswith(b"%"):
            continue
        text = decoded(line, path, number, encoding)
        keyword, _, rest = text.replace("\t", " ", 1).partition(" ")
        match keyword.lower():
            case "@relation":
                relation = plain(rest.strip())
            case "@attribute":
                attribute = _attribute(rest, path, number)
                if attribute.name in names:
                    refuse(path, number, f"attribute {shown(attribute.name)} is declared twice")
                names.add(attribute.name)
                attributes.append(attribute)
            case "@data":
                if not attributes:
                    refuse(path, number, "@data without any @attribute before it")
                return Header(relation, tuple(attributes), number)
            case _:
                refuse(
                    path,
                    number,
                    f"expected is @relation, @attribute or @data, not {shown(line)}",
                )
    refuse(path, number or None, "the file ends before @data: cut off, or no ARFF file")


def plain(token: str) -> str:
    """A name or value without its quotes and escapes."""
    if len(token) >= 2 and token[0] in "'\"" and token[-1] == token[0]:
        token = token[1:-1]
    return _ESCAPE.sub(r"\1", token) if "\\" in token else token


def _attribute(rest: str, path: Path, line: int) -> Attribute:
    found = _NAME.match(rest)
    if found is None:
        refuse(path, line, f"an attribute needs a name and a type, not {shown(rest)}")
    name, kind = plain(found.group(1)), rest[found.end() :].strip()
    if kind.startswith("{"):
        if not kind.endswith("}"):
            refuse(path, line, f"the values of attribute {shown(name)} have no closing '}}'")
        return Attribute(name, "nominal", _values(kind[1:-1], name, path, line), line)
    word, _, more = kind.partition(" ")
    word = word.lower()
    if word in NUMBERS:
        return Attribute(name, "numeric", (), line)
    if word == "hierarchical":
        values = tuple(part.strip() for part in more.split(","))
        return Attribute(name, "hierarchical", _distinct(values, name, path, line), line)
    if word in ("string", "date"):
        return Attribute(name, word, (), line)
    refuse(
        path,
        line,
        f"attribute {shown(name)} has the type {shown(kind)}; known are numeric, real, integer, "
        f"string, date, {{values}} and hierarchical",
    )


def _values(text: str, name: str, path: Path, line: int) -> tuple[str, ...]:
    values, place = [], 0
    while place <= len(text):
        found = _VALUE.match(text, place)
        if found is None:
            refuse(path, line, f"the values of attribute {shown(name)} cannot be read")
        values.append(plain(found.group(1)) if found.group(1) else found.group(2).strip())
        if not found.group(3):
            break
        place = found.end()
    return _distinct(tuple(values), name, path, line)


def _distinct(values: tuple[str, ...], name: str, path: Path, line: int) -> tuple[str, ...]:
    if len(set(values)) < len(values):
        seen: set[str] = set()
        twice = next(v for v in values if v in seen or seen.add(v))  # type: ignore
        refuse(path, line, f"attribute {shown(name)} has the value {shown(twice)} twice")
    if "" in values and len(values) == 1:
        refuse(path, line, f"attribute {shown(name)} has no values")
    return values

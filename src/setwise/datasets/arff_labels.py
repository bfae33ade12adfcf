"""Which attributes of an ARFF file are labels.

It is said, in this order, by ``labels``, by ``xml``, by MEKA's ``-C n`` in the name of the
relation, by a ``hierarchical`` attribute of Clus, or by the XML file of Mulan beside the file.
Labels have the order of the attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from setwise.datasets.arff_header import Attribute, Header
from setwise.datasets.data_error import refuse, shown
from setwise.datasets.label_source import LabelColumns, LabelList, LabelSource
from setwise.datasets.mulan_xml import LabelTree, read_xml, xml_beside
from setwise.datasets.names import repeated
from setwise.datasets.schema import File, existing
from setwise.labels.values import some

# Levels of a path of labels: deeper ones would make names longer than the file.
MAX_DEPTH = 64


def label_source_of(
    header: Header, labels: Sequence[str] | int | None, xml: File | None, path: Path, dag: bool
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
    return LabelColumns(ordered, np.array(edges) if edges else None)


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
    return LabelList(attribute.name, "@", list(number), np.array(edges) if edges else None)


def _edges(attribute: Attribute, path: Path) -> LabelList:
    """Labels that are nodes, from edges parent/child."""
    number: dict[str, int] = {}
    edges = []
    for value in attribute.values:
        parent, slash, child = value.partition("/")
        if not parent or not child or not slash or "/" in child:
            refuse(path, attribute.line, f"{shown(value)} is no edge parent/child")
        ends = [number.setdefault(n, len(number)) for n in (parent, child) if n != "root"]
        if len(ends) == 2:
            edges.append(ends)
    return LabelList(attribute.name, "@", list(number), np.array(edges) if edges else None)

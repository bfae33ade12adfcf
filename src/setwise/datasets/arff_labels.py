"""Which attributes of an ARFF file are labels.

It is said, in this order, by ``labels``, by ``xml``, by MEKA's ``-C n`` in the name of the
relation, by a ``hierarchical`` attribute of Clus, or by the XML file of Mulan beside the file.
Labels have the order of the attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import numpy as np

from setwise.datasets.arff_header import Attribute, Header
from setwise.datasets.data_error import refuse, shown
from setwise.datasets.label_source import LabelColumns, LabelList, LabelSource
from setwise.datasets.mulan_xml import LabelTree, read_xml, xml_beside
from setwise.datasets.names import repeated
from setwise.datasets.schema import File, existing
from setwise.labels import some

# Levels of a path of labels: deeper ones would make names longer than the file.
MAX_DEPTH = 64


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
    return LabelColumns(ordered, np.array(edges) if edges else None)


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
    return LabelList(attribute.name, "@", list(number), np.array(edges) if edges else None)


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
    return LabelList(attribute.name, "@", list(number), np.array(edges) if edges else None)

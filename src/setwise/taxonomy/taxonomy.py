"""A hierarchy over labels.

``edges`` has a row [parent, child] for each edge, with -1 for the virtual root that stands above
all roots. What lies above the labels of a set is found by products of sparse matrices: with
U[child, parent] = 1 for each edge between labels, the row y of a label set becomes y U, the parents
of its labels. Entries are bools, for which a sum is "or".
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise.sparse import entries_of
from setwise.spelling import counted
from setwise.taxonomy.edges import (
    Array,
    are_closed,
    checked_edges,
    forest_levels,
    levels_in_order,
    parent_vector,
    raised,
    refuse_missing,
    rooted,
    sets_over,
    steps_up,
)
from setwise.validation import real_vector


@dataclass(frozen=True, eq=False)
class Taxonomy:
    """Which label stands under which, and how long the edges are.

    A tree or a forest, where each label has at most one parent, or a directed acyclic hierarchy,
    where a label may have several. A set of labels is *closed* if it holds the parents of its
    labels. `TreeDistance`, `Forest` and `Paths` take a taxonomy that is a tree (a forest counts as
    one: a virtual root stands above its roots) in place of parents, with its lengths. Of one that
    is not, they take the spanning tree, and warn.

    Parameters
    ----------
    edges : array of shape (n_edges, 2)
        Parent and child of each edge as numbers of labels. A parent of -1 is the virtual root; a
        label that is nobody's child gets such an edge, and one with another parent loses it.
    names : array of shape (n_labels,), optional
        The name of each label, no two alike; by default its number.
    lengths_of_edges : array of shape (n_edges,), optional
        Positive length of each edge; 1 by default.
    note : str, default ""
        What a reader should know of how it was made.

    Examples
    --------
    >>> animals = Taxonomy.from_paths(["animals", "animals/mammals", "animals/birds"])
    >>> print(animals)
    Taxonomy of 3 labels on 2 levels, a tree with 1 root
    >>> animals.parents
    array([-1,  0,  0])
    >>> animals.close([[0, 1, 0]])
    array([[1, 1, 0]], dtype=uint8)
    """

    edges: Any
    names: Any = None
    lengths_of_edges: Any = None
    note: str = ""
    levels: Array = field(init=False, repr=False)

    def __post_init__(self):
        edges, names = checked_edges(self.edges, self.names)
        lengths = np.ones(len(edges)) if self.lengths_of_edges is None else self.lengths_of_edges
        lengths = real_vector(lengths, len(edges), "lengths")
        if (lengths <= 0).any():
            bad = int(np.argmax(lengths <= 0))
            edge = f"the edge to {names.tolist()[edges[bad, 1]]!r}"
            raise ValueError(f"lengths must be positive, but that of {edge} is {lengths[bad]}")
        edges, lengths = rooted(edges, lengths, len(names))
        is_forest = len(edges) == len(names)
        levels = forest_levels(edges[:, 0], names) if is_forest else levels_in_order(edges, names)
        vars(self).update(edges=edges, names=names, lengths_of_edges=lengths, levels=levels)

    @classmethod
    def from_parents(cls, parents: Any, names: Any = None, lengths: Any = None) -> Taxonomy:
        """From the parent of each label.

        Parameters
        ----------
        parents : array of shape (n_labels,), mapping or series
            Numbers of labels, -1 for a root; or, beside ``names``, the name of each label's parent;
            or a mapping (or a series with an index of names) from each label's name to its
            parent's, or to a list of several. None, "", NaN and NA stand for a root. A mapping in
            which no entry says so has as roots the parents without an entry, after the others.
        names : array of shape (n_labels,), optional
            The names of the labels; of a mapping, their order.
        lengths : array of shape (n_labels,), optional
            The length of each label's edge to its parent (of a root, to the virtual root; of
            several parents, to each).
        """
        from setwise.taxonomy.forms import edges_of_parents

        return cls(*edges_of_parents(parents, names, lengths))

    @classmethod
    def from_edges(cls, edges: Any, names: Any = None, root: Any = None) -> Taxonomy:
        """From rows [parent, child] or [parent, child, length] of names.

        Parameters
        ----------
        edges : iterable of rows, array or data frame
            A parent that is None, "", NaN, NA, ``root`` or the number -1 is the virtual root. Any
            other number is a name too: [0, 1] says that the label named 0 is the parent of the one
            named 1. The columns of a frame are found by their names, and then it is a table as of
            `read`; by their places if none of these is known.
        names : array of shape (n_labels,), optional
            All labels in the order of their columns; by default those of the edges as they occur.
        root : str or number, optional
            A name that stands for the virtual root and is no label; some label must stand under
            it. In files it is compared as text.
        """
        from setwise.taxonomy.forms import edges_of_rows
        from setwise.taxonomy.tables import edges_of_frame

        is_frame = hasattr(edges, "columns") and hasattr(edges, "to_numpy")
        return cls(*(edges_of_frame if is_frame else edges_of_rows)(edges, names, root))

    @classmethod
    def from_paths(cls, paths: Any, separator: str = "/", missing: str = "refuse") -> Taxonomy:
        """From names that say where they stand: ``01``, ``01/02``, ``01/02/05``.

        Parameters
        ----------
        paths : list of str
            The names of the labels in the order of their columns.
        separator : str, default "/"
            What parts a name from what stands under it. A warning says so if no name has it.
        missing : {"refuse", "add"}, default "refuse"
            What is done about a parent that is not in the list: an error, or a label after the
            listed ones.
        """
        from setwise.taxonomy.forms import edges_of_paths

        return cls(*edges_of_paths(paths, separator, missing))

    @classmethod
    def from_meta(cls, meta: Any) -> Taxonomy:
        """From the description of a data set: a mapping, a JSON file, or a folder with meta.json.

        ``hierarchy_edges`` are [parent, child] columns of Y, ``hierarchy_lengths`` the length of
        each edge (1 by default), ``label_names`` (or the file beside it that ``label_names_file``
        names) what the columns are called.
        """
        from setwise.taxonomy.tables import edges_of_meta

        return cls(*edges_of_meta(meta))

    @classmethod
    def read(
        cls,
        path: str | Path,
        names: Any = None,
        root: Any = None,
        *,
        separator: str = "/",
        missing: str = "refuse",
        kind: str = "auto",
    ) -> Taxonomy:
        """From a text file: an edge a line, or a label and its parent, or a path name.

        Columns are parted by tabs, commas, semicolons or |, and by spaces if none of these parts
        every line alike. They are parent, child and perhaps length, unless the first line names
        them: ``parent``, ``parent_id``, ``source``, ``from``, ``is_a`` or ``broader``; ``child``,
        ``label``, ``name``, ``id``, ``term``, ``target`` or ``to``; ``length``, ``weight`` or
        ``distance``; others are refused. An empty parent is the virtual root, and so is -1 where
        all labels are whole numbers; there the parent 1.0 is 1. The text is UTF-8, compressed by
        gzip or not; names may stand in double quotes; # begins a comment at the start of a line or
        after a space.

        A file whose first line names columns is a table of labels. A parent NA, NaN, None, null or
        -1 is the virtual root, unless a row or ``names`` has a label of that name. A parent such as
        ``a|b`` or ``a;b`` that has no row of its own is two, if both are labels, and refused if
        one is. Where a root has a row, with an empty parent, each parent must have one. Of several
        columns of labels (``id`` and ``name``) it is the one in which the parents occur that has
        the labels, and the others are left aside.

        Parameters
        ----------
        path : str or Path
        names, root
            Of edges, as of `from_edges`.
        separator, missing
            Of path names, as of `from_paths`.
        kind : {"auto", "edges", "paths"}, default "auto"
            What the file holds. By default path names if lines have the separator and all that
            stands above them is in the file, or there are no columns; edges if all lines have as
            many columns. A file that could be either is refused.
        """
        from setwise.taxonomy.tables import edges_of_file

        return cls(*edges_of_file(Path(path), names, root, separator, missing, kind))

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.names)

    @property
    def is_tree(self) -> bool:
        """Whether no label has two parents."""
        return len(self.edges) == self.n_labels

    @property
    def parents(self) -> Array:
        """The parent of each label, -1 for a root, (l,); refused where a label has two."""
        self._require_tree()
        return self.edges[:, 0].copy()

    @property
    def lengths(self) -> Array:
        """The length of each label's edge to its parent, (l,); refused where a label has two."""
        self._require_tree()
        return self.lengths_of_edges.copy()

    @property
    def depth(self) -> int:
        """Number of levels."""
        return int(self.levels.max()) + 1

    @property
    def roots(self) -> Array:
        """The labels under nothing but the virtual root."""
        return np.flatnonzero(self.levels == 0)

    @property
    def leaves(self) -> Array:
        """The labels under which nothing stands."""
        return np.setdiff1d(np.arange(self.n_labels), self.edges[:, 0])

    @cached_property
    def ancestors(self) -> Any:
        """1 at [i, j] where j is label i or above it, a CSR array of shape (l, l)."""
        from scipy.sparse import eye_array

        return self.close(eye_array(self.n_labels, format="csr"))

    def close(self, Y: Any) -> Any:
        """The label sets with all labels above theirs, an array or CSR as given.

        With S the labels less than 2^k steps above those of a set, S or S U^(2^k) are those less
        than 2^(k + 1) steps above: log2(depth) sparse products reach the roots. Time and memory
        are those of the answer, times that logarithm.

        Parameters
        ----------
        Y : 0/1 array or sparse matrix of shape (n, n_labels), or names
            A list of the names of each row's labels, or one name a row. A data frame whose columns
            are the names in another order is taken by them; by their places if they only count.
        """
        sets = sets_over(Y, self.names, "Y")
        if isinstance(sets, np.ndarray):
            return raised(sets, self)
        sets = sets.astype(bool)
        for jump in self._jumps:
            sets = sets + sets @ jump
        sets.sort_indices()
        return sets.astype(np.uint8)

    def most_specific(self, Y: Any) -> Any:
        """The label sets without the labels that stand above another of the set.

        `close` gives closed sets back as they were. Y as in `close`; the answer is an array or CSR
        as given.

        Examples
        --------
        >>> taxonomy = Taxonomy.from_paths(["home", "home/garden", "toys"])
        >>> taxonomy.most_specific([[1, 1, 0], [1, 0, 1]])
        array([[0, 1, 0],
               [1, 0, 1]], dtype=uint8)
        """
        sets = sets_over(Y, self.names, "Y")
        entries = entries_of(sets) if isinstance(sets, np.ndarray) else sets.astype(bool)
        above = self.close((entries @ self._jumps[0]).astype(np.uint8)).astype(bool)
        kept = (entries > above).astype(np.uint8)
        return kept.toarray() if isinstance(sets, np.ndarray) else kept

    def is_closed(self, Y: Any) -> Array:
        """Whether each label set holds the parents of its labels, (n,)."""
        return are_closed(self._entries(Y), self._jumps[0])

    def refuse_open(self, Y: Any, name: str = "Y") -> None:
        """Raise for the first label set that lacks a parent, naming row, label and parent."""
        sets = self._entries(Y, name)
        is_open = ~are_closed(sets, self._jumps[0])
        if is_open.any():
            row = int(np.argmax(is_open))
            above, label = self._open_edge(sets[[row]].indices)
            raise ValueError(
                f"label sets must be closed, but row {row} of {name} has {self._name(label)} "
                f"without {self._name(above)} above it ({np.count_nonzero(is_open) - 1} more such "
                f"rows); Taxonomy.close adds what is missing"
            )

    def over(self, names: Any) -> Taxonomy:
        """The same taxonomy with its labels in another order; both must have the same labels."""
        from setwise.labels import distinct_names

        wanted = distinct_names(names)
        place = {name: number for number, name in enumerate(wanted.tolist())}
        refuse_missing(self.names.tolist(), place, "the names given")
        refuse_missing(wanted.tolist(), self.names.tolist(), f"the {self}")
        new = np.array([*(place[name] for name in self.names.tolist()), -1])
        return replace(self, edges=new[self.edges], names=wanted)

    def spanning_tree(self) -> Taxonomy:
        """A tree of the same labels; ``note`` says which edges were left out.

        Each label keeps its deepest parent, of several the one that comes first: as much of what a
        label brings along as one parent can. Label sets closed in the hierarchy are closed in the
        tree.
        """
        if self.is_tree:
            return self
        above, child = self.edges.T
        depth = np.where(above >= 0, self.levels[above], -1)
        best = np.lexsort((above, -depth, child))
        kept = best[np.unique(child[best], return_index=True)[1]]
        left_out = np.setdiff1d(np.arange(len(self.edges)), kept)
        first = ", ".join(
            f"{self._name(b)} under {self._name(a)}" for a, b in self.edges[left_out[:3]]
        )
        note = (
            f"each label keeps its deepest parent: {len(left_out)} of "
            f"{np.count_nonzero(above >= 0)} edges of a hierarchy with several parents are left "
            f"out ({first}{', ...' if len(left_out) > 3 else ''})"
        )
        return Taxonomy(self.edges[kept], self.names, self.lengths_of_edges[kept], note)

    def __str__(self) -> str:
        kind = "a tree" if self.is_tree else "labels with several parents"
        levels, roots = counted(self.depth, "level"), counted(len(self.roots), "root")
        told = f"Taxonomy of {self.n_labels} labels on {levels}, {kind} with {roots}"
        return f"{told}; {self.note}" if self.note else told

    @cached_property
    def _jumps(self) -> list[Any]:
        """U, U², U⁴, ... as far as they have entries: where 2^k steps up lead."""
        jumps = [steps_up(self.edges, self.n_labels)]
        while (twice := jumps[-1] @ jumps[-1]).nnz:
            jumps.append(twice)
        return jumps

    def _entries(self, Y: Any, name: str = "Y") -> Any:
        """Label sets as CSR of bools."""
        sets = sets_over(Y, self.names, name)
        return entries_of(sets) if isinstance(sets, np.ndarray) else sets.astype(bool)

    def _open_edge(self, labels: Array) -> Array:
        """Of the edges of which a set has only the child, one to a label nearest to a root."""
        above, child = self.edges.T
        is_open = np.isin(child, labels) & (above >= 0) & ~np.isin(above, labels)
        return min(self.edges[is_open], key=lambda edge: self.levels[edge[1]])

    def _require_tree(self) -> None:
        if not self.is_tree:
            child = self.edges[:, 1]
            place = int(np.argmax(child[1:] == child[:-1]))
            first, second = (self._name(self.edges[at, 0]) for at in (place, place + 1))
            raise ValueError(
                f"a tree is needed, where each label has one parent, but {self._name(child[place])}"
                f" has {first} and {second}; Taxonomy.spanning_tree chooses one for each label"
            )

    def _name(self, label: int) -> str:
        return repr(self.names.tolist()[label])


def tree_of(taxonomy: Taxonomy) -> Taxonomy:
    """The taxonomy where it is a tree, else its spanning tree, with a warning that says so."""
    tree = taxonomy.spanning_tree()
    if tree is not taxonomy:
        told = f"labels have several parents, but a tree is needed, so one was chosen: {tree.note}"
        warnings.warn(told, stacklevel=4)
    return tree


def tree_parents(parents: Any) -> NDArray[np.int64]:
    """The parents of a forest, from a taxonomy or as they are: -1 for a root, no cycle."""
    return parent_vector(tree_of(parents).parents if isinstance(parents, Taxonomy) else parents)

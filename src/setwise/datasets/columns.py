"""What the columns of a file become: features (numbers, categories, text) and label sets.

Every kind of column is a class here. One whose cells are single values has ``width`` (its number of
features), ``code(text)`` (a number that stands for a cell, None for one that it does not take),
``wrong(text)`` (what is said then) and ``feature_names(column)``; `Text` has features of its own.
A reader asks only these, so another kind of column is another class in this file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, issparse

from setwise.datasets.dataset import edge_array, repeated, text_array
from setwise.datasets.files import Place, shown
from setwise.labels import some
from setwise.sparse import place_of, rows_of
from setwise.taxonomy import Taxonomy

NUMERAL = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|[-+]?inf(?:inity)?|nan", re.I)
# What a cell of a table says when its value is missing, in lower case.
MISSING = ("", "?", "na", "n/a", "nan", "null", "none")
# What a cell of a 0/1 column may say, in lower case.
FALSE, TRUE = ("0", "0.0", "false", "no"), ("1", "1.0", "true", "yes")
# What TfidfVectorizer may be told. Functions are not among it: a schema is saved as data.
TEXT_OPTIONS = (
    *("analyzer", "binary", "lowercase", "max_df", "max_features", "min_df", "ngram_range", "norm"),
    *("smooth_idf", "stop_words", "strip_accents", "sublinear_tf", "token_pattern", "use_idf"),
)


class Kind(Protocol):
    """A kind of column whose cells are single values."""

    @property
    def width(self) -> int: ...
    def code(self, text: str) -> float | None: ...
    def wrong(self, text: str) -> str: ...
    def feature_names(self, column: str) -> list[str]: ...


@dataclass(frozen=True)
class Number:
    """A column of numbers, each its own code; ``binary`` ones are 0 or 1, or words for these.

    Infinite ones are refused once they are read, and so are binary ones that are other numbers.
    """

    binary: bool = False

    @property
    def width(self) -> int:
        return 1

    def code(self, text: str) -> float | None:
        if self.binary:
            return 0.0 if text.lower() in FALSE else 1.0 if text.lower() in TRUE else None
        return float(text) if NUMERAL.fullmatch(text) else None

    def wrong(self, text: str) -> str:
        expected = "; expected is 0 or 1 (or true or false, yes or no)"
        return f"is {shown(text)}{expected if self.binary else ', which is no number'}"

    def feature_names(self, column: str) -> list[str]:
        return [column]


@dataclass(frozen=True, eq=False)
class Categories:
    """A column of categories: one 0/1 feature each. The code is that of the feature, from 1.

    Parameters
    ----------
    values : array of str
        The categories.
    base : bool
        Whether the first category has no feature of its own, being where all others are 0. So it
        is in ARFF, whose sparse rows leave the first value out.
    unseen : {"refuse", "zeros"}
        What another value means: an error, or 0 in all features.
    """

    values: Any
    base: bool = False
    unseen: str = "refuse"

    def __post_init__(self):
        object.__setattr__(self, "values", text_array(self.values))
        if self.unseen not in ("refuse", "zeros"):
            raise ValueError(f"unseen must be 'refuse' or 'zeros', but it is {self.unseen!r}")

    @property
    def width(self) -> int:
        return len(self.values) - self.base

    @cached_property
    def _codes(self) -> dict[str, float]:
        return {value: float(i + (not self.base)) for i, value in enumerate(self.values.tolist())}

    def code(self, text: str) -> float | None:
        return self._codes.get(text, 0.0 if self.unseen == "zeros" else None)

    def wrong(self, text: str) -> str:
        return f"has the new category {shown(text)}; known are {some(self.values[:11].tolist())}"

    def feature_names(self, column: str) -> list[str]:
        return [f"{column}={value}" for value in self.values[int(self.base) :].tolist()]


@dataclass(frozen=True, eq=False)
class Text:
    """A column of text: TF-IDF features by scikit-learn's TfidfVectorizer.

    Parameters
    ----------
    options : dict
        Options of TfidfVectorizer that are data (`TEXT_OPTIONS`).
    terms, idf : arrays, optional
        What was fitted. A vectoriser is made anew from them.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    terms: Any = None
    idf: Any = None

    def __post_init__(self):
        unknown = sorted(set(self.options) - set(TEXT_OPTIONS))
        if unknown:
            raise ValueError(
                f"options of text must be among {', '.join(TEXT_OPTIONS)}, not {', '.join(unknown)}"
            )
        if any(map(callable, self.options.values())):
            raise ValueError("options of text must be data, so that a schema can be saved")
        if self.terms is not None:
            object.__setattr__(self, "terms", text_array(self.terms))

    def fitted(self, texts: Sequence[str]) -> Text:
        """With the terms of these texts."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        try:
            vectorizer = TfidfVectorizer(**self.options).fit(texts)
        except Exception as error:  # (a pattern that is none, a range that is none, no terms)
            raise ValueError(f"text was not turned into features: {error}") from error
        idf = vectorizer.idf_ if vectorizer.use_idf else None
        return Text(dict(self.options), vectorizer.get_feature_names_out(), idf)

    @cached_property
    def _vectorizer(self) -> Any:
        from sklearn.feature_extraction.text import TfidfVectorizer

        # The terms are given: options that choose among them have done their work.
        choosing = ("max_features", "min_df", "max_df")
        options = {name: value for name, value in self.options.items() if name not in choosing}
        vectorizer = TfidfVectorizer(**options, vocabulary=self.terms.tolist())
        if self.idf is not None:
            vectorizer.idf_ = np.asarray(self.idf, np.float64)
        return vectorizer

    def encode(self, texts: Sequence[str]) -> csr_array:
        """The features of texts."""
        if self.idf is None:
            self._vectorizer.fit(texts[:1])  # (nothing is learnt: the terms are given)
        return csr_array(self._vectorizer.transform(texts))

    def feature_names(self, column: str) -> list[str]:
        return [f"{column}:{term}" for term in self.terms.tolist()]


@dataclass(frozen=True, eq=False)
class Features:
    """The columns that become features, in order, and how.

    X is dense if every column is one feature and the codes are dense; else CSR. Features of text
    come last.

    Parameters
    ----------
    columns : array of str
        Names of the columns, no two alike.
    kinds : dict of str to Kind or Text
        The columns that are not plain numbers.
    dtype : {"float64", "float32"}
        Type of X.
    """

    columns: Any
    kinds: Mapping[str, Any] = field(default_factory=dict)
    dtype: str = "float64"

    def __post_init__(self):
        object.__setattr__(self, "columns", text_array(self.columns))
        name = repeated(self.columns.tolist())
        if name is not None:
            raise ValueError(f"columns must differ, but {name!r} is there twice")
        if not set(self.kinds) <= set(self.columns.tolist()):
            raise ValueError("kinds must be of columns that are there")
        check_type(self.dtype)

    @cached_property
    def texts(self) -> dict[str, Text]:
        """The columns of text."""
        return {name: kind for name, kind in self.kinds.items() if isinstance(kind, Text)}

    @cached_property
    def coded(self) -> dict[str, Kind]:
        """The columns that have codes, all but text, with their kinds."""
        names = [name for name in self.columns.tolist() if name not in self.texts]
        return {name: self.kinds.get(name, Number()) for name in names}

    @cached_property
    def names(self) -> NDArray[Any]:
        """The name of each feature."""
        every = {**self.coded, **self.texts}.items()
        return text_array([name for column, kind in every for name in kind.feature_names(column)])

    def fitted(self, texts: Mapping[str, Sequence[str]]) -> Features:
        """With the terms of the columns of text."""
        kinds = {name: kind.fitted(texts[name]) for name, kind in self.texts.items()}
        return Features(self.columns, {**self.kinds, **kinds}, self.dtype)

    def assemble(self, codes: Any, texts: Mapping[str, Sequence[str]]) -> Any:
        """X from the codes of the `coded` columns, (n, len(coded)), and the texts of the others."""
        if any(kind.width != 1 for kind in self.coded.values()):
            codes = self._expanded(codes if issparse(codes) else csr_array(codes))
        if not self.texts:
            return codes.astype(self.dtype, copy=False)
        parts = [codes] if self.coded else []
        parts += [kind.encode(texts[name]) for name, kind in self.texts.items()]
        return csr_array(hstack(parts, format="csr", dtype=self.dtype))

    def _expanded(self, codes: Any) -> csr_array:
        """One column for each feature: an entry with code c moves to the c-th of its column's.

        A category that is missing is NaN in all features of its column.
        """
        sizes = np.array([kind.width for kind in self.coded.values()], np.int64)
        category = sizes != 1
        first = np.cumsum(sizes) - sizes
        entries = codes.tocoo()
        row, column, value = entries.row, entries.col, entries.data
        lost = category[column] & np.isnan(value)
        chosen = category[column] & ~lost & (value > 0)
        times = np.where(lost, sizes[column], 1)
        within = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
        place = first[column] + np.where(chosen, value - 1, 0).astype(np.int64)
        moved = np.where(chosen, 1.0, value)
        pick = np.repeat(np.arange(len(row)), times)
        shape = (codes.shape[0], int(sizes.sum()))
        matrix = csr_array((moved[pick], (row[pick], place[pick] + within)), shape=shape)
        matrix.sort_indices()
        return matrix


def check_type(dtype: str) -> None:
    """Raise unless it is one of the two types of features."""
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype must be 'float32' or 'float64', but it is {dtype!r}")


# ------------------------------------------------------------------------------------------- labels

EXPECTED = (
    "expected is 0 or 1; rows with unknown labels are left out with unknown_labels='leave_out'"
)


@dataclass(frozen=True, eq=False)
class LabelColumns:
    """A column of 0 and 1 for each label, in this order.

    ``edges`` [parent, child], if there are any, are those of a hierarchy.
    """

    names: Any
    edges: Any = None

    def __post_init__(self):
        _check_names(self)

    @property
    def columns(self) -> list[str]:
        """The columns of the file that are read."""
        return self.names.tolist()

    def sets(self, codes: Any, place: Place) -> tuple[Any, Any]:
        """Label sets from codes (n, l), dense or CSR, and which rows are known."""
        values = codes.data if issparse(codes) else codes
        lost = np.isnan(values)
        wrong = ~lost & (values != 0) & (values != 1)
        if wrong.any():
            row, label = _first(codes, wrong)
            name, value = shown(self.names[label]), f"{codes[row, label]:g}"
            raise place.error(row, f"label {name} is '{value}'; {EXPECTED}")
        known = np.ones(codes.shape[0], bool)
        if lost.any():
            known[rows_of(codes)[lost] if issparse(codes) else lost.any(axis=1)] = False
            codes = codes[known]
        return codes.astype(np.uint8), known

    def name_unknown(self, codes: Any, row: int) -> str:
        """The first label of a row that is not known."""
        cells = codes[[row]].toarray()[0] if issparse(codes) else codes[row]
        return self.names[int(np.argmax(np.isnan(cells)))]


@dataclass(frozen=True, eq=False)
class LabelList:
    """One column with the labels of a row and a separator between them; empty is no label.

    Parameters
    ----------
    column : str
        Name of the column.
    separator : str
        What parts the labels. Spaces around a label do not count.
    names : array of str
        The labels, in the order of the columns of Y.
    edges : int array of shape (m, 2), optional
        Edges [parent, child] of a hierarchy; Y then has the ancestors of what is listed too.
    """

    column: str
    separator: str
    names: Any
    edges: Any = None

    def __post_init__(self):
        _check_names(self)
        if not isinstance(self.separator, str) or not self.separator:
            raise ValueError(f"separator must be text, but it is {self.separator!r}")

    @property
    def columns(self) -> list[str]:
        """The columns of the file that are read."""
        return [self.column]

    @cached_property
    def _number(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names.tolist())}

    @cached_property
    def taxonomy(self) -> Taxonomy | None:
        """The hierarchy, if there is one."""
        return None if self.edges is None else Taxonomy(self.edges, self.names)

    def sets(self, cells: Sequence[Any], place: Place) -> tuple[Any, Any]:
        """Label sets as listed, and which rows are known."""
        rows = [listed(cell, self.separator, row, place) for row, cell in enumerate(cells)]
        for row, labels in enumerate(rows):
            unknown = next((label for label in labels or () if label not in self._number), None)
            if unknown is not None:
                known = some(self.names[:11].tolist())
                raise place.error(row, f"unknown label {shown(unknown)}; known are {known}")
        found = [[self._number[n] for n in labels] for labels in rows if labels is not None]
        known = np.array([labels is not None for labels in rows], bool)
        return indicator(found, len(self._number)), known

    def name_unknown(self, cells: Sequence[Any], row: int) -> str:
        """What is not known: all labels of the row."""
        return self.column


LabelSource = LabelColumns | LabelList


class Labelled(NamedTuple):
    """Label sets, label sets as written where they differ, and the rows that have them."""

    Y: Any
    specific: Any
    known: NDArray[np.bool_]


def labelled(source: LabelSource, cells: Any, place: Place, unknown: str) -> Labelled:
    """The label sets of some rows; rows whose labels are unknown are refused or left out."""
    sets, known = source.sets(cells, place)
    if unknown == "refuse" and not known.all():
        row = int(np.argmin(known))
        name = shown(source.name_unknown(cells, row))
        raise place.error(row, f"label {name} is unknown (empty, or '?'); {EXPECTED}")
    if isinstance(source, LabelList) and source.taxonomy is not None:
        return Labelled(source.taxonomy.close(sets), sets, known)
    return Labelled(sets, None, known)


def indicator(sets: list[list[int]], n_labels: int) -> csr_array:
    """Label sets as a CSR matrix of 0 and 1."""
    ends = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    indices = np.array([label for labels in sets for label in sorted(labels)], np.int64)
    ones = np.ones(len(indices), np.uint8)
    return csr_array((ones, indices, ends), shape=(len(sets), n_labels))


def listed(cell: Any, separator: str, row: int, place: Place) -> list[str] | None:
    """The labels in a cell, text to part or a list already (Parquet); None if it says '?'."""
    if not isinstance(cell, str):
        labels = [] if cell is None else [str(label) for label in cell]
    elif cell.strip() == "?":
        return None
    else:
        labels = [label.strip() for label in cell.split(separator)] if cell.strip() else []
    if not all(labels):
        raise place.error(row, "an empty label between separators")
    if len(set(labels)) < len(labels):
        raise place.error(row, f"label {shown(repeated(labels))} is listed twice")
    return labels


def labels_in(parts: Iterable[tuple[Sequence[Any], Place]], separator: str) -> list[str]:
    """The labels that some cells list, sorted."""
    names: set[str] = set()
    for cells, place in parts:
        for row, cell in enumerate(cells):
            names.update(listed(cell, separator, row, place) or ())
    return sorted(names)


def _first(codes: Any, wrong: NDArray[np.bool_]) -> tuple[int, int]:
    entry = int(np.argmax(wrong))
    return place_of(codes, entry) if issparse(codes) else divmod(entry, codes.shape[1])


def _check_names(source: LabelSource) -> None:
    names = text_array(source.names)
    name = repeated(names.tolist())
    if len(names) == 0 or name is not None:
        what = "no label" if name is None else f"the label {shown(name)} twice"
        raise ValueError(f"labels must have different names, but there is {what}")
    object.__setattr__(source, "names", names)
    if source.edges is not None:
        object.__setattr__(source, "edges", edge_array(source.edges, names))

"""What the columns of a file become: features (numbers, categories, text) and labels.

A kind of column whose cells are single values is a class with the four members of `Kind`; `Text`
has features of its own. A reader asks only these, so another kind of column is another class.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, hstack

from setwise.datasets.dataset import edge_array, text_array
from setwise.datasets.unseen import CATEGORIES
from setwise.files import DataError, Place
from setwise.spelling import argument, known_names, shown
from setwise.taxonomy import Taxonomy
from setwise.validation import refuse_repeated, repeated, require_one_of

NUMERAL = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|[-+]?inf(?:inity)?|nan", re.I)
# What a cell of a table says when its value is missing, in lower case.
MISSING = ("", "?", "na", "n/a", "nan", "null", "none")
# What a cell of a 0/1 column may say, in lower case.
TRUTH: dict[str, float] = {"0": 0.0, "0.0": 0.0, "false": 0.0, "no": 0.0}
TRUTH |= {"1": 1.0, "1.0": 1.0, "true": 1.0, "yes": 1.0}
# Types of features.
TYPES = ("float32", "float64")
# What TfidfVectorizer may be told. Functions are not among it: a schema is saved as data.
TEXT_OPTIONS = (
    *("analyzer", "binary", "lowercase", "max_df", "max_features", "min_df", "ngram_range", "norm"),
    *("smooth_idf", "stop_words", "strip_accents", "sublinear_tf", "token_pattern", "use_idf"),
)


class Kind(Protocol):
    """A kind of column whose cells are single values.

    ``width`` is its number of features, ``code`` a number that stands for a cell, or None for one
    that it does not take, and ``wrong`` what is said of such a cell.
    """

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
    width = 1

    def code(self, text: str) -> float | None:
        if self.binary:
            return TRUTH.get(text.lower())
        return float(text) if NUMERAL.fullmatch(text) else None

    def wrong(self, text: str) -> str:
        expected = "; expected is 0 or 1 (or true or false, yes or no)"
        return f"is {shown(text)}{expected if self.binary else ', which is not a number'}"

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
        vars(self).update(values=text_array(self.values))
        require_one_of(self.unseen, CATEGORIES, "unseen_categories")

    @property
    def width(self) -> int:
        return len(self.values) - self.base

    @cached_property
    def _codes(self) -> dict[str, float]:
        return {value: float(i + (not self.base)) for i, value in enumerate(self.values.tolist())}

    def code(self, text: str) -> float | None:
        return self._codes.get(text, 0.0 if self.unseen == "zeros" else None)

    def wrong(self, text: str) -> str:
        known = known_names(text, self.values.tolist())
        hint = f"{argument('unseen_categories', 'zeros')} gives it 0 in all features"
        return f"has the new category {shown(text)}; {known} ({hint})"

    def new(self, texts: Iterable[str]) -> Counter[str]:
        """How often each value is among the texts that is no category and not missing."""
        found: Counter[str] = Counter()
        for value, times in Counter(texts).items():
            value = value.strip()
            if value not in self._codes and value.lower() not in MISSING:
                found[value] += times
        return found

    def feature_names(self, column: str) -> list[str]:
        return [f"{column}={value}" for value in self.values[int(self.base) :].tolist()]


@dataclass(frozen=True, eq=False)
class Text:
    """A column of text: TF-IDF features by scikit-learn's TfidfVectorizer.

    ``options`` are those of the vectoriser that are data (`TEXT_OPTIONS`); ``vectorizer`` is None
    until it is fitted.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    vectorizer: Any = None

    def __post_init__(self):
        unknown = sorted(set(self.options) - set(TEXT_OPTIONS))
        if unknown:
            raise ValueError(
                f"options of text must be among {', '.join(TEXT_OPTIONS)}, not {', '.join(unknown)}"
            )
        if any(map(callable, self.options.values())):
            raise ValueError("options of text must be data, so that a schema can be saved")

    def fitted(self, texts: Iterable[str]) -> Text:
        """With the terms of these texts."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        try:
            return Text(self.options, TfidfVectorizer(**self.options).fit(texts))
        except DataError:  # (of the file that the texts come from)
            raise
        except Exception as error:  # (a pattern that is none, a range that is none, no terms)
            raise ValueError(f"text was not turned into features: {error}") from error

    def feature_names(self, column: str) -> list[str]:
        return [f"{column}:{term}" for term in self.vectorizer.get_feature_names_out()]


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
        vars(self).update(columns=text_array(self.columns))
        refuse_repeated(self.columns.tolist(), "column")
        if not set(self.kinds) <= set(self.columns.tolist()):
            raise ValueError("kinds must be of columns that are there")
        require_one_of(self.dtype, TYPES, "dtype")

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

    def reading(self, unseen: str) -> Features:
        """With another rule for new categories."""
        chosen = {n: kind for n, kind in self.kinds.items() if isinstance(kind, Categories)}
        changed = {name: replace(kind, unseen=unseen) for name, kind in chosen.items()}
        return Features(self.columns, {**self.kinds, **changed}, self.dtype)

    @cached_property
    def tolerant(self) -> dict[str, Categories]:
        """The columns in which new categories are read as zeros."""
        kinds = self.coded.items()
        return {n: k for n, k in kinds if isinstance(k, Categories) and k.unseen == "zeros"}

    def fitted(self, texts: Mapping[str, Iterable[str]]) -> Features:
        """With the terms of the columns of text."""
        kinds = {name: kind.fitted(texts[name]) for name, kind in self.texts.items()}
        return Features(self.columns, {**self.kinds, **kinds}, self.dtype)

    def assemble(self, codes: Any, texts: Mapping[str, Sequence[str]]) -> Any:
        """X from the codes of the `coded` columns, (n, len(coded)), and the texts of the others."""
        if any(kind.width != 1 for kind in self.coded.values()):
            codes = self._expanded(coo_array(codes))
        if not self.texts:
            return codes.astype(self.dtype, copy=False)
        parts = [codes] if self.coded else []
        parts += [kind.vectorizer.transform(texts[name]) for name, kind in self.texts.items()]
        return csr_array(hstack(parts, format="csr", dtype=self.dtype))

    def _expanded(self, codes: Any) -> csr_array:
        """One column for each feature: an entry with code c moves to the c-th of its column's.

        A category that is missing is NaN in all features of its column.
        """
        sizes = np.array([kind.width for kind in self.coded.values()], np.int64)
        row, column, value = codes.row, codes.col, codes.data
        is_lost = (sizes[column] != 1) & np.isnan(value)
        is_chosen = (sizes[column] != 1) & (value > 0)
        place = (np.cumsum(sizes) - sizes)[column] + np.where(is_chosen, value - 1, 0).astype(int)
        times = np.where(is_lost, sizes[column], 1)
        step = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
        place, row = np.repeat(place, times) + step, np.repeat(row, times)
        value = np.repeat(np.where(is_chosen, 1.0, value), times)
        return csr_array((value, (row, place)), shape=(codes.shape[0], int(sizes.sum())))


# ------------------------------------------------------------------------------------------- labels


class LabelSets(NamedTuple):
    """Label sets, those as written where a hierarchy added to them, and which rows are known."""

    Y: Any
    specific: Any
    known: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Labels:
    """Where the labels of a row stand: a column of 0 and 1 each, or a list of them.

    Parameters
    ----------
    names : array of str
        The labels, in the order of the columns of Y.
    edges : int array of shape (m, 2), optional
        Edges [parent, child] of a hierarchy; Y then has the ancestors of what is listed too.
    column : str, optional
        The column that lists labels; None if each label has a column of its name, and in files
        that have no columns.
    separator : str
        What parts the labels in that column. Spaces around a label do not count.
    """

    names: Any
    edges: Any = None
    column: str | None = None
    separator: str = ","

    def __post_init__(self):
        names = text_array(self.names)
        if len(names) == 0:
            raise ValueError("there must be a label, but there is none")
        refuse_repeated(names.tolist())
        if not isinstance(self.separator, str) or not self.separator:
            raise ValueError(f"separator must be text, but it is {self.separator!r}")
        vars(self).update(names=names)
        if self.edges is not None:
            vars(self).update(edges=edge_array(self.edges, names))

    @property
    def columns(self) -> list[str]:
        """The columns of the file that are read."""
        return self.names.tolist() if self.column is None else [self.column]

    @cached_property
    def _number(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names.tolist())}

    @cached_property
    def _taxonomy(self) -> Taxonomy:
        return Taxonomy(self.edges, self.names)

    def new(self, cells: Any, place: Place) -> set[str]:
        """The labels that cells list and that are not among the names."""
        if not isinstance(cells, list):
            return set()
        rows = (listed(cell, self.separator, row, place) for row, cell in enumerate(cells))
        return {label for labels in rows for label in labels or () if label not in self._number}

    def sets(self, cells: Any, place: Place, unknown: str = "refuse", hint: str = "") -> LabelSets:
        """The label sets of rows: of codes (n, l), dense or CSR, or of the cells that list them.

        Rows whose labels are unknown are refused, or left out. ``hint`` is said of a label that is
        not among the names.
        """
        if isinstance(cells, list):
            Y, lost = self._listed(cells, place, hint)
        else:
            Y, lost = self._coded(cells, place)
        known = np.ones(Y.shape[0], bool)
        known[list(lost)] = False
        if lost and unknown == "refuse":
            row = min(lost)
            left_out = argument("unknown_labels", "leave_out")
            hint = f"expected is 0 or 1 (rows whose labels are missing: {left_out})"
            raise place.error(row, f"label {shown(lost[row])} is unknown (empty, or '?'); {hint}")
        if lost:
            Y = Y[known]
        if self.column is None or self.edges is None:
            return LabelSets(Y.astype(np.uint8), None, known)
        return LabelSets(self._taxonomy.close(Y), Y, known)

    def _coded(self, codes: Any, place: Place) -> tuple[Any, dict[int, str]]:
        """Sets from codes, and the label that is unknown in each row where one is."""
        values = codes if isinstance(codes, np.ndarray) else codes.data
        if ((values == 0) | (values == 1)).all():
            return codes, {}
        entries = coo_array(codes)
        lost = {}
        for row, label, value in zip(entries.row, entries.col, entries.data, strict=True):
            name = str(self.names[label])
            if np.isnan(value):
                lost.setdefault(int(row), name)
            elif value not in (0, 1):
                reason = f"label {shown(name)} is '{value:g}'; a column of labels has only 0 and 1"
                raise place.error(row, reason)
        return codes, lost

    def _listed(self, cells: Sequence[Any], place: Place, hint: str) -> tuple[Any, dict[int, str]]:
        """Sets from cells that list them, and the column for each row that says '?'."""
        rows = [listed(cell, self.separator, row, place) for row, cell in enumerate(cells)]
        found: list[list[int]] = []
        for row, labels in enumerate(rows):
            unknown = next((label for label in labels or () if label not in self._number), None)
            if unknown is not None:
                known = known_names(unknown, self.names.tolist())
                raise place.error(row, f"unknown label {shown(unknown)}; {known}{hint}")
            found.append([self._number[label] for label in labels or ()])
        lost = {row: str(self.column) for row, labels in enumerate(rows) if labels is None}
        return indicator(found, len(self.names)), lost


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

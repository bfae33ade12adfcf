"""What the columns of a file become: numbers, categories, text.

Every kind of column is a class here. One whose cells are single values has ``width`` (its number of
features), ``code(text)`` (a number that stands for a cell, None for one that it does not take),
``wrong(text)`` (what is said then) and ``feature_names(column)``; `Text` has features of its own.
A reader asks only these, so another kind of column is another class in this file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, issparse

from setwise.datasets.files import repeated, shown, text_array
from setwise.labels import some

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

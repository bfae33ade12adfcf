"""How columns of a file become features: numbers, categories, text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, issparse

from setwise.datasets.names import repeated, text_array

# What TfidfVectorizer may be told. Functions are not among it: a schema is saved as data.
TEXT_OPTIONS = (
    "analyzer",
    "binary",
    "lowercase",
    "max_df",
    "max_features",
    "min_df",
    "ngram_range",
    "norm",
    "smooth_idf",
    "stop_words",
    "strip_accents",
    "sublinear_tf",
    "token_pattern",
    "use_idf",
)


@dataclass(frozen=True, eq=False)
class Categories:
    """A column of categories: one 0/1 feature each.

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
        """Number of features."""
        return len(self.values) - self.base

    @cached_property
    def codes(self) -> dict[str, float]:
        """The number of each category's feature, from 1; 0 for none."""
        return {value: float(i + (not self.base)) for i, value in enumerate(self.values.tolist())}

    def feature_names(self, column: str) -> list[str]:
        """``column=value`` for each feature; the column itself for 0/1."""
        values = self.values.tolist()
        if self.base and values == ["0", "1"]:
            return [column]
        return [f"{column}={value}" for value in values[self.base :]]


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

        # These choose the terms, which are chosen.
        options = {k: v for k, v in self.options.items() if k not in {"max_features", "min_df"}}
        options.pop("max_df", None)
        vectorizer = TfidfVectorizer(**options, vocabulary=self.terms.tolist())
        if self.idf is not None:
            vectorizer.idf_ = np.asarray(self.idf, np.float64)
        return vectorizer

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.terms)

    def encode(self, texts: Sequence[str]) -> csr_array:
        """The features of texts."""
        if self.idf is None:
            self._vectorizer.fit(texts[:1])  # (nothing is learnt: the terms are given)
        return csr_array(self._vectorizer.transform(texts))

    def feature_names(self, column: str) -> list[str]:
        """``column:term`` for each feature."""
        return [f"{column}:{term}" for term in self.terms.tolist()]


@dataclass(frozen=True, eq=False)
class Features:
    """The columns that become features, in order, and how.

    Codes are what stands for a row on the way: for a number itself, for a category the number of
    its feature from 1 (0 for none), NaN for what is missing. X is dense if every column is one
    feature and the codes are dense; else CSR. Features of text come last.

    Parameters
    ----------
    columns : array of str
        Names of the columns, no two alike.
    kinds : dict of str to Categories or Text
        The columns that are not plain numbers.
    dtype : {"float64", "float32"}
        Type of X.
    """

    columns: Any
    kinds: Mapping[str, Categories | Text] = field(default_factory=dict)
    dtype: str = "float64"

    def __post_init__(self):
        columns = text_array(self.columns)
        name = repeated(columns.tolist())
        if name is not None:
            raise ValueError(f"columns must differ, but {name!r} is there twice")
        if not set(self.kinds) <= set(columns.tolist()):
            raise ValueError("kinds must be of columns that are there")
        if self.dtype not in ("float32", "float64"):
            raise ValueError(f"dtype must be 'float32' or 'float64', but it is {self.dtype!r}")
        object.__setattr__(self, "columns", columns)

    @cached_property
    def texts(self) -> dict[str, Text]:
        """The columns of text."""
        return {name: kind for name, kind in self.kinds.items() if isinstance(kind, Text)}

    @cached_property
    def coded(self) -> list[str]:
        """The columns that have codes: all but text."""
        return [name for name in self.columns.tolist() if name not in self.texts]

    @cached_property
    def names(self) -> NDArray[Any]:
        """The name of each feature."""
        names = []
        for column in self.coded:
            kind = self.kinds.get(column)
            names += [column] if kind is None else kind.feature_names(column)
        for column, text in self.texts.items():
            names += text.feature_names(column)
        return text_array(names)

    def fitted(self, texts: Mapping[str, Sequence[str]]) -> Features:
        """With the terms of the columns of text."""
        kinds = dict(self.kinds) | {
            name: kind.fitted(texts[name]) for name, kind in self.texts.items()
        }
        return Features(self.columns, kinds, self.dtype)

    def assemble(self, codes: Any, texts: Mapping[str, Sequence[str]]) -> Any:
        """X from the codes of `coded` columns, dense or CSR, and the texts of the others."""
        if (self._sizes != 1).any():
            codes = self._expanded(codes if issparse(codes) else csr_array(codes))
        if not self.texts:
            return codes.astype(self.dtype)
        parts = [codes] if self.coded else []
        parts += [kind.encode(texts[name]) for name, kind in self.texts.items()]
        return csr_array(hstack(parts, format="csr", dtype=self.dtype))

    @cached_property
    def _sizes(self) -> NDArray[np.int64]:
        """Number of features of each coded column."""
        kinds = [self.kinds.get(name) for name in self.coded]
        return np.array([1 if kind is None else kind.width for kind in kinds], np.int64)

    def _expanded(self, codes: Any) -> csr_array:
        """One column for each feature: an entry with code c moves to the c-th of its column's."""
        category, sizes = self._is_category, self._sizes
        first = np.cumsum(sizes) - sizes
        entries = codes.tocoo()
        row, column, value = entries.row, entries.col, entries.data
        lost = category[column] & np.isnan(value)
        coded = category[column] & ~lost
        times = np.where(lost, sizes[column], 1)
        within = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
        place = first[column] + np.where(coded, value - 1, 0).astype(np.int64)
        shape = (len(codes.indptr) - 1, int(sizes.sum()))
        moved = np.where(coded, 1.0, value)
        pick = np.repeat(np.arange(len(row)), times)
        matrix = csr_array((moved[pick], (row[pick], place[pick] + within)), shape=shape)
        matrix.sort_indices()
        return matrix

    @cached_property
    def _is_category(self) -> NDArray[np.bool_]:
        return np.array([name in self.kinds for name in self.coded], bool)

"""Columns of categories as one code each, for models that split categories themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from setwise.datasets.columns import Categories


@dataclass(eq=False, repr=False)
class CategoryCodes(TransformerMixin, BaseEstimator):
    """Features of a file as its columns: numbers as they are, of categories the code.

    A reader makes a 0/1 feature of each category. Here they are one column again, with the number
    of the category from 0, and NaN where it is missing or new.

    Parameters
    ----------
    widths : list of int
        How many features each column has.
    bases : list of bool
        Whether a column without a 1 has the category 0, which has no feature of its own.
    names : list of str, optional
        Of the columns.

    Examples
    --------
    A number, and three categories:

    >>> CategoryCodes([1, 3], [False, False]).fit_transform([[7.5, 0, 0, 1], [2.0, 1, 0, 0]])
    array([[7.5, 2. ],
           [2. , 0. ]])
    """

    widths: Any
    bases: Any
    names: Any = None

    @classmethod
    def of(cls, schema: Any) -> CategoryCodes | None:
        """For the files of a schema; None where no column is of several categories.

        Nor where there is text: its many features are not made dense.
        """
        features = getattr(getattr(schema, "schema", schema), "features", None)
        if features is None or features.texts:
            return None
        kinds = list(features.coded.values())
        if all(kind.width == 1 for kind in kinds):
            return None
        bases = [isinstance(kind, Categories) and kind.base for kind in kinds]
        return cls([kind.width for kind in kinds], bases, list(features.coded))

    @property
    def categorical(self) -> list[int]:
        """The columns that are codes."""
        return [column for column, width in enumerate(self.widths) if width != 1]

    def fit(self, X, y=None):
        """Nothing is learnt."""
        self._checked(X, reset=True)
        return self

    def transform(self, X) -> NDArray[Any]:
        """The columns, dense, (n, n_columns)."""
        check_is_fitted(self)
        given = self._checked(X)
        codes, first = np.empty((given.shape[0], len(self.widths)), given.dtype), 0
        for column, (width, base) in enumerate(zip(self.widths, self.bases, strict=True)):
            part: Any = given[:, first : first + width]
            part = part.toarray() if issparse(part) else part
            codes[:, column] = part[:, 0] if width == 1 else _codes(part, base)
            first += width
        return codes

    def get_feature_names_out(self, input_features=None) -> NDArray[Any]:
        """The names of the columns, by default x0, x1 and so on."""
        check_is_fitted(self)
        names = [f"x{column}" for column in range(len(self.widths))]
        return np.asarray(names if self.names is None else self.names, dtype=object)

    def _checked(self, X: Any, reset: bool = False) -> Any:
        checked: Any = validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32],
            ensure_all_finite="allow-nan",
        )  # fmt: skip
        if sum(self.widths) != checked.shape[1]:
            raise ValueError(
                f"X must have the {sum(self.widths)} features of the widths, but it has "
                f"{checked.shape[1]}"
            )
        return checked

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags


def _codes(part: NDArray[Any], base: bool) -> NDArray[Any]:
    """The category of each row, by its features: NaN where it is missing, or none of them."""
    chosen = part.argmax(axis=1) + float(base)
    nothing = 0.0 if base else np.nan
    codes = np.where((part == 1.0).any(axis=1), chosen, nothing)
    return np.where(np.isnan(part).any(axis=1), np.nan, codes)

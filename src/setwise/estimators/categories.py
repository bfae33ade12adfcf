"""Columns that trees split: numbers in single precision, and codes of categories."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from setwise.spelling import known_names
from setwise.validation import refuse_large

Array = NDArray[Any]
LARGEST = float(np.finfo(np.float32).max)


def refuse_inputs(X: Any, categorical: Array, known: dict[str, list[Any]]) -> None:
    """Raise where columns of categories hold something else than 0, 1, ... and NaN.

    And for numbers beyond single precision, in which XGBoost splits. Of a column whose categories
    are ``known``, by its number as text, there are as many codes.
    """
    refuse_large(X, LARGEST, "X", "XGBoost splits in single precision; divide columns first")
    for place in categorical:
        codes = X[:, [place]]
        codes = codes.data if issparse(codes) else codes[~np.isnan(codes)]
        n_codes = len(known[str(place)]) if str(place) in known else np.inf
        wrong = codes[(codes < 0) | (codes != np.floor(codes)) | (codes >= n_codes)]
        if len(wrong):
            expected = "0, 1, ..." if n_codes == np.inf else f"from 0 to {n_codes - 1}"
            raise ValueError(
                f"column {place} of X is one of categories and must hold codes {expected}, but "
                f"there is {wrong[0]}"
            )


def categories_of(frame: Any) -> dict[str, list[Any]]:
    """The categories of those columns of a data frame that have some, in the order of their codes.

    By the number of the column, as text.
    """
    kinds = enumerate(map(str, frame.dtypes))
    places = [place for place, kind in kinds if kind == "category"]
    return {str(place): frame.iloc[:, place].cat.categories.tolist() for place in places}


def coded(frame: Any, categories: dict[str, list[Any]]) -> Any:
    """A data frame of numbers: of a category, the code that it had in training; NaN is missing.

    (Codes of the frame itself follow from the categories that it happens to have.)
    """
    found = frame.copy()
    for place, name in enumerate(frame.columns):
        column, known = frame.iloc[:, place], categories.get(str(place))
        if known is None:
            refuse_text(column, name)
            continue
        same = column.astype("category").cat.set_categories(known)
        new = column[same.isna() & column.notna()]
        if len(new):
            raise ValueError(
                f"the column {name!r} has the category {new.iloc[0]!r}, which it had not in "
                f"training; {known_names(str(new.iloc[0]), [str(one) for one in known])}"
            )
        codes = same.cat.codes.to_numpy(np.float64)
        found.isetitem(place, np.where(codes < 0, np.nan, codes))
    return found


def refuse_text(column: Any, name: Any) -> None:
    """Raise for a column of a data frame that holds neither numbers nor categories."""
    if getattr(column.dtype, "kind", "O") in "biuf":
        return
    try:
        column.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"trees take columns of numbers and of categories, but the column {name!r} has the "
            f"type {column.dtype}: give it the type category, or leave it out"
        ) from None

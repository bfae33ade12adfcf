"""Propensities: how likely a true label is to be recorded as true."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise.evaluation.sample import label_sets
from setwise.validation import positive_number, real_vector


def propensities(y_train: Any, a: float = 0.55, b: float = 1.5) -> NDArray[np.float64]:
    """The propensity of each label, estimated from how often it is true in training data.

    p_l = 1 / (1 + C exp(-a log(N_l + b))) with C = (log N - 1) (b + 1)^a, for N rows of which
    N_l have label l. Rare labels have low propensities, so finding one counts for more in
    propensity-scored precision.

    Parameters
    ----------
    y_train : array or sparse matrix of shape (n, n_labels)
        The label sets of the *training* data, 0/1, of at least 3 rows (fewer make C negative).
    a, b : float, default 0.55 and 1.5
        The constants of the model. Jain, Prabhu and Varma take 0.5 and 0.4 for Wikipedia, 0.6 and
        2.6 for Amazon, and these for other data.

    Returns
    -------
    array of shape (n_labels,)
        In (0, 1).

    References
    ----------
    H. Jain, Y. Prabhu, M. Varma. Extreme multi-label loss functions for recommendation, tagging,
    ranking and other missing label applications. KDD 2016.

    Examples
    --------
    >>> propensities([[1, 0], [1, 0], [1, 0], [1, 1]]).round(3)
    array([0.8  , 0.721])
    """
    train = label_sets(y_train, "y_train")
    a, b = positive_number(a, "a"), positive_number(b, "b")
    n_rows = train.shape[0]
    if n_rows < 3:
        raise ValueError(f"y_train must have at least 3 rows, but it has {n_rows}")
    scale = (np.log(n_rows) - 1.0) * (b + 1.0) ** a
    return 1.0 / (1.0 + scale * (train.sum(axis=0) + b) ** -a)


def checked_propensity(propensity: Any, n_labels: int) -> NDArray[np.float64]:
    """Propensities of that many labels, each in (0, 1]."""
    vector = real_vector(propensity, n_labels, "propensity")
    wrong = np.flatnonzero((vector <= 0.0) | (vector > 1.0))
    if len(wrong):
        raise ValueError(
            f"propensity must lie in (0, 1], but propensity[{wrong[0]}] is {vector[wrong[0]]}"
        )
    return vector

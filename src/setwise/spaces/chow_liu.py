"""The tree that tells most about label sets: Chow and Liu (1968)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from scipy.sparse.csgraph import breadth_first_order, connected_components, minimum_spanning_tree
from scipy.special import xlogy

from setwise.spaces.forest import Forest
from setwise.sparse import entries_of, tidy_sets
from setwise.validation import label_matrix, real_vector

# Pairs of labels are compared in a square array.
MOST_LABELS = 5000
# Labels are joined from this information on; two informations differ by more than rounding.
LEAST_INFORMATION, RELATIVE_ROUNDING, ROUNDING = 1e-12, 1e-9, 1e-14


def chow_liu(sets: Any, weights: Any = None, n_rows: int | None = None) -> Forest:
    """The forest of largest total mutual information between neighbours, with its potentials.

    Among all forests the law that factors along this one, with the frequencies of the sets, has the
    highest likelihood of them. Potentials are log P(label | its parent) on each edge, with one set
    added whose labels are independent, so that all are finite; the root's own odds are left to its
    score. Labels that tell nothing of one another are not joined; of pairs that tell equally much,
    but for rounding, the one with the lower labels comes first. Cost: l^2 log l and one sparse
    product.

    Parameters
    ----------
    sets : array or CSR matrix of 0/1, shape (n, l)
    weights : array of shape (n,), optional
        How much each set counts, none negative; their scale does not matter.
    n_rows : int, optional
        How many sets these stand for, beside which one is added; by default n.

    Examples
    --------
    >>> chow_liu([[1, 1, 0], [0, 0, 0], [1, 1, 1], [0, 0, 1]]).parents
    array([-1,  0, -1])
    """
    dense = not issparse(sets)
    checked = entries_of(label_matrix(sets, None, "sets")) if dense else tidy_sets(sets, "sets")
    n_labels = checked.shape[1]
    if n_labels > MOST_LABELS:
        raise ValueError(
            f"a Chow-Liu forest compares all pairs of at most {MOST_LABELS} labels, but there are "
            f"{n_labels}; give a Forest with parents of your own, or use a Sized space"
        )
    n = checked.shape[0]
    mass = np.ones(n) if weights is None else real_vector(weights, n, "weights")
    if (mass < 0).any() or not mass.sum() > 0:
        raise ValueError("weights must not be negative, nor all 0")
    n = n if n_rows is None else n_rows
    pairs = pair_law(checked, mass * (n / mass.sum()))
    parents = _spanning_forest(_information(pairs))
    # Shares of labels with one set added, half of it with the label and half without.
    share = (n * pairs[1].sum(axis=0).diagonal() + 0.5) / (n + 1.0)
    states = np.stack([1.0 - share, share])
    potentials = np.zeros((n_labels, 2, 2))
    for child in np.flatnonzero(parents >= 0):
        parent = parents[child]
        apart = states[:, None, child] * states[None, :, parent]
        joint = (n * pairs[:, :, child, parent] + apart) / (n + 1.0)
        potentials[child] = np.log(joint / joint.sum(axis=0))
    return Forest(parents, potentials)


def pair_law(sets: csr_array, weights: NDArray[Any]) -> NDArray[np.float64]:
    """The share of sets in each pair of states, [state of i, state of j, i, j], (2, 2, l, l)."""
    values = sets.astype(np.float64)
    both = (values.T @ (values * weights[:, None])).toarray()
    single, total = np.diag(both), float(weights.sum())
    law = np.empty((2, 2, *both.shape))
    law[1, 1] = both
    law[1, 0] = single[:, None] - both
    law[0, 1] = single[None, :] - both
    law[0, 0] = total - single[:, None] - single[None, :] + both
    return np.maximum(law, 0.0) / total


def _information(law: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mutual information of each pair of labels, (l, l)."""
    first, second = law.sum(axis=1, keepdims=True), law.sum(axis=0, keepdims=True)
    apart = np.where(law > 0, first * second, 1.0)
    return xlogy(law, law / apart).sum(axis=(0, 1))


def _places(information: NDArray[np.float64]) -> csr_array:
    """Where each pair i < j of labels stands, 1 the most informative; pairs that tell nothing not.

    Informations closer than rounding are equal, and pairs of equal ones in the order of i, then j:
    so neither the order of the rows nor the scale of their weights decides.
    """
    # (Older releases of scipy find their way in 32-bit places only.)
    pairs = np.nonzero(np.triu(information >= LEAST_INFORMATION, 1))
    first, second = (part.astype(np.int32) for part in pairs)
    value = -information[first, second]
    order = np.argsort(value, kind="stable")
    apart = np.diff(value[order]) > RELATIVE_ROUNDING * -value[order][:-1] + ROUNDING
    rank = np.empty(len(value), np.int64)
    rank[order] = np.append(0, np.cumsum(apart))[: len(value)]
    place = np.empty(len(value))
    place[np.argsort(rank, kind="stable")] = np.arange(1.0, len(value) + 1)
    return csr_array((place, (first, second)), shape=information.shape)


def _spanning_forest(information: NDArray[np.float64]) -> NDArray[np.int64]:
    """Parents of the heaviest spanning forest, each tree hung at its lowest label."""
    n = len(information)
    tree = minimum_spanning_tree(_places(information))
    parents = np.full(n, -1, np.int64)
    _, member = connected_components(tree, directed=False)
    for root in np.unique(member, return_index=True)[1]:
        order, before = breadth_first_order(tree, int(root), directed=False)
        parents[order[1:]] = before[order[1:]]
    return parents

"""The tree that tells most about label sets: Chow and Liu (1968)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from scipy.sparse.csgraph import breadth_first_order, connected_components, minimum_spanning_tree
from scipy.special import xlogy

from setwise.inputs import label_matrix
from setwise.spaces.forest import Forest

# Pairs of labels are compared in a square array.
MOST_LABELS = 5000


def chow_liu(sets: Any, weights: Any = None) -> Forest:
    """The forest of largest total mutual information between neighbours, with its potentials.

    Among all forests the law that factors along this one has the highest likelihood of the label
    sets. Frequencies have half a set added to each state of a pair, so that all potentials are
    finite. Potentials are those of that law with scores of 0: log P(label | its parent) on each
    edge; the root's own odds are left to its score. Labels that tell nothing of one another are not
    joined. Ties: the pair of lower labels. Cost: l^2 and one sparse product.

    Parameters
    ----------
    sets : array or CSR matrix of 0/1, shape (n, l)
    weights : array of shape (n,), optional
        How often each set counts.

    Examples
    --------
    >>> chow_liu([[1, 1, 0], [0, 0, 0], [1, 1, 1], [0, 0, 1]]).parents
    array([-1,  0, -1])
    """
    checked: Any = (
        csr_array(sets) if issparse(sets) else csr_array(label_matrix(sets, None, "sets"))
    )
    n_labels = checked.shape[1]
    if n_labels > MOST_LABELS:
        raise ValueError(
            f"a Chow-Liu forest compares all pairs of at most {MOST_LABELS} labels, but there are "
            f"{n_labels}; give a Forest with parents of your own, or use a Sized space"
        )
    mass = np.ones(checked.shape[0]) if weights is None else np.asarray(weights, np.float64)
    pairs = pair_law(checked, mass)
    parents = _spanning_forest(_information(pairs))
    potentials = np.zeros((n_labels, 2, 2))
    for child in np.flatnonzero(parents >= 0):
        joint = pairs[:, :, child, parents[child]]
        potentials[child] = np.log(joint / joint.sum(axis=0))
    return Forest(parents, potentials)


def pair_law(sets: csr_array, weights: NDArray[Any]) -> NDArray[np.float64]:
    """P(state of i, state of j), half a set added to each, (2, 2, l, l)."""
    values = sets.astype(np.float64)
    both = (values.T @ (values * weights[:, None])).toarray()
    single, total = np.diag(both), float(weights.sum())
    law = np.empty((2, 2, *both.shape))
    law[1, 1] = both
    law[1, 0] = single[:, None] - both
    law[0, 1] = single[None, :] - both
    law[0, 0] = total - single[:, None] - single[None, :] + both
    return (np.maximum(law, 0.0) + 0.5) / (total + 2.0)


def _information(law: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mutual information of each pair of labels, (l, l)."""
    first, second = law.sum(axis=1, keepdims=True), law.sum(axis=0, keepdims=True)
    return xlogy(law, law / (first * second)).sum(axis=(0, 1))


def _spanning_forest(information: NDArray[np.float64]) -> NDArray[np.int64]:
    """Parents of the heaviest spanning forest, each tree hung at its lowest label."""
    n = len(information)
    weight = np.triu(information, 1)
    weight[weight < 1e-12] = 0.0
    tree = minimum_spanning_tree(csr_array(-weight))
    parents = np.full(n, -1, np.int64)
    _, member = connected_components(tree, directed=False)
    for root in np.unique(member, return_index=True)[1]:
        order, before = breadth_first_order(tree, int(root), directed=False)
        parents[order[1:]] = before[order[1:]]
    return parents

"""Extra trees for very many classes: a leaf holds the classes of its rows, not a number for each.

scikit-learn's trees keep a number for each class at each node. Where every label set is a class
that is gigabytes for a few thousand rows. Here trees are grown a few at a time, and what is kept of
them is how they split and which classes are in their leaves: one entry a row and tree.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse, vstack
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from setwise.estimators.design import weights_of
from setwise.estimators.running import Watch
from setwise.kernels import kernel
from setwise.sparse import row_ranges, well_formed
from setwise.threads import for_rows, thread_count
from setwise.validation import whole_number

Array = NDArray[Any]

# Trees that are grown at a time, and the rows for which a leaf has one more row at least.
BATCH, ROWS_A_LEAF = 10, 10_000
# Splits tell so many classes apart: the most frequent ones, and others by chance together.
TOLD_APART, TOGETHER = 48, 16
# Vectors of classes are at most so long where splits are chosen.
MOST_COLUMNS = 32


@dataclass(eq=False, repr=False)
class LeafForest(ClassifierMixin, BaseEstimator):
    """Extremely randomised trees whose leaves hold the classes of their training rows.

    P(class | x) is the mean, over trees, of the share of the class among the training rows in the
    leaf of x, by weight: that of scikit-learn's `ExtraTreesClassifier`, in far less memory. Up to
    64 classes the trees are the same. Of more, splits make the vectors of the classes, if `fit` has
    them, as alike as can be (squared error); without vectors they tell the 48 most frequent classes
    apart, and the others in 16 groups that chance makes for each ten trees.

    Parameters
    ----------
    n_estimators : int, default 300
        Number of trees.
    min_samples_leaf : int, optional
        Least rows of a leaf; by default 1, and one more for every 10,000 rows.
    max_features : default "sqrt"
        Features that a split is chosen among, as in `ExtraTreesClassifier`.
    time_budget : float, optional
        Seconds for `fit`: as many trees are grown as there is time for, one at least.
    random_state : int, RandomState or None, default None

    Attributes
    ----------
    classes_ : array of shape (K,)
    trees_ : Splits
        How the trees split, as arrays.
    shares_ : CSR array of shape (nodes, K)
        The share of each class in each leaf.
    masses_ : array of shape (nodes,)
        The weight of the rows in each leaf.
    n_trees_, n_features_in_ : int
    feature_importances_ : array of shape (n_features,)
        By how much the splits by each feature make rows more alike, as in `ExtraTreesClassifier`:
        the mean over trees, with a sum of 1 (or of 0, without splits).
    stopped_ : {None, "time_budget"}
        Why there are fewer trees, if there are.

    Examples
    --------
    >>> X, y = [[0.0, 1.0], [0.1, 0.9], [1.0, 0.0], [0.9, 0.2]], ["a", "a", "b", "b"]
    >>> LeafForest(20, random_state=0).fit(X, y).predict([[0.05, 0.95], [0.95, 0.1]])
    array(['a', 'b'], dtype='<U1')
    """

    n_estimators: int = 300
    min_samples_leaf: int | None = None
    max_features: Any = "sqrt"
    time_budget: float | None = None
    random_state: Any = None

    def fit(self, X, y, sample_weight=None, vectors=None) -> Self:
        """Grow the trees; rows of weight 0 are not there.

        ``vectors`` has a row for each class in increasing order, such as the label set it stands
        for; `CatalogClassifier` hands it on.
        """
        watch = Watch(self.time_budget, None)
        whole = whole_number(self.n_estimators, "n_estimators", 1)
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float32, ensure_all_finite="allow-nan"
        )
        with warnings.catch_warnings():
            # Many classes are what it is for.
            warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
            check_classification_targets(y)
        weights = weights_of(sample_weight, X)
        used = np.flatnonzero(weights)
        # (Only their ratios count; very small numbers would be 0 in single precision.)
        X, weights = X[used], weights[used] / weights.max()
        self.classes_, number = np.unique(y[used], return_inverse=True)
        if vectors is not None:
            vectors = np.asarray(vectors)[np.isin(np.unique(y), self.classes_)]
        rng, grown, more = check_random_state(self.random_state), [], BATCH
        if self.time_budget is not None:
            more = 1
        while more > 0 and len(grown) < whole:
            begun, more = time.monotonic(), min(more, whole - len(grown))
            grown += self._batch(more, X, number, weights, vectors, rng)
            # As many as there is time for; a millionth of a second is as short as any.
            affordable = watch.left * more / (time.monotonic() - begun + 1e-6)
            more = int(min(max(affordable, 0.0), BATCH))
        self.n_trees_ = len(grown)
        self.stopped_ = "time_budget" if len(grown) < whole else None
        splits, shares, masses, gains = zip(*grown, strict=True)
        gain = np.sum(gains, axis=0)
        self.feature_importances_ = gain / max(gain.sum(), np.finfo(np.float64).tiny)
        self.trees_, self.masses_ = Splits.joined(list(splits)), np.concatenate(masses)
        self.shares_ = csr_array(vstack(shares, format="csr"))
        return self

    def _batch(
        self, n_trees: int, X: Any, number: Array, weights: Array, vectors: Any, rng: Any
    ) -> list[Any]:
        """How some more trees split, the classes in their leaves, and what features gain."""
        leaf, n_classes = self.min_samples_leaf, len(self.classes_)
        kind, told = told_apart(number, n_classes, vectors, rng)
        forest = kind(
            n_trees, min_samples_leaf=1 + len(number) // ROWS_A_LEAF if leaf is None else leaf,
            max_features=self.max_features, n_jobs=thread_count(), random_state=rng,
        ).fit(X, told, weights)  # fmt: skip
        leaves, found = forest.apply(X), []
        for tree, of_rows in zip(forest.estimators_, leaves.T, strict=True):
            shape = tree.tree_.node_count, n_classes
            shares = csr_array((weights, (of_rows, number)), shape=shape, dtype=np.float32)
            masses = shares.sum(axis=1)
            shares.data /= np.repeat(masses, np.diff(shares.indptr))
            gains = tree.tree_.compute_feature_importances()
            found.append((Splits.of(tree.tree_), shares, masses, gains))
        return found

    def predict_proba(self, X) -> Array:
        """The probability of each class, (n, K)."""
        check_is_fitted(self)
        given: Any = validate_data(
            self, X, reset=False, accept_sparse="csr", dtype=np.float32,
            ensure_all_finite="allow-nan",
        )  # fmt: skip
        probability, shares = np.zeros((given.shape[0], len(self.classes_))), self.shares_
        listed = shares.indptr, shares.indices, shares.data
        for rows in row_ranges(*given.shape):
            inputs = given[rows].toarray() if issparse(given) else given[rows]
            for_rows(fall_rows, len(inputs), inputs, *self.trees_, *listed, probability[rows])
        return probability / probability.sum(axis=1, keepdims=True)

    def parts(self, row: Any) -> tuple[Array, Array]:
        """P(class) over all training rows (K,), and what splits change of it for a row, (K, d).

        A node has the classes of the rows that reach it; what they change from a node to the next
        on the way of the row is by the feature of the split. The sum of all is `predict_proba`.
        """
        check_is_fitted(self)
        # (In single precision, as rows fall in `predict_proba`.)
        inputs = np.asarray(row.toarray() if issparse(row) else row, np.float32)[0]
        start, parts = np.zeros(len(self.classes_)), np.zeros((len(self.classes_), len(inputs)))
        ends = [*self.trees_.roots[1:].tolist(), len(self.masses_)]
        for root, end in zip(self.trees_.roots.tolist(), ends, strict=True):
            told = self._share(root, end)
            start += told
            # (The nodes below one follow it, those on the left first.)
            for node, first, last in self.trees_.way(inputs, root, end):
                there = self._share(first, last)
                parts[:, self.trees_.feature[node]] += there - told
                told = there
        return start / self.n_trees_, parts / self.n_trees_

    def _share(self, first: int, last: int) -> Array:
        """P(class) among the rows in the leaves of a range of nodes, (K,)."""
        masses = self.masses_[first:last].astype(np.float64)
        return self.shares_[first:last].T @ masses / masses.sum()

    def predict(self, X) -> Array:
        """The most probable class, (n,)."""
        most_likely = self.predict_proba(X).argmax(axis=1)
        return self.classes_[most_likely]

    def __setstate__(self, state):
        """From a file: numbers that would lead out of the trees are refused."""
        if "trees_" in state:
            trees, shares = state["trees_"], well_formed(state["shares_"], "shares_")
            trees.require_within(int(state["n_features_in_"]))
            shape = len(trees.left), len(state["classes_"])
            if shares.shape != shape or np.shape(state["masses_"]) != shape[:1]:
                raise ValueError(f"shares of classes in leaves must have the shape {shape}")
        super().__setstate__(state)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags


def told_apart(number: Array, n_classes: int, vectors: Any, rng: Any) -> tuple[Any, Array]:
    """The kind of forest to grow, and what its splits are chosen by: a class or a vector a row."""
    if n_classes <= TOLD_APART + TOGETHER:
        return ExtraTreesClassifier, number
    if vectors is not None:
        if vectors.shape[1] > MOST_COLUMNS:
            # Random projections keep squared distances, but for a factor, on average.
            vectors = vectors @ rng.normal(size=(vectors.shape[1], MOST_COLUMNS))
        return ExtraTreesRegressor, vectors[number].astype(np.float64)
    order = np.argsort(-np.bincount(number), kind="stable")
    group = TOLD_APART + rng.randint(TOGETHER, size=n_classes)
    group[order[:TOLD_APART]] = np.arange(TOLD_APART)
    return ExtraTreesClassifier, group[number]


class Splits(NamedTuple):
    """How trees split: by node the feature, its threshold, where missing values go, the next nodes.

    ``left`` is -1 at a leaf; ``roots`` are the nodes that trees begin at.
    """

    roots: Array
    feature: Array
    threshold: Array
    missing_left: Array
    left: Array
    right: Array

    @classmethod
    def of(cls, tree: Any) -> Splits:
        """Those of a tree of scikit-learn's."""
        return cls(
            np.zeros(1, np.int32), tree.feature.astype(np.int32), tree.threshold.copy(),
            tree.missing_go_to_left.astype(np.bool_), tree.children_left.astype(np.int32),
            tree.children_right.astype(np.int32),
        )  # fmt: skip

    def require_within(self, n_features: int) -> None:
        """Refuse nodes and features that are not there, and ways that do not go forward."""
        n = len(self.left)
        here, inner = np.arange(n), self.left >= 0
        good = all(len(part) == n for part in self[1:]) and (self.roots >= 0).all()
        if good:
            good = (self.roots < n).all() and all(
                ((here < side) & (side < n))[inner].all() for side in (self.left, self.right)
            )
            good = good and ((self.feature >= 0) & (self.feature < n_features))[inner].all()
        if not good:
            raise ValueError("the trees of a forest lead to nodes or features that are not there")

    def way(self, row: Array, node: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Each split that a row meets below a node, and the range of nodes it is sent to."""
        while self.left[node] >= 0:
            value, right = row[self.feature[node]], int(self.right[node])
            is_left = value <= self.threshold[node]
            if np.isnan(value):
                is_left = self.missing_left[node]
            first, end = (int(self.left[node]), right) if is_left else (right, end)
            yield node, first, end
            node = first

    @classmethod
    def joined(cls, trees: list[Splits]) -> Splits:
        """Those of several, one after the other."""
        first = np.cumsum([0, *(len(tree.left) for tree in trees)], dtype=np.int32)
        moved = [
            tree._replace(
                roots=tree.roots + begin,
                left=np.where(tree.left < 0, -1, tree.left + begin),
                right=np.where(tree.right < 0, -1, tree.right + begin),
            )
            for tree, begin in zip(trees, first[:-1], strict=True)
        ]
        return cls(*(np.concatenate(parts) for parts in zip(*moved, strict=True)))


@kernel
def fall_rows(
    start, stop, inputs, roots, feature, threshold, missing_left, left, right,
    indptr, indices, shares, probability,
):  # fmt: skip
    """probability[row, class] += the share of the class in the leaf of each tree."""
    for row in range(start, stop):
        for tree in range(len(roots)):
            node = roots[tree]
            while left[node] >= 0:
                value = inputs[row, feature[node]]
                # (A comparison with NaN is false.)
                goes_left = value <= threshold[node]
                if value != value:
                    goes_left = missing_left[node]
                node = left[node] if goes_left else right[node]
            for entry in range(indptr[node], indptr[node + 1]):
                probability[row, indices[entry]] += shares[entry]

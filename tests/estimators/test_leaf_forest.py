"""Trees whose leaves hold classes: the same as scikit-learn's, in plain arrays."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.utils import check_random_state
from sklearn.utils.estimator_checks import parametrize_with_checks

from setwise import CatalogClassifier, load, save
from setwise.estimators.leaf_forest import LeafForest
from tests.support.turns import in_turn


def problem(n=150, n_classes=5, seed=0):
    """Inputs, and classes that depend on them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).astype(np.float32)
    return X, np.digitize(X[:, 0] + 0.3 * rng.normal(size=n), np.linspace(-1, 1, n_classes - 1))


def falls_as_in_training(forest, X):
    """Whether each leaf gets the rows that it was grown with. (By scikit-learn 1.6 not all.)"""
    trees = [tree.tree_ for tree in forest.estimators_]
    counts = [np.bincount(tree.apply(X), minlength=tree.node_count) for tree in trees]
    pairs = zip(trees, counts, strict=True)
    return all((count == tree.n_node_samples)[tree.feature < 0].all() for tree, count in pairs)


@pytest.mark.parametrize("leaf", [1, 4])
@pytest.mark.parametrize("missing", [False, True])
def test_up_to_64_classes_it_is_the_forest_of_scikit_learn(leaf, missing):
    X, y = problem()
    X[::9, 1] = np.nan if missing else 0.0
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(X))
    # (Ours are divided by the largest: exactly by a power of two, else trees may differ.)
    weights[weights.argmax()] = 2.0
    ours = LeafForest(10, min_samples_leaf=leaf, random_state=3).fit(X, y, weights)
    theirs = ExtraTreesClassifier(
        10, min_samples_leaf=leaf, random_state=check_random_state(3)
    ).fit(X, y, weights)
    if missing and not falls_as_in_training(theirs, X):
        pytest.skip("this release of scikit-learn sends missing values elsewhere than in training")
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_leaves_tell_all_of_many_classes_apart():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 3))
    y = np.arange(200) % 100
    model = LeafForest(25, random_state=0).fit(X, y)
    # Rows share a leaf at most with rows of the same group.
    np.testing.assert_array_equal(model.predict(X), y)
    assert (model.predict_proba(X)[np.arange(200), y] > 0.9).all()


@pytest.mark.parametrize("n_labels", [14, 40])
def test_label_sets_reach_the_splits_of_many_classes(n_labels):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(300, 5))
    # One label by the first feature; the others are noise that makes most sets single ones.
    Y = (rng.uniform(size=(300, n_labels)) < 0.4).astype(int)
    Y[:, : n_labels // 2] = (X[:, :1] > 0) & np.ones(n_labels // 2, bool)
    seen, number = np.unique(Y, axis=0, return_inverse=True)
    told, blind = (
        LeafForest(30, random_state=0).fit(X, number.ravel(), vectors=vectors)
        for vectors in (seen, None)
    )
    new = rng.normal(size=(300, 5))
    right = [
        ((one.predict_proba(new) @ seen)[:, 0] > 0.5) == (new[:, 0] > 0) for one in (told, blind)
    ]
    assert right[0].mean() > right[1].mean()
    assert right[0].mean() > 0.9
    weights = np.ones(300)
    weights[number.ravel() == 0] = 0.0
    catalog = CatalogClassifier(LeafForest(10)).fit(X, Y)
    assert len(catalog.estimator_.classes_) == len(seen)
    few = LeafForest(10, random_state=0).fit(X, number.ravel(), weights, seen)
    assert 0 not in few.classes_


def test_sparse_rows_fall_as_dense_ones():
    X, y = problem(seed=3)
    X[X < 0.3] = 0.0
    dense, sparse = (LeafForest(4, random_state=0).fit(A, y) for A in (X, csr_array(X)))
    np.testing.assert_allclose(
        sparse.predict_proba(csr_array(X)), sparse.predict_proba(X), atol=1e-12
    )
    assert dense.predict_proba(X).shape == (len(X), len(dense.classes_))


def test_no_more_trees_are_begun_when_time_is_up():
    X, y = problem(seed=4)
    assert LeafForest(100, time_budget=1e-6, random_state=0).fit(X, y).n_trees_ == 1
    assert LeafForest(25, time_budget=1e6, random_state=0).fit(X, y).n_trees_ == 25


def test_a_file_holds_the_trees_as_arrays(tmp_path):
    X, y = problem(seed=5)
    Y = np.eye(5, dtype=int)[y]
    model = CatalogClassifier(LeafForest(12)).fit(X, Y)
    save(model, tmp_path / "forest.skops")
    again = load(tmp_path / "forest.skops")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@in_turn("part", ["roots", "feature", "left", "right"])
@in_turn("value", [-7, 10**6, 0])
def test_numbers_that_lead_out_of_the_trees_or_back_are_refused(part, value):
    X, y = problem(seed=5)
    state = LeafForest(2, random_state=0).fit(X, y).__getstate__()
    numbers = getattr(state["trees_"], part).copy()
    numbers[0] = value
    state["trees_"] = state["trees_"]._replace(**{part: numbers})
    if (part, value) in (("roots", 0), ("feature", 0), ("left", -7)):
        LeafForest().__setstate__(state)  # a root, a feature, a leaf
        return
    with pytest.raises(ValueError, match="nodes or features that are not there"):
        LeafForest().__setstate__(state)


@parametrize_with_checks([LeafForest(4, random_state=0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_only_the_ratios_of_weights_count():
    X, y = problem(60)
    found = [
        LeafForest(5, random_state=0).fit(X, y, np.full(60, weight)).predict_proba(X)
        for weight in (1.0, 1e-60, 1e60)
    ]
    np.testing.assert_allclose(found[1:], [found[0]] * 2, atol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_parts_of_a_row_add_up_to_its_probability_at_a_threshold_too(form):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 3))
    forest = LeafForest(20, random_state=0).fit(X, rng.integers(0, 4, 60))
    trees, n_near = forest.trees_, 0
    for root in trees.roots:
        row = X[:1].copy()
        # Above the threshold in double precision, and not above it in single precision.
        row[0, trees.feature[root]] = np.nextafter(trees.threshold[root], np.inf)
        n_near += np.float32(row[0, trees.feature[root]]) <= trees.threshold[root]
        start, parts = forest.parts(form(row))
        expected = forest.predict_proba(form(row))[0]
        np.testing.assert_allclose(start + parts.sum(axis=1), expected, atol=1e-6)
    assert n_near > 0

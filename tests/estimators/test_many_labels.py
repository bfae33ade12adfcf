"""Label sets that come sparse and are many stay sparse: the same models, without the array."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_array

from setwise import SetClassifier, SetClassifierCV, Taxonomy
from setwise import sparse as sparse_module
from setwise.blocks import MemoryBlocks
from setwise.estimators import newton, training
from setwise.labels import LabelNames, read_labels
from setwise.sparse import held, label_sums, set_sizes
from setwise.targets import TreeDistance

N, FEATURES, LABELS = 120, 4, 9
SETTINGS = [
    {"surrogate": "binary_relevance"},
    {"space": "catalog"},
    {"space": "joint"},
    {"space": "sized"},
    {"space": "backoff"},
    {"space": "forest"},
    {"surrogate": "logistic"},
    {"surrogate": "generalized_cross_entropy"},
    {"surrogate": "binary_relevance", "target": "macro_f1"},
    {"surrogate": "metro", "target": "macro_f1"},
    {"space": "sized", "target": "micro_f1"},
]


def drawn(n=N, n_labels=LABELS):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, FEATURES))
    Y = (X @ rng.normal(size=(FEATURES, n_labels)) + rng.normal(size=(n, n_labels)) > 1.5).astype(
        int
    )
    Y[:2] = 0
    return X, Y, rng.integers(0, 3, n).astype(float)


@pytest.fixture
def few_are_many(monkeypatch):
    """Every sparse y is held sparse, and ranges are of a few rows."""
    monkeypatch.setattr(sparse_module, "MOST_ENTRIES", 16 * LABELS)
    monkeypatch.setattr(training, "MOST_ENTRIES", 70 * LABELS)

    def held(sets):
        monkeypatch.setattr(sparse_module, "MOST_HELD", 0)
        return csr_array(sets)

    return held


def same(one, other, X):
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.intercept_, other.intercept_)
    assert one.objective_ == other.objective_
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    assert one.guarantee_ == other.guarantee_


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_sparse_sets_give_the_bits_of_dense_ones(settings, few_are_many):
    X, Y, weights = drawn()
    dense = SetClassifier(**settings, tol=1e-2).fit(X, Y, weights)
    sets = few_are_many(Y)
    sparse = SetClassifier(**settings, tol=1e-2).fit(X, sets, weights)
    same(sparse, dense, X)
    assert sparse.guarantee_on(X, sets) == dense.guarantee_on(X, Y)


@pytest.mark.parametrize("settings", [{}, {"choose_by": "likelihood"}, {"target": "macro_f1"}])
def test_searches_of_sparse_sets_choose_and_learn_as_of_dense_ones(settings, few_are_many):
    X, Y, weights = drawn()
    dense = SetClassifierCV(**settings, alphas=[0.1, 0.01], cv=3).fit(X, Y, weights)
    sparse = SetClassifierCV(**settings, alphas=[0.1, 0.01], cv=3).fit(X, few_are_many(Y), weights)
    assert sparse.cv_results_ == dense.cv_results_
    same(sparse.best_estimator_, dense.best_estimator_, X)


def test_blocks_of_many_different_sets_learn_as_of_few(few_are_many):
    X, Y, weights = drawn()
    for space in ("catalog", "backoff", "forest"):
        dense = SetClassifier(space=space).fit(MemoryBlocks.of(X, Y, weights, rows=50))
        blocks = MemoryBlocks.of(X, few_are_many(Y), weights, rows=50)
        same(SetClassifier(space=space).fit(blocks), dense, X)


def test_taxonomies_take_sparse_sets(few_are_many):
    X, Y, _ = drawn()
    taxonomy = Taxonomy.from_parents([-1, 0, 0, 1, 1, -1, 5, 5, 2])
    target, Y = TreeDistance(taxonomy), taxonomy.close(Y)
    dense = SetClassifier(target).fit(X, Y)
    same(SetClassifier(target).fit(X, few_are_many(Y)), dense, X)


def test_lists_of_many_labels_are_read_sparse(few_are_many):
    rows = [["b", "a"], [], ["c", "b"], ["a"]]
    sets, names = read_labels(rows)
    few_are_many([[0]])
    found, same_names = read_labels(rows)
    assert (found.format, same_names) == ("csr", names)
    np.testing.assert_array_equal(found.toarray(), sets)
    wide = LabelNames(["d", "c", "b", "a"])
    np.testing.assert_array_equal(
        wide.encode(rows).toarray(), [[0, 0, 1, 1], [0, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
    )
    with pytest.raises(ValueError, match="labels that are not among the labels: 'c'"):
        LabelNames(["a", "b"]).encode(rows)


def test_sums_of_sparse_and_dense_sets_are_equal_to_the_last_bit():
    rng = np.random.default_rng(1)
    for n, n_labels in ((1, 1), (7, 300), (5000, 13), (70, 9000)):
        sets = (rng.random((n, n_labels)) < 0.2).astype(np.uint8)
        weights = rng.lognormal(0.0, 5.0, n)
        rows = csr_array(sets)
        np.testing.assert_array_equal(label_sums(rows, weights), label_sums(sets, weights))
        np.testing.assert_allclose(label_sums(sets, weights), weights @ sets)
        np.testing.assert_array_equal(set_sizes(rows), set_sizes(sets))


@pytest.mark.filterwarnings("ignore:training has not converged")
@pytest.mark.parametrize(
    "settings",
    [{"surrogate": "binary_relevance", "sparse_output": True}, {"space": "sized"}],
    ids=["binary_relevance", "sized"],
)
def test_no_array_of_rows_by_labels_is_made_of_many(settings, monkeypatch):
    """The most that is held at a time is less than such an array in bytes."""
    n, n_labels = 6000, 1000
    monkeypatch.setattr(newton, "BLOCK_ENTRIES", 2**15)
    monkeypatch.setattr(training, "MOST_ENTRIES", 2**15)
    monkeypatch.setattr(training, "LEAST_ROWS", 1)
    monkeypatch.setattr(sparse_module, "MOST_ENTRIES", 2**15)
    X, Y = np.random.default_rng(0).normal(size=(n, 2)), many(n, n_labels)
    model = SetClassifier(**settings, max_iter=1)
    model.fit(X[:50], Y[:50])  # (kernels are compiled)
    monkeypatch.setattr(sparse_module, "MOST_HELD", 0)
    tracemalloc.start()
    model.fit(X, Y)
    found = model.predict(X) if model.sparse_output else None
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < n * n_labels
    assert found is None or type(found) is csr_array


def test_sets_are_held_as_an_array_up_to_64_mib():
    assert held(many(13_000, 5000)).shape == (13_000, 5000)
    large = many(20_000, 5000)
    assert held(large) is large


def many(n, n_labels):
    rng = np.random.default_rng(0)
    labels = np.sort(rng.integers(0, n_labels // 2, (n, 2)) * 2 + [0, 1])
    ends = np.arange(0, 2 * n + 1, 2)
    return csr_array((np.ones(2 * n, np.uint8), labels.ravel(), ends), shape=(n, n_labels))

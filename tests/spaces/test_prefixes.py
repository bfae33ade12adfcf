"""Common beginnings of listed sets: the tree holds the list, and its sums are those of the list."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setwise.spaces import Catalog
from setwise.spaces.prefixes import Prefixes


def some_sets(seed, n_labels, n_sets):
    rng = np.random.default_rng(seed)
    sets = (rng.uniform(size=(n_sets, n_labels)) < rng.uniform(0.1, 0.7, n_labels)).astype(np.uint8)
    sets = np.unique(sets, axis=0)
    return sets[rng.permutation(len(sets))]


@given(seed=st.integers(0, 10**6), n_labels=st.integers(1, 9), n_sets=st.integers(1, 60))
def test_labels_on_the_way_to_a_node_are_those_of_its_set(seed, n_labels, n_sets):
    sets = some_sets(seed, n_labels, n_sets)
    tree = Prefixes.of(sets)
    assert (tree.parent[1:] < np.arange(1, len(tree.parent))).all()
    found = np.zeros((len(tree.parent), n_labels), np.uint8)
    for node in range(1, len(tree.parent)):
        found[node] = found[tree.parent[node]]
        assert found[node, tree.label[node]] == 0
        found[node, tree.label[node]] = 1
    # No beginning is there twice, and every set is at one node.
    assert len(np.unique(found, axis=0)) == len(found)
    assert sorted(tree.place[tree.place >= 0]) == list(range(len(sets)))
    np.testing.assert_array_equal(found[tree.place >= 0], sets[tree.place[tree.place >= 0]])


@pytest.mark.parametrize("scale", [0.0, 1.0, 10.0, 100.0, 1e4])
@pytest.mark.parametrize("n_rows", [1, 7, 8, 200])
def test_sums_by_beginnings_are_those_of_the_posterior(scale, n_rows):
    rng = np.random.default_rng(5)
    sets = some_sets(6, 12, 150)
    bias = rng.normal(size=len(sets)) - 1e3
    bias[::9] = -np.inf
    space, weights = Catalog(sets, bias), rng.uniform(0.0, 2.0, n_rows)
    # Some rows are within the reach of products, others are not.
    scores = rng.choice([1.0, scale], size=(n_rows, 1)) * rng.normal(size=(n_rows, 12))
    likely, totals = space.expected(scores, weights)
    exact = space.moments(scores, features=True)
    # Logarithms of weights have the rounding of large numbers.
    rounding = 1e-12 * (1.0 + scale)
    np.testing.assert_allclose(likely, exact.on, atol=rounding)
    np.testing.assert_allclose(totals, weights @ exact.features, atol=rounding * n_rows)


def test_rows_beyond_products_are_summed_all_the_same():
    # Each label alone is overwhelming, but the list has no set with both, nor one without.
    space = Catalog([[1, 0], [0, 1]])
    scores = np.array([[400.0, 399.5], [-400.0, -400.5], [1e4, -1e4], [0.5, 0.0]])
    likely, totals = space.expected(scores, np.ones(4))
    first = 1.0 / (1.0 + np.exp(-1.0))
    np.testing.assert_allclose(likely[:, 0], [first, first, 1.0, first], atol=1e-12)
    np.testing.assert_allclose(totals, likely.sum(axis=0), atol=1e-12)


def test_sums_of_features_are_those_of_the_rows():
    rng = np.random.default_rng(0)
    every = some_sets(1, 6, 60)
    space = Catalog(every[:20])
    # (Some sets are not listed: they have no feature.)
    rows, weights = every[rng.integers(len(every), size=50)], rng.uniform(size=50)
    np.testing.assert_allclose(space.feature_sums(rows, weights), weights @ space.features(rows))

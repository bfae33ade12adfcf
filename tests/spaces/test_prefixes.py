"""What listed sets have in common: two trees hold the list, and their sums are those of it."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setwise.spaces import Backoff, Catalog, Cube, Sized
from setwise.spaces.prefixes import CHUNK, LANES, Halves, Prefixes
from setwise.threads import threads_limited
from tests.support.turns import in_turn


def some_sets(seed, n_labels, n_sets):
    rng = np.random.default_rng(seed)
    sets = (rng.uniform(size=(n_sets, n_labels)) < rng.uniform(0.1, 0.7, n_labels)).astype(np.uint8)
    sets = np.unique(sets, axis=0)
    return sets[rng.permutation(len(sets))]


@given(seed=st.integers(0, 10**6), n_labels=st.integers(1, 9), n_sets=st.integers(1, 60))
def test_labels_on_the_way_to_a_node_are_those_of_its_set(seed, n_labels, n_sets):
    sets = some_sets(seed, n_labels, n_sets)
    sets = np.vstack([sets, sets[:3]])  # of which some are alike
    tree = Prefixes.of(sets)
    found = np.zeros((len(tree.above), n_labels), np.uint8)
    for node in range(1, len(tree.above)):
        assert tree.above[node] < node
        found[node] = found[tree.above[node]]
        assert found[node, tree.label[node]] == 0
        found[node, tree.label[node]] = 1
    # No beginning is there twice, and every set is at one node.
    assert len(np.unique(found, axis=0)) == len(found)
    np.testing.assert_array_equal(found[tree.node], sets)


@given(seed=st.integers(0, 10**6), n_labels=st.integers(1, 9), n_sets=st.integers(1, 60))
def test_a_set_is_what_its_nodes_in_both_trees_have(seed, n_labels, n_sets):
    sets = some_sets(seed, n_labels, n_sets)
    above, label, begins, second, order = Halves.of(sets)
    n_first, found = len(begins) - 1, np.zeros((len(above), n_labels), np.uint8)
    for node in range(len(above)):
        if node not in (0, n_first):
            found[node] = found[above[node]]
            found[node, label[node]] = 1
    first = np.repeat(np.arange(n_first), np.diff(begins))
    assert (second >= n_first).all()
    np.testing.assert_array_equal(found[first] + found[second], sets[order])
    assert sorted(order) == list(range(len(sets)))


def some_space(name, sets, rng):
    """A list with biases, some of it excluded, or with bonuses over another space."""
    if name == "catalog":
        bias = rng.normal(size=len(sets)) - 1e3
        bias[::9] = -np.inf
        return Catalog(sets, bias)
    base = Sized(sets.shape[1], rng.normal(size=sets.shape[1] + 1))
    bonus = rng.uniform(0.0, 6.0, len(sets))
    bonus[::7] = 0.0
    return Backoff(base if name == "sized" else Cube(sets.shape[1]), sets, bonus)


@in_turn("name", ["catalog", "sized", "cube"])
@in_turn("scale", [0.0, 1.0, 10.0, 100.0, 1e4])
@in_turn("n_rows", [1, LANES - 1, LANES + 1, CHUNK, CHUNK + 1, 600])
def test_sums_by_halves_are_those_of_the_rows(name, scale, n_rows):
    rng = np.random.default_rng(5)
    sets = some_sets(6, 12, 150)
    space, weights = some_space(name, sets, rng), rng.uniform(0.0, 2.0, n_rows)
    # Some rows are within the reach of products, others are not.
    scores = rng.choice([1.0, scale], size=(n_rows, 1)) * rng.normal(size=(n_rows, 12))
    true = space.enumerate()
    true = true[rng.integers(len(true), size=n_rows)]
    value, by_score, total = space.summed_likelihood(scores, true, weights)
    exact = space.negative_log_likelihood(scores, true)
    # Logarithms of weights have the rounding of large numbers.
    rounding = 1e-12 * (1.0 + scale)
    np.testing.assert_allclose(value, exact[0], rtol=1e-12, atol=rounding)
    np.testing.assert_allclose(by_score, exact[1], atol=rounding)
    np.testing.assert_allclose(total, weights @ exact[2], atol=rounding * n_rows)
    plain = space.negative_log_likelihood(scores, true, False)
    np.testing.assert_array_equal(plain[0], value)
    np.testing.assert_array_equal(plain[1], by_score)


@pytest.mark.parametrize("score", [-90.0, -40.0, 5.0, 40.0, 60.0])
def test_what_others_have_beside_a_sure_set_is_kept(score):
    """-log s(y) and its gradients are accurate to themselves, however near 0 they are."""
    sets = np.eye(4, dtype=np.uint8)[:3]
    scores = np.array([[score, score - 30.0, score - 31.0, 0.0]])
    space = Catalog(sets, [0.5, 1.0, 1.5])
    second, third = np.exp(-59.5), np.exp(-61.0)
    others, whole = second + third, 1.0 + second + third
    for found in (
        space.summed_likelihood(scores, sets[:1], np.ones(1)),
        space.negative_log_likelihood(scores, sets[:1]),
    ):
        np.testing.assert_allclose(found[0], np.log1p(others), rtol=1e-12)
        slopes = np.array([-others, second, third]) / whole
        np.testing.assert_allclose(found[1].ravel()[:3], 2.0 * slopes, rtol=1e-12)
        np.testing.assert_allclose(found[2].ravel(), slopes, rtol=1e-12)


@pytest.mark.parametrize("low", [-300.0, -354.0, -1e3, -1e5])
def test_sets_that_weigh_nothing_add_nothing(low):
    """However much e^(2 low) is below the least number there is."""
    space, true = Catalog([[1, 0, 0], [0, 1, 0], [0, 0, 1]]), np.array([[1, 0, 0]], np.uint8)
    for score in (-120.0, 0.0, 120.0):
        scores = np.array([[score, low, score - 100.0]])
        value, by_score, total = space.summed_likelihood(scores, true, np.ones(1))
        exact = [-np.exp(-200.0), np.exp(2.0 * (low - score)), np.exp(-200.0)]
        np.testing.assert_allclose(value, np.exp(-200.0), rtol=1e-12)
        np.testing.assert_allclose(by_score[0], 2.0 * np.array(exact), rtol=1e-12, atol=1e-200)
        np.testing.assert_allclose(total, exact, rtol=1e-12, atol=1e-200)


@given(seed=st.integers(0, 10**6), high=st.sampled_from([0.0, 100.0, 174.0, 180.0]))
def test_sums_have_their_digits_however_small_they_are(seed, high):
    """Against more digits than floats have, within reach of products and beyond it."""
    rng = np.random.default_rng(seed)
    sets = some_sets(seed, 5, 20)
    bias, true = rng.normal(size=len(sets)) * 20.0, int(rng.integers(len(sets)))
    scores = rng.normal(size=5) * rng.choice([1.0, 60.0])
    scores[0] = high
    with mpmath.workdps(60):
        z = [
            mpmath.mpf(b) + 2 * mpmath.fsum(map(mpmath.mpf, scores[s == 1]))
            for s, b in zip(sets, bias, strict=True)
        ]
        weight = [mpmath.exp(one - z[true]) for one in z]
        others = mpmath.fsum(w for k, w in enumerate(weight) if k != true)
        exact, share = float(mpmath.log1p(others)), [float(w / (1 + others)) for w in weight]
        share[true] = -float(others / (1 + others))
    found = Catalog(sets, bias).summed_likelihood(scores[None], sets[true : true + 1], np.ones(1))
    # (Logarithms of weights have the rounding of the largest.)
    rounding = 1e-14 * (100.0 + np.abs(scores).sum() + np.abs(bias).max())
    np.testing.assert_allclose(found[0], exact, rtol=rounding)
    np.testing.assert_allclose(found[2], share, rtol=rounding, atol=1e-300)


def test_rows_beyond_products_are_summed_all_the_same():
    # Each label alone is overwhelming, but the list has no set with both, nor one without.
    space = Catalog([[1, 0], [0, 1]])
    scores = np.array([[400.0, 399.5], [-400.0, -400.5], [1e4, -1e4], [0.5, 0.0]])
    true = np.tile(np.array([[1, 0]], np.uint8), (4, 1))
    value, by_score, totals = space.summed_likelihood(scores, true, np.ones(4))
    second = np.array([1.0, 1.0, 0.0, 1.0]) / (1.0 + np.e)
    np.testing.assert_allclose(value, -np.log1p(-second), atol=1e-12)
    np.testing.assert_allclose(by_score, 2.0 * second[:, None] * [-1.0, 1.0], atol=1e-12)
    np.testing.assert_allclose(totals, second.sum() * np.array([-1.0, 1.0]), atol=1e-12)


def test_sums_are_the_same_however_many_threads_there_are():
    rng = np.random.default_rng(2)
    sets = some_sets(3, 10, 100)
    space, weights = some_space("catalog", sets, rng), rng.uniform(size=3000)
    scores, true = rng.normal(size=(3000, 10)), space.enumerate()[rng.integers(80, size=3000)]
    together = space.summed_likelihood(scores, true, weights)
    with threads_limited(1):
        alone = space.summed_likelihood(scores, true, weights)
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_array_equal(one, other)


def test_sums_of_features_are_those_of_the_rows():
    rng = np.random.default_rng(0)
    every = some_sets(1, 6, 60)
    space = Catalog(every[:20])
    # (Some sets are not listed: they have no feature.)
    rows, weights = every[rng.integers(len(every), size=50)], rng.uniform(size=50)
    np.testing.assert_allclose(space.feature_sums(rows, weights), weights @ space.features(rows))

"""The tree of most information about label sets."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from setwise.spaces import Forest
from setwise.spaces.chow_liu import chow_liu


def drawn(seed, n_labels=4, n_rows=60):
    rng = np.random.default_rng(seed)
    sets = rng.integers(0, 2, (n_rows, n_labels))
    for label in range(1, n_labels):
        same = rng.random(n_rows) < rng.uniform(0.3, 0.9)
        sets[same, label] = sets[same, rng.integers(0, label)]
    return sets


def forests(n_labels):
    """Every way to give each label a parent without a cycle."""
    for parents in product(*([p for p in range(-1, n_labels) if p != i] for i in range(n_labels))):
        try:
            yield Forest(parents).parents
        except ValueError:
            continue


def likelihood(sets, parents, added=0.0):
    """Of the law along a forest, frequencies with a set of independent labels added, or not."""
    share = (sets.sum(axis=0) + added / 2) / (len(sets) + added)
    states, value = np.stack([1 - share, share]), 0.0
    for label, parent in enumerate(parents):
        if parent < 0:
            value += np.log(states[sets[:, label], label]).sum()
            continue
        pair = added * np.outer(states[:, label], states[:, parent])
        np.add.at(pair, (sets[:, label], sets[:, parent]), 1.0)
        law = pair / pair.sum(axis=0)
        value += np.log(law[sets[:, label], sets[:, parent]]).sum()
    return value


@pytest.mark.parametrize("seed", range(6))
def test_no_forest_has_a_higher_likelihood(seed):
    sets = drawn(seed)
    best = max(likelihood(sets, parents) for parents in forests(4))
    assert likelihood(sets, chow_liu(sets).parents) == pytest.approx(best)


@pytest.mark.parametrize("seed", range(3))
def test_its_potentials_are_the_conditional_laws(seed):
    """With the root's odds as its score, the forest's law is the law along its edges."""
    sets = drawn(seed)
    forest = chow_liu(sets)
    scores = np.zeros((1, 4))
    for root in np.flatnonzero(forest.parents < 0):
        share = (sets[:, root].sum() + 0.5) / (len(sets) + 1.0)
        scores[0, root] = np.log(share / (1 - share)) / 2
    every = forest.enumerate()
    law = np.exp(forest.log_probability(np.repeat(scores, len(every), axis=0), every))
    assert law.sum() == pytest.approx(1.0)
    value = np.log(law[[int("".join(map(str, row)), 2) for row in sets]]).sum()
    assert value == pytest.approx(likelihood(sets, forest.parents, added=1.0))


def test_a_chain_is_found():
    rng = np.random.default_rng(0)
    sets = np.empty((4000, 5), int)
    sets[:, 0] = rng.integers(0, 2, 4000)
    for label in range(1, 5):
        flip = rng.random(4000) < 0.2
        sets[:, label] = sets[:, label - 1] ^ flip
    np.testing.assert_array_equal(chow_liu(sets).parents, [-1, 0, 1, 2, 3])


def test_sparse_sets_and_weights_are_rows():
    sets, weights = drawn(1), np.random.default_rng(0).integers(1, 4, 60)
    expected = chow_liu(np.repeat(sets, weights, axis=0))
    for form in (sets, sparse.csr_array(sets)):
        found = chow_liu(form, weights)
        np.testing.assert_array_equal(found.parents, expected.parents)
        same = chow_liu(form, weights / 1e6)
        np.testing.assert_array_equal(same.parents, expected.parents)
        np.testing.assert_allclose(same.potentials, found.potentials)


def test_labels_never_seen_together_do_not_attract():
    sets = np.zeros((1000, 2), int)
    sets[0, 0] = sets[1, 1] = 1
    forest = chow_liu(sets)
    if forest.parents[1] == 0:
        alone, beside = np.exp(forest.potentials[1, 1])
        assert beside <= alone


@pytest.mark.parametrize("weights", [[-1.0, 1.0], [0.0, 0.0], [1.0]])
def test_bad_weights_are_refused(weights):
    with pytest.raises(ValueError, match="weights must"):
        chow_liu([[0, 1], [1, 0]], weights)


def test_too_many_labels_are_refused_with_another_way():
    with pytest.raises(ValueError, match="at most 5000 labels, but there are 5001"):
        chow_liu(sparse.csr_array((2, 5001), dtype=np.int8))


# ------------------------------------------------------------------------------------------- ties


def edges(forest, order=None):
    """The pairs of neighbours, as labels of ``order``."""
    names = np.arange(forest.n_labels) if order is None else np.asarray(order)
    pairs = ((child, parent) for child, parent in enumerate(forest.parents) if parent >= 0)
    return {frozenset(names[list(pair)].tolist()) for pair in pairs}


@given(seed=st.integers(0, 2**32 - 1))
def test_neither_order_nor_repetition_of_rows_nor_scale_of_weights_changes_the_tree(seed):
    """Few rows, so that many pairs of labels tell equally much."""
    random = np.random.default_rng(seed)
    sets = random.integers(0, 2, (random.integers(4, 12), random.integers(2, 9)))
    weights = random.integers(1, 4, len(sets)).astype(float)
    expected, weighed = chow_liu(sets).parents, chow_liu(sets, weights).parents
    rows = random.permutation(len(sets))
    np.testing.assert_array_equal(chow_liu(sets[rows]).parents, expected)
    np.testing.assert_array_equal(chow_liu(sets[rows], weights[rows]).parents, weighed)
    np.testing.assert_array_equal(
        chow_liu(np.repeat(sets, weights.astype(int), axis=0)).parents, weighed
    )
    for times in (3, 7):
        np.testing.assert_array_equal(chow_liu(np.tile(sets, (times, 1))).parents, expected)
    for scale in (1e-9, 0.1, 1 / 3, 7e11):
        np.testing.assert_array_equal(chow_liu(sets, weights * scale).parents, weighed)


@given(seed=st.integers(0, 2**32 - 1))
def test_another_order_of_labels_gives_the_same_pairs_where_none_are_equal(seed):
    random = np.random.default_rng(seed)
    sets, weights = random.integers(0, 2, (30, 6)), random.random(30)
    order = random.permutation(6)
    assert edges(chow_liu(sets[:, order], weights), order) == edges(chow_liu(sets, weights))


def test_of_equal_pairs_the_lower_labels_are_joined():
    """Three labels that are always alike tell equally much of one another."""
    sets = np.array([[1, 1, 1], [0, 0, 0], [0, 0, 0]])
    for order in permutations(range(3)):
        assert chow_liu(sets[:, order]).parents.tolist() == [-1, 0, 0]

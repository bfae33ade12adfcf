"""The tree of most information about label sets."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
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


def smoothed_likelihood(sets, parents):
    """Of the law along a forest, frequencies with half a set added to each state of a pair."""
    total, value = len(sets), 0.0
    for label, parent in enumerate(parents):
        if parent < 0:
            share = (sets[:, label].sum() + 1.0) / (total + 2.0)
            value += np.log(np.where(sets[:, label] == 1, share, 1 - share)).sum()
            continue
        pair = np.full((2, 2), 0.5)
        np.add.at(pair, (sets[:, label], sets[:, parent]), 1.0)
        law = pair / pair.sum(axis=0)
        value += np.log(law[sets[:, label], sets[:, parent]]).sum()
    return value


@pytest.mark.parametrize("seed", range(6))
def test_no_forest_has_more_information(seed):
    """Expected under the smoothed law, which the tree maximises; so nearly the likelihood too."""
    sets = drawn(seed)
    found = smoothed_likelihood(sets, chow_liu(sets).parents)
    best = max(smoothed_likelihood(sets, parents) for parents in forests(4))
    assert found >= best - 0.05 * abs(best)
    assert found >= smoothed_likelihood(sets, [-1] * 4)


@pytest.mark.parametrize("seed", range(3))
def test_its_potentials_are_the_conditional_laws(seed):
    """With the root's odds as its score, the forest's law is the law along its edges."""
    sets = drawn(seed)
    forest = chow_liu(sets)
    scores = np.zeros((1, 4))
    for root in np.flatnonzero(forest.parents < 0):
        share = (sets[:, root].sum() + 1.0) / (len(sets) + 2.0)
        scores[0, root] = np.log(share / (1 - share)) / 2
    every = forest.enumerate()
    law = np.exp(forest.log_probability(np.repeat(scores, len(every), axis=0), every))
    assert law.sum() == pytest.approx(1.0)
    value = np.log(law[[int("".join(map(str, row)), 2) for row in sets]]).sum()
    assert value == pytest.approx(smoothed_likelihood(sets, forest.parents))


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
        np.testing.assert_allclose(found.potentials, expected.potentials)


def test_too_many_labels_are_refused_with_another_way():
    with pytest.raises(ValueError, match="at most 5000 labels, but there are 5001"):
        chow_liu(sparse.csr_array((2, 5001), dtype=np.int8))

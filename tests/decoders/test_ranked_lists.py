"""Beside listed sets, the most probable labels of a row: no set among these has less risk."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setwise.decoders import MinimumRisk, lists
from setwise.targets import CountTarget, Hamming, get_target
from tests.support import oracle

TARGETS = {
    "jaccard": get_target("jaccard"),
    "f2": get_target("f2"),
    "misses": CountTarget(lambda tp, fp, fn, tn: (fn > 0) * 0.7 + 0.3 * fp / (1.0 + fp + tn)),
}


@pytest.mark.parametrize("name", TARGETS)
@given(seed=st.integers(0, 10**6), n_labels=st.integers(1, 6), n_sets=st.integers(1, 20))
def test_no_listed_set_and_no_most_probable_labels_have_less_risk(name, seed, n_labels, n_sets):
    rng, target = np.random.default_rng(seed), TARGETS[name]
    every = oracle.all_sets(n_labels)
    sets = every[rng.permutation(len(every))[:n_sets]].astype(np.uint8)
    posterior = rng.dirichlet(np.full(len(sets), 0.3), size=4)
    found = MinimumRisk(target).decode_catalog(posterior, sets, over="ranked", return_risk=True)
    for row, chance in enumerate(posterior):
        order = np.argsort(-(chance @ sets), kind="stable")
        tops = [
            np.isin(np.arange(n_labels), order[:k]) for k in range(1, sets.sum(axis=1).max() + 1)
        ]
        candidates = np.unique([*sets, *np.array(tops, np.uint8).reshape(-1, n_labels)], axis=0)
        losses = [target.loss(np.broadcast_to(one, sets.shape), sets) for one in candidates]
        risk = np.array(losses) @ chance
        chosen = (candidates == found.sets[row]).all(axis=1)
        assert chosen.sum() == 1
        np.testing.assert_allclose(risk[chosen], risk.min(), atol=1e-10)
        np.testing.assert_allclose(found.risk[row], risk.min(), atol=1e-10)
        np.testing.assert_allclose(
            found.second_risk[row], risk[~chosen].min(initial=np.inf), atol=1e-10
        )


@pytest.mark.parametrize("name", TARGETS)
def test_large_sets_are_decided_alike_without_a_table_of_all_counts(name, monkeypatch):
    rng = np.random.default_rng(0)
    sets = np.unique(rng.integers(0, 2, (30, 9), np.uint8), axis=0)
    posterior = rng.dirichlet(np.full(len(sets), 0.3), size=20)
    given = posterior, sets, "ranked", True
    expected = MinimumRisk(TARGETS[name]).decode_catalog(*given)
    monkeypatch.setattr(lists, "MOST_TABLED", 0)
    monkeypatch.delattr(lists, "_by_counts")
    found = MinimumRisk(TARGETS[name]).decode_catalog(*given)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_a_row_with_very_many_labels_takes_little_memory():
    sets = np.tri(3, 1500, 2, dtype=np.uint8)
    sets[0] = 1
    tracemalloc.start()
    MinimumRisk("jaccard").decode_catalog([[0.1, 0.5, 0.4]], sets, over="ranked")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6


def test_targets_that_are_no_function_of_the_counts_are_refused():
    with pytest.raises(ValueError, match=r"no function of the counts .* use over='list'"):
        MinimumRisk(Hamming()).decode_catalog([[0.5, 0.5]], [[1, 0], [0, 1]], over="ranked")

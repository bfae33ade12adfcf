"""Rankings of largest expected value: compared with every ranking there is."""

from itertools import permutations

import numpy as np
import pytest

from setwise.decoders import Ranking
from setwise.distributions import Independent, Listed, Mixture, OfSpace
from setwise.evaluation import evaluate
from setwise.spaces import Forest, Sized
from tests.support import oracle

N_LABELS = 4


def listed(rng):
    sets = oracle.all_sets(N_LABELS)
    return Listed(sets, rng.dirichlet(np.full(len(sets), 0.3), 3))


DISTRIBUTIONS = {
    "list": listed,
    "independent": lambda rng: Independent(rng.random((3, N_LABELS))),
    "sized": lambda rng: OfSpace(
        Sized(N_LABELS, [0.3, -0.5, 1.0, 0.0, 0.7]), rng.normal(size=(3, N_LABELS))
    ),
    "mixture": lambda rng: Mixture(
        [listed(rng), Independent(rng.random((3, N_LABELS)))], [0.3, 0.7]
    ),
}


def value(measure, order, truth):
    """The formula, for one ranking of all labels and one true set."""
    name, k = measure.split("@")
    hits = [int(truth[label]) for label in order[: int(k)]]
    if not truth.sum():
        return 0.0
    if name != "ndcg":
        return sum(hits) / (int(k) if name == "precision" else truth.sum())
    discounts = [1.0 / np.log2(place + 2) for place in range(int(k))]
    best = sum(discounts[: int(truth.sum())])
    return sum(d * hit for d, hit in zip(discounts, hits, strict=False)) / best


@pytest.mark.parametrize("measure", ["ndcg@1", "ndcg@2", "ndcg@4", "precision@2", "recall@3"])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_no_ranking_has_a_larger_expected_value(name, measure):
    given = DISTRIBUTIONS[name](np.random.default_rng(len(name)))
    sets, ranking = oracle.all_sets(N_LABELS), Ranking(measure)
    law = np.exp([given.log_probability(np.tile(row, (3, 1)).astype(np.uint8)) for row in sets]).T
    every = list(permutations(range(N_LABELS)))
    values = np.array([[value(measure, order, truth) for truth in sets] for order in every])
    best = ranking.rank(given)
    assert best.shape == (3, ranking.k)
    np.testing.assert_allclose(
        ranking.expected(given, best), (law @ values.T).max(axis=1), rtol=1e-10, atol=1e-12
    )


def test_gains_are_scores_of_the_ranking_that_is_evaluated():
    rng = np.random.default_rng(3)
    given = listed(rng)
    rows = np.repeat(np.arange(3), 4000)
    chosen = (given.posterior[rows].cumsum(axis=1) < rng.random((len(rows), 1))).sum(axis=1)
    truth, ranking = oracle.all_sets(N_LABELS)[np.minimum(chosen, 15)], Ranking("ndcg@2")
    gains = ranking.gains(given)[rows]
    found = evaluate(truth, truth, probability=gains / gains.max(), ks=(2,), n_bootstrap=0)
    expected = ranking.expected(given, ranking.rank(given)).mean()
    assert found["ndcg@2"].value == pytest.approx(expected, abs=0.02)


def test_what_cannot_be_ranked_is_refused():
    for wrong in ("ndcg", "ndcg@0", "f1@3", "ndcg@2.5", 3):
        with pytest.raises(ValueError, match="measure must be 'ndcg@k'"):
            Ranking(wrong)
    chain = OfSpace(Forest.chain(30), np.zeros((1, 30)))
    with pytest.raises(ValueError, match="P\\(label, size of the set\\)"):
        Ranking("ndcg@3").gains(chain)

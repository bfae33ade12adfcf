"""Decisions from shortlists: labels outside are counted, and what that can cost is bounded."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from setwise.decoders import MinimumRisk, TopK
from setwise.distributions import Independent, Mixture, Shortlist
from setwise.targets import CountTarget, LinearFractional
from tests.support import decision_oracle, oracle

DEFINITIONS = {
    "f1": oracle.f_beta(1.0), "f2": oracle.f_beta(2.0), "f0.5": oracle.f_beta(0.5),
    "jaccard": oracle.jaccard(), "precision@2": oracle.precision_at_k(2),
    "recall@2": oracle.recall_at_k(2), "hamming": oracle.hamming(), "subset": oracle.subset(),
}  # fmt: skip
SIZES = {"precision@2": 2, "recall@2": 2}
N_LABELS = 7


def marginals(seed, n_labels=N_LABELS):
    """Some likely labels among many improbable ones."""
    generator = np.random.default_rng(seed)
    return generator.random(n_labels) ** generator.choice([1.0, 3.0, 6.0])


def shortlist_of(p, floor, spread=(1.0, 1.0)):
    """The shortlist of a row of known marginals; its tail known up to factors."""
    listed = np.where(p >= floor, p, 0.0)
    tail = p[p < floor].sum(keepdims=True)
    return Shortlist(csr_array(listed[None]), tail, floor, tail * spread[0], tail * spread[1])


@cache
def losses(name, n_labels):
    """Of every prediction against every outcome."""
    return decision_oracle.loss_table(DEFINITIONS[name], n_labels)


def risks(name, p):
    """The expected loss of every set that may be predicted, by enumeration; and its number."""
    table = losses(name, len(p))
    allowed = decision_oracle.allowed_numbers(len(p), SIZES.get(name))
    return allowed, np.asarray(table[allowed] @ decision_oracle.independent_law(p), np.float64)


def regret(name, p, sets):
    allowed, expected = risks(name, p)
    number = decision_oracle.number_of(sets.toarray())[0]
    return float(expected[allowed == number][0] - expected.min())


@pytest.mark.parametrize("name", DEFINITIONS)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), floor=st.floats(0.01, 0.6))
def test_no_label_set_is_better_by_more_than_the_gap(name, seed, floor):
    p = marginals(seed)
    listed = shortlist_of(p, floor, spread=(0.5, 1.5))
    decoder = MinimumRisk(name)
    assert regret(name, p, decoder.decode(listed)) <= decoder.gap(listed)[0] + 1e-9


@pytest.mark.parametrize("name", DEFINITIONS)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), spread=st.booleans())
def test_the_gap_holds_where_labels_outside_are_more_probable_than_listed_ones(name, seed, spread):
    generator, p = np.random.default_rng(seed), marginals(seed)
    inside = generator.random(N_LABELS) < 0.6
    tail = p[~inside].sum(keepdims=True)
    ends = (tail / 2, 1.5 * tail) if spread else (tail, tail)
    floor = [max(p[~inside].max(initial=0.0), 1e-3)]
    listed = Shortlist(csr_array(np.where(inside, p, 0.0)[None]), tail, floor, *ends)
    decoder = MinimumRisk(name)
    assert regret(name, p, decoder.decode(listed)) <= decoder.gap(listed)[0] + 1e-9


def test_the_gap_counts_a_prediction_of_labels_outside_alone():
    p = np.array([*5 * [1e-6], 0.5, 0.5])
    listed = Shortlist(csr_array(np.where(p < 0.1, p, 0.0)[None]), [1.0], 0.5)
    decoder = MinimumRisk("f1")
    found = regret("f1", p, decoder.decode(listed))
    assert found > 0.3
    assert found <= decoder.gap(listed)[0]


def test_a_shortlist_of_every_label_has_no_gap():
    listed = Shortlist(csr_array([[0.7, 0.4, 0.1]]), [0.0], 0.0)
    for name in ("f1", "precision@1", "hamming"):
        np.testing.assert_allclose(MinimumRisk(name).gap(listed), 0.0, atol=1e-9)


@pytest.mark.parametrize("name", ["f1", "f2", "jaccard"])
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), share=st.floats(0.0, 1.0))
def test_the_gap_holds_for_every_tail_within_the_bounds(name, seed, share):
    generator, floor = np.random.default_rng(seed), 0.2
    likely, others = generator.uniform(floor, 1.0, 3), generator.uniform(0.0, floor, 4)
    p = np.concatenate([likely, others * share])
    most = others.sum()
    told = generator.uniform(0.0, most)
    listed = Shortlist(csr_array([[*likely, *(0.0 * others)]]), [told], floor, [0.0], [most])
    decoder = MinimumRisk(name)
    assert regret(name, p, decoder.decode(listed)) <= decoder.gap(listed)[0] + 1e-9


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_shortlist_without_a_tail_is_independent_labels(name):
    generator = np.random.default_rng(3)
    table = csr_array(generator.random((40, 12)) * (generator.random((40, 12)) < 0.5))
    whole = Shortlist(table, np.zeros(40), 0.5)
    decoder = MinimumRisk(name)
    ours, plain = (decoder.decode(one, return_risk=True) for one in (whole, Independent(table)))
    assert (ours.sets != plain.sets).nnz == 0
    np.testing.assert_allclose(ours.risk, plain.risk, atol=1e-12)
    np.testing.assert_allclose(ours.second_risk, plain.second_risk, atol=1e-12)


@pytest.mark.parametrize("name", DEFINITIONS)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), floor=st.floats(0.01, 0.4))
def test_expected_losses_are_wrong_by_at_most_the_squares_outside(name, seed, floor):
    p = marginals(seed)
    if name in SIZES:
        p[:2] = 0.9
    decided = MinimumRisk(name).decode(shortlist_of(p, floor), return_risk=True)
    allowed, expected = risks(name, p)
    true = expected[allowed == decision_oracle.number_of(decided.sets.toarray())[0]][0]
    assert abs(true - decided.risk[0]) <= (p[p < floor] ** 2).sum() + 1e-9


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6), floor=st.floats(0.05, 0.5))
def test_without_the_tail_f1_is_overestimated_by_at_most_its_share(seed, floor):
    p = marginals(seed)
    listed = np.where(p >= floor, p, 0.0)
    decided = MinimumRisk("f1").decode(csr_array(listed[None]), return_risk=True)
    size, tail = decided.sets.sum(), p[p < floor].sum()
    allowed, expected = risks("f1", p)
    true = expected[allowed == decision_oracle.number_of(decided.sets.toarray())[0]][0]
    over = true - decided.risk[0]
    assert over >= -1e-9
    if size:
        assert over <= tail / (size + 2.0) + 1e-9


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6), floor=st.floats(1e-4, 0.2))
def test_the_gap_of_a_known_tail_vanishes_with_the_floor(seed, floor):
    generator = np.random.default_rng(seed)
    listed = csr_array(generator.uniform(floor, 1.0, (1, 6)))
    tail = generator.uniform(0.0, 3.0, 1)
    gap = MinimumRisk("f1").gap(Shortlist(listed, tail, floor))
    assert gap[0] <= floor * (2.0 * tail[0] + 4.0)


def test_labels_decided_by_themselves_are_exact_below_their_threshold():
    table = csr_array([[0.7, 0.4, 0.0, 0.0]])
    listed = Shortlist(table, [0.3], 0.3)
    for name in ("hamming", "subset"):
        assert MinimumRisk(name).gap(listed)[0] == 0.0
        assert MinimumRisk(name).gap(Shortlist(table, [0.3], 0.6))[0] > 0.0
    assert MinimumRisk("precision@2").gap(listed)[0] == 0.0
    np.testing.assert_allclose(MinimumRisk("precision@3").gap(listed), 0.3 / 3)


def test_rows_of_different_lengths_have_the_gaps_they_have_alone():
    generator = np.random.default_rng(0)
    table = csr_array(generator.random((60, 40)) * (generator.random((60, 40)) < 0.3))
    tail = generator.random(60)
    listed, decoder = Shortlist(table, tail, 0.1, tail / 2, 2 * tail), MinimumRisk("f1")
    sets, gaps = decoder.decode(listed), decoder.gap(listed)
    for row in range(0, 60, 7):
        alone = listed[row : row + 1]
        assert (decoder.decode(alone) != sets[row : row + 1]).nnz == 0
        np.testing.assert_allclose(decoder.gap(alone), gaps[row], atol=1e-12)


def test_a_mixture_of_one_shortlist_is_that_shortlist():
    listed = Shortlist(csr_array([[0.6, 0.0, 0.25]]), [2.0], 0.01)
    decided = MinimumRisk("f1").decode(Mixture([listed], [1.0]))
    np.testing.assert_array_equal(decided.toarray(), [[1, 0, 1]])
    assert isinstance(TopK(1).decode(listed.marginals()), csr_array)


@pytest.mark.parametrize(
    "target",
    [
        LinearFractional((0, 0, 1, 1, 0), (0, 1, 1, 1, 1), 1.0),
        CountTarget(lambda tp, fp, fn, tn: (fp + fn) ** 2 / (tp + fp + fn + tn) ** 2),
    ],
)
def test_targets_that_need_every_label_are_refused(target):
    listed = Shortlist(csr_array([[0.6, 0.0, 0.25]]), [0.1], 0.2)
    for ask in (MinimumRisk(target).decode, MinimumRisk(target).gap):
        with pytest.raises(ValueError, match="needs the probability of every label"):
            ask(listed)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tail": [0.1, 0.2]}, "tail"),
        ({"tail": [-0.1]}, "negative"),
        ({"floor": 1.5}, "floor"),
        ({"floor": 0.0}, "floor must be above 0"),
        ({"floor": [1.5]}, r"floor must be in \[0, 1\], but in row 0 it is 1.5"),
        ({"floor": [0.1, 0.1]}, r"floor must be of shape \(1,\)"),
        ({"most_tail": [0.05]}, "tail must not be above most_tail"),
        ({"probability": csr_array([[1.5, 0.0]])}, "probability"),
    ],
)
def test_impossible_shortlists_are_refused(change, message):
    right = {"probability": csr_array([[0.5, 0.0]]), "tail": [0.1], "floor": 0.2}
    with pytest.raises(ValueError, match=message):
        Shortlist(**right | change)


def test_log_probability_is_that_of_the_listed_labels_and_nothing_beside():
    listed = Shortlist(csr_array([[0.6, 0.0, 0.25]]), [0.5], 0.2)
    found = listed.log_probability([[1, 0, 0]])
    np.testing.assert_allclose(found, np.log(0.6) + np.log(0.75) - 0.5)
    with pytest.raises(ValueError, match="label 1 of row 0 is outside its shortlist"):
        listed.log_probability([[1, 1, 0]])

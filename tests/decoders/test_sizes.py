"""The search for the best size: order, bounds, quadrature and the check of its premise."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

from setwise.decoders import MinimumRisk, Thresholds
from setwise.decoders.by_size import directions
from setwise.decoders.size_utilities import ByQuadrature
from setwise.targets import CountTarget, FBeta, Jaccard, LinearFractional
from setwise.targets.measure import Counts
from tests.support import oracle
from tests.support.profile import THOROUGH
from tests.support.turns import in_turn

LAWS = {
    "uniform": lambda rng, n: rng.random(n),
    "rare": lambda rng, n: np.minimum(rng.random(n) * 3.0 / n, 1.0),
    "few likely": lambda rng, n: rng.random(n) ** 8,
    "likely": lambda rng, n: 1.0 - rng.random(n) ** 4,
    "one likely": lambda rng, n: np.concatenate([[0.9], 0.05 * rng.random(n - 1)]),
    "equal": lambda rng, n: np.full(n, rng.random()),
    "certain": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "on a grid": lambda rng, n: rng.integers(0, 5, n) / 4.0,
}
FRACTIONS = {
    "f1": FBeta(),
    "f2": FBeta(2.0),
    "f0.5": FBeta(0.5),
    "f of irrational beta": FBeta(2.0**0.5),
    "f0.01": FBeta(0.01),
    "f30": FBeta(30.0),
    "jaccard": Jaccard(),
    "jaccard empty 0": Jaccard(empty=0.0),
    "tversky": LinearFractional([0, 0, 0.3, 0.7, 0], [0, 1, 0.3, 0.7, 0]),
    "smoothed": LinearFractional([0, 0, 1, 1, 0], [1, 2, 1, 1, 0]),
    "recall": LinearFractional([0, 0, 0, 1, 0], [0, 1, 0, 1, 0], empty=0.5),
    "precision": LinearFractional([0, 0, 1, 0, 0], [0, 1, 1, 0, 0], empty=0.5),
    "hamming": LinearFractional([0, 0, 1, 1, 0], [0, 1, 1, 1, 1]),
    "f1 of the negatives": LinearFractional([0, 0, 1, 1, 0], [0, 0, 1, 1, 2]),
    "not 0 where D is": LinearFractional([-0.5, 0, 1, 1, 0], [0, 0, 1, 1, 0]),
    "f0.00001": FBeta(1e-5),
    "f100000": FBeta(1e5),
    "jaccard and a constant": LinearFractional([0, 0, 1, 1, 0], [2.5, 1, 1, 1, 0]),
}


def exact_utilities(target, probability):
    """Expected utility of the first k labels for every k, by the Poisson-binomial laws."""
    n_labels = len(probability)
    measure = target.measure(n_labels, "utility")
    found = []
    for k in range(n_labels + 1):
        head, tail = (oracle.poisson_binomial(part) for part in (probability[:k], probability[k:]))
        tp, missed = np.meshgrid(np.arange(k + 1.0), np.arange(n_labels - k + 1.0), indexing="ij")
        utility = measure.of_counts(tp, k - tp, missed, n_labels - k - missed)
        found.append(float(head @ utility.astype(np.longdouble) @ tail))
    return np.array(found)


# Every third of them: each law with six targets, each target with two or three laws.
SOME = [pair for k, pair in enumerate(product(FRACTIONS, LAWS)) if THOROUGH or k % 3 == 0]


@in_turn(("name", "law"), SOME)
def test_expected_utilities_are_right_to_1e_10_for_every_size(name, law):
    for n_labels in (1, 2, 7, 50):
        rng = np.random.default_rng(n_labels)
        probability = LAWS[law](rng, n_labels)
        search = ByQuadrature(FRACTIONS[name].measure(n_labels, "utility"), n_labels)
        sizes = np.arange(n_labels + 1)
        arranged = np.tile(probability, (n_labels + 1, 1))
        alone = search.of_first(arranged, sizes, sizes)[sizes, sizes]
        exact = exact_utilities(FRACTIONS[name], probability)
        np.testing.assert_allclose(alone, exact, rtol=0, atol=1e-10)
        # All sizes at once share nodes: the best of them is what is returned.
        ordered = np.sort(probability)[::-1]
        risk = MinimumRisk(FRACTIONS[name]).decode(ordered[None], return_risk=True).risk
        best = exact_utilities(FRACTIONS[name], ordered).max()
        assert risk[0] == pytest.approx(1.0 - best, abs=1e-10)


@in_turn("law", LAWS)
@in_turn("name", ["f1", "f2", "f0.5", "f30", "jaccard", "jaccard empty 0"])
def test_bounds_never_rule_out_the_best_size(name, law):
    """Asking for the second best evaluates every size; the answer must be the same."""
    for n_labels in (1, 3, 20, 90, 400):
        rng = np.random.default_rng(n_labels)
        probability = np.array([LAWS[law](rng, n_labels) for _ in range(40)])
        decoder = MinimumRisk(FRACTIONS[name])
        bounded, whole = decoder.decode(probability), decoder.decode(probability, return_risk=True)
        np.testing.assert_allclose(
            decoder.risk(probability, bounded), whole.risk, rtol=0, atol=1e-10
        )


@settings(max_examples=200)
@given(seed=st.integers(0, 2**32), n_labels=st.integers(1, 7), zeros=st.integers(0, 3))
def test_the_corners_decide_whether_a_quotient_is_monotone(seed, n_labels, zeros):
    """The check of a few true sizes gives what the check of all of them gives."""
    rng = np.random.default_rng(seed)
    below = rng.integers(0, 4, 5).astype(float)
    below[1:][rng.permutation(4)[:zeros]] = 0.0
    above = below * rng.integers(0, 4, 5) / 3.0
    if not below.any():
        return
    target = LinearFractional(above, below, empty=rng.integers(0, 3) / 2.0)
    measure = target.measure(n_labels, "loss")
    answers = []
    for form in (measure, Counts(measure.of_counts)):
        try:
            answers.append([side.tolist() for side in directions(form, n_labels, "it")])
        except ValueError:
            answers.append("refused")
    assert answers[0] == answers[1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_labels", [5, 300, 5000])
def test_neighbouring_numbers_are_told_apart(n_labels, dtype):
    """The last bits of a probability decide before the label does."""
    steps = np.random.default_rng(0).permutation(n_labels)
    probability = np.full((1, n_labels), 0.25, dtype)
    for step in range(n_labels):
        probability[0, steps == step] = np.float64(0.25) + step * np.spacing(dtype(0.25))
    k = n_labels // 2
    chosen = MinimumRisk(f"precision@{k}").decode(probability)[0]
    np.testing.assert_array_equal(chosen == 1, steps >= n_labels - k)


def test_equal_probabilities_are_taken_in_the_order_of_the_labels():
    probability = np.full((1, 6), 0.5)
    np.testing.assert_array_equal(
        MinimumRisk("precision@2").decode(probability), [[1, 1, 0, 0, 0, 0]]
    )
    # The loss grows with tp: the least probable labels are best, the lower ones first.
    contrary = CountTarget(lambda tp, fp, fn, tn: tp / np.maximum(tp + fp, 1.0))
    probability = np.array([[0.5, 0.1, 0.1, 0.5]])
    chosen = MinimumRisk(contrary).decode(probability)
    np.testing.assert_array_equal(chosen, [[0, 0, 0, 0]])


def test_a_negative_zero_is_a_zero():
    probability = np.array([[-0.0, 0.9, 0.0]])
    np.testing.assert_array_equal(MinimumRisk("f1").decode(probability), [[0, 1, 0]])
    np.testing.assert_array_equal(MinimumRisk("precision@2").decode(probability), [[1, 1, 0]])


def expected_losses(target, probability):
    """Every label set and its expected loss, by enumeration."""
    every = oracle.all_sets(len(probability))
    law = np.prod(np.where(every == 1, probability, 1.0 - probability), axis=1)
    losses = [target.loss(np.tile(row, (len(every), 1)), every) for row in every]
    return every, np.array(losses) @ law


@settings(max_examples=150)
@given(seed=st.integers(0, 2**32), n_labels=st.integers(1, 5))
def test_any_quotient_is_decoded_exactly_or_refused(seed, n_labels):
    """Also where the numerator is not 0 where the denominator is, and with steps of any sign."""
    rng = np.random.default_rng(seed)
    below = rng.choice([0, 0, 0.5, 1, 2, 2**0.5, 1 / 3, 3, -1], 5)
    above = rng.choice([0, 0, 0.5, 1, -0.5, 0.3, -1, 2], 5)
    if rng.random() < 0.7:
        above = below * rng.choice([0, 1, 0.5, 0.25], 5)
    probability = [rng.random(n_labels), rng.integers(0, 5, n_labels) / 4.0][rng.integers(2)]
    if not below.any():
        return
    target = LinearFractional(above, below, rng.choice([0.0, 0.5, 1.0]))
    try:
        found = MinimumRisk(target).decode(probability[None], return_risk=True)
    except ValueError:
        return
    every, risks = expected_losses(target, probability)
    here = risks[(every == found.sets[0]).all(axis=1)][0]
    assert here == pytest.approx(found.risk[0], abs=1e-10)
    assert here <= risks.min() + 1e-10
    assert found.second_risk[0] == pytest.approx(np.sort(risks)[1], abs=1e-10)


def test_sets_given_sparse_have_the_risk_of_dense_ones():
    rng = np.random.default_rng(0)
    probability = rng.random((30, 12)) * (rng.random((30, 12)) < 0.4)
    sets = (rng.random((30, 12)) < 0.3).astype(np.uint8)
    for target in ("f1", "jaccard", "hamming", "subset"):
        decoder = MinimumRisk(target)
        dense = decoder.risk(probability, sets)
        wide = decoder.risk(sparse.csr_array(probability), sparse.csr_array(sets))
        np.testing.assert_array_equal(wide, dense)


@pytest.mark.parametrize("kind", ["coo", "csr", "csc"])
def test_repeated_entries_are_refused_by_every_decoder(kind):
    twice = sparse.coo_array(([0.4, 0.4], ([0, 0], [1, 1])), shape=(1, 2))
    if kind != "coo":
        # Made without merging.
        pointers = [0, 2] if kind == "csr" else [0, 0, 2]
        indices = [1, 1] if kind == "csr" else [0, 0]
        make = sparse.csr_array if kind == "csr" else sparse.csc_array
        twice = make(([0.4, 0.4], indices, pointers), shape=(1, 2))
    for refused in (
        lambda: MinimumRisk("f1").decode(twice),
        lambda: Thresholds("f1", "micro").fit_probability(twice),
    ):
        with pytest.raises(ValueError, match="each entry once, but 1 entries are repeated"):
            refused()


def test_diagonals_are_a_sparse_matrix_like_any_other():
    probability = sparse.dia_array(np.diag([0.9, 0.8, 0.7]))
    np.testing.assert_array_equal(MinimumRisk("f1").decode(probability).toarray(), np.eye(3))


def test_thresholds_are_cloned_with_their_parameters():
    assert clone(Thresholds("jaccard", "micro", cv=3)).get_params()["cv"] == 3


def test_a_function_of_the_counts_of_too_many_labels_is_refused():
    target = CountTarget(lambda tp, fp, fn, tn: (fp + fn > 1) * 1.0)
    with pytest.raises(ValueError, match="at most 1000 labels, but there are 1001"):
        MinimumRisk(target).decode(np.full((1, 1001), 0.1))

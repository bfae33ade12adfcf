"""Linear-fractional targets with many labels: error below 1e-8 at every expected size.

At 1,000 labels the truth is the counting dynamic program; at 30,000 a high-order rule that agrees
with it to thirteen digits (test_oracle.py). Mean absolute error shows the expected utility itself:
unit_1 = M(0) - M(h).
"""

from functools import cache

import numpy as np
import pytest

from setwise.spaces import Cube
from setwise.surrogates import CompSum
from setwise.targets import FBeta, Jaccard, LinearFractional
from tests.support import oracle
from tests.support.profile import THOROUGH
from tests.support.turns import in_turn

ACCURACY = 1e-8
N_COUNTED = 1000
N_MANY = 30_000


def utility_by_counts(right, size):
    """u = right / size of linear functions of (tp, fp, fn); 0/0 is 1."""

    def utility(tp, fp, fn, tn):
        above = right[0] * tp
        below = size[0] * tp + size[1] * fp + size[2] * fn
        return np.where(below > 0, above / np.where(below > 0, below, 1), 1.0)

    return utility


# target, coefficient of tp above, coefficients of tp, fp, fn below
FRACTIONS = {
    "f1": (FBeta(), 2.0, (2.0, 1.0, 1.0)),
    "f2": (FBeta(2.0), 5.0, (5.0, 1.0, 4.0)),
    "f0.5": (FBeta(0.5), 1.25, (1.25, 1.0, 0.25)),
    "jaccard": (Jaccard(), 1.0, (1.0, 1.0, 1.0)),
    "precision": (
        LinearFractional((0, 0, 1, 0, 0), (0, 1, 1, 0, 0), empty=1.0),
        1.0,
        (1.0, 1.0, 0.0),
    ),
}
every_fraction = in_turn("name", FRACTIONS)


def probabilities(n_labels, expected_size, seed):
    """Uneven label probabilities with the given sum."""
    weights = np.random.default_rng(seed).gamma(0.5, size=n_labels)
    low, high = 0.0, 1e9
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (
            (middle, high)
            if (1 - np.exp(-middle * weights)).sum() < expected_size
            else (low, middle)
        )
    return np.clip(1 - np.exp(-low * weights), 1e-12, 1 - 1e-12)


def as_scores(probability):
    """p = sigmoid(2 h)."""
    return 0.5 * (np.log(probability) - np.log1p(-probability))


def true_set(probability, n_true, likely):
    """n_true labels: the most probable ones, or any."""
    y_true = np.zeros(len(probability), dtype=int)
    order = (
        np.argsort(-probability)
        if likely
        else np.random.default_rng(n_true).permutation(len(probability))
    )
    y_true[order[:n_true]] = 1
    return y_true


@cache
def uniform_expectation(name, n_true):
    """That of label sets drawn evenly: it depends on the number of true labels alone."""
    return expected_utility(name, np.full(N_COUNTED, 0.5), (np.arange(N_COUNTED) < n_true) * 1)


def expected_utility(name, probability, y_true):
    _, above, below = FRACTIONS[name]
    return oracle.expected_utility_by_counting(
        probability, y_true, utility_by_counts((above,), below)
    )


def high_order_utility(name, probability, y_true):
    """The same by the high-order rule; what is 0/0 has the probability of an empty prediction."""
    _, above, (d_tp, d_fp, d_fn) = FRACTIONS[name]
    n_true = int(y_true.sum())
    share = oracle.expected_reciprocal_share(probability, y_true, d_fn * n_true, d_tp - d_fn, d_fp)
    nothing = np.exp(np.log1p(-probability).sum()) if d_fn * n_true == 0 else 0.0
    return above * share + nothing


@every_fraction
@in_turn("expected_size", [1, 10, 300, 500])
def test_expected_utility_agrees_with_counting_at_a_thousand_labels(name, expected_size):
    """M(0) - M(h) for n_true far below, near and far above the expected size."""
    rows = [(n_true, likely) for n_true in (0, 1, 5, 100, 500) for likely in (True, False)]
    probability = probabilities(N_COUNTED, expected_size, seed=expected_size)
    y_true = np.array([true_set(probability, *row) for row in rows])
    scores = np.tile(as_scores(probability), (len(rows), 1))
    values, _ = CompSum(FRACTIONS[name][0], Cube(N_COUNTED), q=1.0).value_and_gradient(
        scores, y_true
    )
    expected = [
        uniform_expectation(name, int(row.sum())) - expected_utility(name, probability, row)
        for row in y_true
    ]
    np.testing.assert_allclose(values, expected, rtol=0, atol=ACCURACY)


# Each size meets each number of true labels, one fraction after the other.
SIZES = [
    (name, size, n_true)
    for turn, name in enumerate(FRACTIONS)
    for k, size in enumerate((1, 10, 300, 500))
    for j, n_true in enumerate((0, 1, 5, 100, 500))
    if THOROUGH or (turn + k + j) % len(FRACTIONS) == 0
]


@in_turn(("name", "expected_size", "n_true"), SIZES)
def test_gradient_agrees_with_counting_at_a_thousand_labels(name, expected_size, n_true):
    """-dM/dh_i = -2 p_i (1 - p_i) (E[u | i on] - E[u | i off]), where it is largest."""
    probability = probabilities(N_COUNTED, expected_size, seed=expected_size + 1)
    y_true = true_set(probability, n_true, likely=False)
    _, gradient = CompSum(FRACTIONS[name][0], Cube(N_COUNTED), q=1.0).value_and_gradient(
        as_scores(probability)[None], y_true[None]
    )
    labels = np.unique(
        [*np.argsort(-np.abs(gradient[0]))[:2], *np.argsort(-y_true, kind="stable")[:2], 17]
    )
    _, above, below = FRACTIONS[name]
    slopes = [
        oracle.utility_slope_by_counting(probability, y_true, utility_by_counts((above,), below), i)
        for i in labels
    ]
    expected = -2 * (probability * (1 - probability))[labels] * slopes
    np.testing.assert_allclose(gradient[0, labels], expected, rtol=1e-6, atol=1e-2 * ACCURACY)


@every_fraction
@in_turn("expected_size", [1, 10, 300, 500])
def test_tempered_values_agree_with_counting_at_a_thousand_labels(name, expected_size):
    """q = 1/2 and q = -1/10: (M(0) - exp(A_q - q A - (1-q) log|Y|) M_q) / q with M_q under
    sigmoid(2 q h).
    """
    probability = probabilities(N_COUNTED, expected_size, seed=expected_size + 2)
    scores = as_scores(probability)
    y_true = true_set(probability, 5, likely=True)
    for q in (0.5, -0.1):
        values, _ = CompSum(FRACTIONS[name][0], Cube(N_COUNTED), q=q).value_and_gradient(
            scores[None], y_true[None]
        )
        tempered = (
            np.logaddexp(q * scores, -q * scores)
            - q * np.logaddexp(scores, -scores)
            - (1 - q) * np.log(2)
        )
        softened = 1 / (1 + np.exp(-2 * q * scores))
        uniform = uniform_expectation(name, int(y_true.sum()))
        expected = (uniform - np.exp(tempered.sum()) * expected_utility(name, softened, y_true)) / q
        np.testing.assert_allclose(values, expected, rtol=ACCURACY, atol=ACCURACY)


@every_fraction
@in_turn("n_true", [0, 1, 5, 100, 500])
def test_logistic_values_agree_with_counting_at_a_thousand_labels(name, n_true):
    """unit_0 = M(0) (A - log|Y|) - h . E_0[u y'], where E_0[u y'_i] has one value for true i, one
    for the rest.
    """
    probability = probabilities(N_COUNTED, 10, seed=n_true)
    scores, y_true = as_scores(probability), true_set(probability, n_true, likely=False)
    _, above, below = FRACTIONS[name]
    half, utility = np.full(N_COUNTED, 0.5), utility_by_counts((above,), below)
    tilt = np.zeros(N_COUNTED)
    for kind in (0, 1):
        members = np.flatnonzero(y_true == kind)
        if len(members):
            tilt[members] = 0.5 * oracle.utility_slope_by_counting(
                half, y_true, utility, members[0]
            )
    excess = (np.logaddexp(scores, -scores) - np.log(2)).sum()
    expected = uniform_expectation(name, n_true) * excess - scores @ tilt
    values, _ = CompSum(FRACTIONS[name][0], Cube(N_COUNTED), q=0.0).value_and_gradient(
        scores[None], y_true[None]
    )
    np.testing.assert_allclose(values, expected, rtol=ACCURACY, atol=ACCURACY)


@cache
def uniform_utility(name, n_true):
    """That of label sets drawn evenly: it depends on the number of true labels alone."""
    return high_order_utility(name, np.full(N_MANY, 0.5), (np.arange(N_MANY) < n_true) * 1)


@pytest.mark.parametrize("name", FRACTIONS if THOROUGH else ["f0.5", "precision"])
@pytest.mark.parametrize("expected_size", [1, 300, 15_000] if THOROUGH else [300])
def test_expected_utility_agrees_with_a_high_order_rule_at_thirty_thousand_labels(
    name, expected_size
):
    probability = probabilities(N_MANY, expected_size, seed=expected_size)
    y_true = np.array(
        [true_set(probability, n_true, likely=n_true > 1) for n_true in (0, 1, 20, 5000)]
    )
    scores = np.tile(as_scores(probability), (len(y_true), 1))
    values, _ = CompSum(FRACTIONS[name][0], Cube(N_MANY), q=1.0).value_and_gradient(scores, y_true)
    expected = [
        uniform_utility(name, int(row.sum())) - high_order_utility(name, probability, row)
        for row in y_true
    ]
    np.testing.assert_allclose(values, expected, rtol=0, atol=ACCURACY)


@every_fraction
@in_turn("expected_size", [1, 10, 300, 500])
def test_float32_scores_keep_six_digits_at_a_thousand_labels(name, expected_size):
    """Fewer nodes may serve float32, but not fewer than its own accuracy."""
    probability = probabilities(N_COUNTED, expected_size, seed=expected_size + 3)
    scores = as_scores(probability).astype(np.float32)
    exact = 1 / (1 + np.exp(-2 * scores.astype(float)))
    y_true = np.array([true_set(probability, n_true, likely=True) for n_true in (1, 5, 100)])
    values, _ = CompSum(FRACTIONS[name][0], Cube(N_COUNTED), q=1.0).value_and_gradient(
        np.tile(scores, (len(y_true), 1)), y_true
    )
    expected = [
        uniform_expectation(name, int(row.sum())) - expected_utility(name, exact, row)
        for row in y_true
    ]
    assert values.dtype == np.float32
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-6)

"""Laws of binary relevance: sum_i Phi(y_i h_i)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from setwise.surrogates import BinaryRelevance
from setwise.targets import CostSensitive, Hamming
from tests.support import oracle
from tests.support.examples import assert_agrees, limited, score_arrays

MARGINS = ("logistic", "exponential", "hinge", "squared_hinge")


@st.composite
def batches(draw, grows=False):
    n_labels = draw(st.integers(1, 8))
    scores = draw(score_arrays(4, n_labels, 300.0 if grows else 50.0))
    y_true = draw(hnp.arrays(np.int64, (4, n_labels), elements=st.integers(0, 1)))
    return (limited(scores, joint=False) if grows else scores), y_true


def expected_answers(scores, y_true, margin):
    rows = [oracle.binary_relevance(h, y, margin) for h, y in zip(scores, y_true, strict=True)]
    return np.array([row.value for row in rows]), np.array([row.score_gradient for row in rows])


@pytest.mark.parametrize("margin", MARGINS)
@given(data=st.data())
def test_value_and_gradient_are_the_sums_over_labels(margin, data):
    """Values everywhere; gradients in rows without a hinge at its kink."""
    scores, y_true = data.draw(batches(grows=margin == "exponential"))
    values, gradient = BinaryRelevance(margin=margin).value_and_gradient(scores, y_true)
    expected_values, expected_gradient = expected_answers(scores, y_true, margin)
    assert_agrees(values, expected_values, 1.0)
    margins = (2 * y_true - 1) * scores
    rows = np.array([oracle.kink_distance(margin, row) > 1e-9 for row in margins])
    assert_agrees(gradient[rows], expected_gradient[rows], 1.0)


@pytest.mark.parametrize("margin", MARGINS)
def test_there_are_no_parameters(margin):
    scores, y_true = np.array([[0.3, -1.0]]), np.array([[1, 0]])
    surrogate = BinaryRelevance(margin=margin)
    values, gradient, parameter_gradient = surrogate.value_and_gradients(scores, y_true)
    assert parameter_gradient.shape == (1, 0)
    np.testing.assert_array_equal(gradient, surrogate.value_and_gradient(scores, y_true)[1])
    np.testing.assert_allclose(values, expected_answers(scores, y_true, margin)[0], rtol=1e-12)


@given(scores=score_arrays(4, 5))
def test_logistic_scores_become_probabilities_by_the_sigmoid(scores):
    """sigmoid(h_i), where the cube has sigmoid(2 h_i): a surrogate says how its scores become
    probabilities.
    """
    probability = BinaryRelevance(margin="logistic").probability(scores)
    np.testing.assert_allclose(probability, 0.5 * (1 + np.tanh(scores / 2)), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("margin", ["logistic", "hinge", "squared_hinge"])
def test_huge_scores_stay_finite(margin):
    scores, y_true = np.array([[1e4, -1e4, 1e4, -1e4]]), np.array([[1, 1, 0, 0]])
    values, gradient = BinaryRelevance(margin=margin).value_and_gradient(scores, y_true)
    expected_values, expected_gradient = expected_answers(scores, y_true, margin)
    np.testing.assert_allclose(values, expected_values, rtol=1e-12)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-12, atol=1e-300)


def test_the_exponential_margin_overflows_to_infinity_and_never_to_nan():
    scores, y_true = np.array([[1e4, -1e4], [1.0, -1e4]]), np.array([[0, 1], [1, 1]])
    values, gradient = BinaryRelevance(margin="exponential").value_and_gradient(scores, y_true)
    assert (values == np.inf).all()
    np.testing.assert_array_equal(np.sign(gradient), [[1, -1], [-1, -1]])
    assert not np.isnan(gradient).any()


@pytest.mark.parametrize("margin", MARGINS)
def test_float32_in_gives_float32_out(margin):
    rng = np.random.default_rng(0)
    scores, y_true = rng.normal(size=(20, 7)).astype(np.float32), rng.integers(0, 2, size=(20, 7))
    values, gradient = BinaryRelevance(margin=margin).value_and_gradient(scores, y_true)
    expected_values, expected_gradient = expected_answers(scores, y_true, margin)
    assert values.dtype == gradient.dtype == np.float32
    np.testing.assert_allclose(values, expected_values, rtol=1e-6)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-5, atol=1e-6)


# ------------------------------------------------------------------------------------------- costs


@pytest.mark.parametrize("margin", MARGINS)
def test_costs_weigh_the_terms_of_true_and_of_false_labels(margin):
    rng = np.random.default_rng(0)
    scores, y_true = rng.normal(size=(6, 3)), rng.integers(0, 2, (6, 3))
    miss, false_alarm = rng.uniform(0.0, 3.0, (2, 3))
    own = BinaryRelevance(margin, CostSensitive(miss, false_alarm))
    value, gradient = own.value_and_gradient(scores, y_true)
    cost = np.where(y_true == 1, miss, false_alarm)
    terms = [
        BinaryRelevance(margin).value_and_gradient(scores[:, [j]], y_true[:, [j]]) for j in range(3)
    ]
    np.testing.assert_allclose(value, sum(cost[:, j] * terms[j][0] for j in range(3)), rtol=1e-12)
    for j in range(3):
        np.testing.assert_allclose(gradient[:, j], cost[:, j] * terms[j][1][:, 0], rtol=1e-12)


@pytest.mark.parametrize("margin", ["logistic", "exponential", "squared_hinge"])
def test_at_the_minimiser_the_probability_is_the_true_one_whatever_the_costs(margin):
    """The minimiser by a fine grid of scores; its sign decides for the costs."""
    miss, false_alarm, chance = 1.6, 0.4, np.array([0.05, 0.15, 0.3, 0.6, 0.9])
    surrogate, grid = (
        BinaryRelevance(margin, CostSensitive(miss, false_alarm)),
        np.linspace(-5, 5, 200_001),
    )
    of_true, of_false = (
        surrogate.value_and_gradient(grid[:, None], np.full((len(grid), 1), y))[0] for y in (1, 0)
    )
    best = grid[np.argmin(chance[:, None] * of_true + (1 - chance[:, None]) * of_false, axis=1)]
    np.testing.assert_allclose(surrogate.probability(best[:, None])[:, 0], chance, atol=1e-4)
    np.testing.assert_array_equal(best > 0, chance > false_alarm / (miss + false_alarm))


def test_costs_of_another_kind_are_refused():
    for costs in (2.0, [1.0, 2.0], Hamming()):
        with pytest.raises(ValueError, match="CostSensitive"):
            BinaryRelevance("logistic", costs)
    with pytest.raises(ValueError, match="2 labels"):
        BinaryRelevance("logistic", CostSensitive([1.0, 2.0], 1.0)).value_and_gradient(
            [[0.0] * 3], [[0, 1, 0]]
        )

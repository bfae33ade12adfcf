"""Laws of the constrained losses: the enumerated sums of L Phi(-z), z centred over the space."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setwise.spaces import Backoff, Catalog, Cube, Sized, Slice
from setwise.surrogates import Constrained
from setwise.targets import Hamming
from tests.support import cases, oracle
from tests.support.examples import FEWER, assert_agrees, examples, examples_of_targets
from tests.support.turns import in_turn, told

SMOOTH = ("exponential", "squared_hinge")
MARGINS = ("exponential", "squared_hinge", "hinge", "rho")
KINK = 1e-7  # nearer than this to a kink of Phi, rounding decides which one-sided derivative is met


def away_from_kinks(example, margin, rho):
    """Rows where Phi has a derivative at every -z."""
    return np.array(
        [
            oracle.kink_distance(margin, -oracle.centred_z(example.space.oracle, scores), rho)
            > KINK
            for scores in example.scores
        ]
    )


def assert_is_the_enumerated_sum(example, margin, rho, scale, space_name):
    """Values everywhere, gradients wherever there is one."""
    surrogate = Constrained(
        example.target.target, example.space.space, margin=margin, rho=rho, scale=scale
    )
    values, score_gradient, parameter_gradient = surrogate.value_and_gradients(
        example.scores, example.y_true
    )
    expected_values, expected_scores, expected_parameters = example.answers(
        lambda space, target, scores, y_true: oracle.constrained(
            space, target, scores, y_true, margin, rho, scale
        )
    )
    floor = np.ones(len(values)) * (1 if scale == "unit" else example.space.oracle.size)
    assert_agrees(values, expected_values, floor)
    rows = away_from_kinks(example, margin, rho)
    assert_agrees(score_gradient[rows], expected_scores[rows], floor[rows])
    # A derivative in g is a difference of two expectations, each of the size of the value.
    if space_name in cases.CONSTANT_PARAMETERS:
        expected_parameters = np.zeros_like(parameter_gradient)
    assert_agrees(
        parameter_gradient[rows], expected_parameters[rows], (floor + np.abs(expected_values))[rows]
    )


@in_turn("group", cases.by_space(cases.PAIRS), ids=cases.group_id)
@settings(max_examples=FEWER)
@given(data=st.data())
def test_exponential_value_and_gradients_are_the_enumerated_sums(group, data):
    """sum_{y'} L exp(z) with 2 sum|h| up to 600, to 1e-9: 1 - M must not lose its digits."""
    scale = data.draw(st.sampled_from(("unit", "paper")), label="scale")
    for name, example in data.draw(examples_of_targets(*group, grows=True)).items():
        with told(target=name, example=example):
            assert_is_the_enumerated_sum(example, "exponential", 1.0, scale, group[0])


@in_turn("group", cases.by_space(cases.PAIRS), ids=cases.group_id)
@settings(max_examples=FEWER)
@given(data=st.data())
def test_other_margins_are_the_enumerated_sums(group, data):
    """Squared hinge, hinge and rho-margin are exact on every space small enough to enumerate."""
    margin = data.draw(st.sampled_from(("squared_hinge", "hinge", "rho")), label="margin")
    scale = data.draw(st.sampled_from(("unit", "paper")), label="scale")
    rho = data.draw(st.sampled_from((1.0, 0.3, 7.5)), label="rho")
    for name, example in data.draw(examples_of_targets(*group)).items():
        with told(target=name, example=example):
            assert_is_the_enumerated_sum(example, margin, rho, scale, group[0])


@pytest.mark.parametrize("margin", MARGINS)
@pytest.mark.parametrize("space_name", ["slice", "joint catalog without bias"])
@given(data=st.data())
def test_adding_a_constant_to_all_scores_changes_nothing(space_name, margin, data):
    """The constraint sum z = 0 is built in: on sets of one size, and for joint scores, a shift
    cancels.
    """
    example = data.draw(examples(("hamming", space_name), largest=5.0))
    surrogate = Constrained(example.target.target, example.space.space, margin=margin)
    values, _ = surrogate.value_and_gradient(example.scores, example.y_true)
    shifted, _ = surrogate.value_and_gradient(example.scores + 3.25, example.y_true)
    np.testing.assert_allclose(shifted, values, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("margin", MARGINS)
@pytest.mark.parametrize("space_name", ["slice", "joint catalog without bias"])
@given(data=st.data())
def test_the_gradient_is_orthogonal_to_a_constant_shift(space_name, margin, data):
    """The centring is differentiated too: the entries of the gradient sum to zero."""
    example = data.draw(examples(("hamming", space_name), largest=5.0))
    surrogate = Constrained(example.target.target, example.space.space, margin=margin)
    _, gradient = surrogate.value_and_gradient(example.scores, example.y_true)
    np.testing.assert_allclose(
        gradient.sum(axis=1) / (1 + np.abs(gradient).max(axis=1)), 0, atol=1e-10
    )


@pytest.mark.parametrize("margin", MARGINS)
def test_an_enumerated_loss_has_no_standard_error(margin):
    rng = np.random.default_rng(0)
    scores, y_true = rng.normal(size=(4, 6)), rng.integers(0, 2, size=(4, 6))
    for space in (Cube(6), Slice(6, 2), Catalog(oracle.all_sets(6)[5:50])):
        np.testing.assert_array_equal(
            Constrained(Hamming(), space, margin=margin).standard_error(scores, y_true), 0
        )


N_SAMPLED = 17  # one more label than is enumerated


def hamming_sum_on_a_large_cube(scores, y_true, margin, rho):
    """E_0[L Phi(-z)] over 2^17 sets in plain float64: hinges do not overflow."""
    codes = np.arange(2**N_SAMPLED)
    sets = (codes[:, None] >> np.arange(N_SAMPLED)) & 1
    z, loss = (2 * sets - 1) @ scores, (sets != y_true).mean(axis=1)
    return float((loss * np.asarray(oracle.margin_loss(margin, -z, rho), dtype=float)).mean())


@pytest.mark.parametrize("margin", ["squared_hinge", "hinge", "rho"])
def test_a_sampled_loss_is_within_its_standard_error(margin):
    """Beyond 2^16 sets the sum is sampled: within five standard errors of the exact one."""
    rng = np.random.default_rng(1)
    scores, y_true = (
        rng.normal(scale=0.5, size=(3, N_SAMPLED)),
        rng.integers(0, 2, size=(3, N_SAMPLED)),
    )
    surrogate = Constrained(Hamming(), Cube(N_SAMPLED), margin=margin)
    values, _ = surrogate.value_and_gradient(scores, y_true)
    error = surrogate.standard_error(scores, y_true)
    expected = [
        hamming_sum_on_a_large_cube(h, y, margin, 1.0) for h, y in zip(scores, y_true, strict=True)
    ]
    assert (error > 0).all()
    assert (error < 0.2 * np.abs(expected)).all()
    assert (np.abs(values - expected) <= 5 * error).all()


@pytest.mark.parametrize("margin", ["squared_hinge", "hinge", "rho"])
def test_a_sampled_loss_is_the_same_function_on_every_call(margin):
    """The generator is fixed, so a solver sees one function, and that function's gradient."""
    rng = np.random.default_rng(2)
    scores, y_true = (
        rng.normal(scale=0.5, size=(2, N_SAMPLED)),
        rng.integers(0, 2, size=(2, N_SAMPLED)),
    )
    surrogate = Constrained(Hamming(), Cube(N_SAMPLED), margin=margin)
    values, gradient = surrogate.value_and_gradient(scores, y_true)
    again, gradient_again = surrogate.value_and_gradient(scores, y_true)
    np.testing.assert_array_equal(values, again)
    np.testing.assert_array_equal(gradient, gradient_again)
    step = np.zeros_like(scores)
    step[:, 3] = 1e-4
    up, down = (surrogate.value_and_gradient(scores + sign * step, y_true)[0] for sign in (1, -1))
    np.testing.assert_allclose((up - down) / 2e-4, gradient[:, 3], rtol=0.05, atol=0.01)


def test_the_exponential_margin_needs_no_sampling():
    """E_0[L exp(z)] factorises on the cube for Hamming, at any number of labels."""
    rng = np.random.default_rng(3)
    scores, y_true = rng.normal(scale=0.3, size=(3, 40)), rng.integers(0, 2, size=(3, 40))
    surrogate = Constrained(Hamming(), Cube(40), margin="exponential")
    signs = 2 * y_true - 1
    wrong = 1 / (1 + np.exp(2 * signs * scores))
    expected = np.cosh(scores).prod(axis=1) * wrong.mean(axis=1)
    np.testing.assert_allclose(surrogate.value_and_gradient(scores, y_true)[0], expected, rtol=1e-9)
    np.testing.assert_array_equal(surrogate.standard_error(scores, y_true), 0)


def test_the_subset_loss_is_accurate_where_the_true_set_is_almost_sure():
    """A bonus of 0 changes no law, however small the loss is."""
    base, scores = Sized(2, bias=[-0.3, 1.3, 0.2]), np.full((1, 2), 150.0)
    spaces = base, Backoff(base, [[1, 0], [1, 1]], [0.0, 0.0])
    plain, backed = (
        Constrained("subset", space, "exponential").value_and_gradient(scores, [[1, 1]])[0]
        for space in spaces
    )
    np.testing.assert_allclose(backed, plain, rtol=1e-12)

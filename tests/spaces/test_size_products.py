"""Laws of sums over label sets by their size: plain products are scaled ones, or say nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setwise.spaces import Sized
from setwise.spaces.size_products import product_rows, products_room
from setwise.spaces.symmetric import moments_room, moments_rows


def room(n: int, n_labels: int, width: int):
    """A, P(label), P(not label) and P(size) of rows, still empty."""
    shapes = (n,), (n, n_labels), (n, n_labels), (n, width)
    return tuple(np.full(shape, np.nan) for shape in shapes)


def scaled(scores, bias):
    """The law of each row by the recursion that is scaled."""
    law, ends = room(*scores.shape, len(bias)), (scores.shape[1], len(bias) - 1)
    moments_rows(0, len(scores), scores, bias, law, *moments_room(*ends))
    return law


def assert_same_law(bias, scores):
    """The space says of each row what the scaled recursion does."""
    law = Sized(scores.shape[1], bias).moments(scores)
    found = law.log_partition, law.on, law.off, law.features
    for have, want in zip(found, scaled(scores, bias), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-11, atol=1e-15)


@given(st.integers(1, 40), st.integers(0, 12), st.sampled_from([0.5, 5.0, 60.0]), st.integers(0))
def test_plain_products_are_the_scaled_ones(n_labels, largest, span, seed):
    generator = np.random.default_rng(seed)
    bias = generator.normal(size=min(largest, n_labels) + 1)
    bias[:-1][generator.random(len(bias) - 1) < 0.3] = -np.inf
    # (Not a whole number of lanes.)
    scores = generator.normal(size=(37, n_labels)) * span - generator.choice([0.0, 2.0])
    assert_same_law(bias, scores)


@pytest.mark.parametrize("shift", [-400.0, -40.0, 40.0, 400.0])
def test_rows_whose_products_are_no_floats_are_left_to_scaled_ones(shift):
    """Among others that are not: each row has its own law, whatever stands beside it."""
    generator, bias = np.random.default_rng(0), np.array([-np.inf] * 9 + [0.3, -np.inf, 0.1])
    scores = generator.normal(size=(40, 30))
    scores[::3] += shift
    law = room(*scores.shape, len(bias))
    product_rows(0, 40, scores, np.exp(bias - bias.max()), law, *products_room(30, len(bias) - 1))
    assert np.isnan(law[0][::3]).all()
    assert not np.isnan(np.delete(law[0], np.s_[::3])).any()
    assert_same_law(bias, scores)


@pytest.mark.parametrize("far", [360.0, 500.0, 1000.0, 1e5])
def test_weights_that_are_no_floats_may_not_make_up_for_each_other(far):
    """e^(2 far) and e^(-4 far) are as good as inf and 0: their product is neither."""
    scores = np.array([[far, 0.0, -2.0 * far, -2.0 * far], [0.1, 0.2, 0.3, 0.4]])
    assert_same_law(np.array([-np.inf] * 3 + [0.0]), scores)
    # The best two of the four sets leave one of the last two labels out.
    found = Sized(4, [-np.inf] * 3 + [0.0]).log_partition(scores[:1])
    np.testing.assert_allclose(found, far + np.log(2.0), rtol=1e-12)

"""Laws of expectations that hold whichever way they are computed."""

import copy
import pickle

import numpy as np
import pytest

from setwise.spaces import Catalog, Cube, Forest, Paths, Sized, Slice
from setwise.spaces.forest import shifted_mean
from setwise.spaces.listing import listed_mean
from setwise.surrogates import BinaryRelevance, CompSum, Constrained, Logistic
from setwise.targets import CountTarget, FBeta, Jaccard, LinearFractional, TreeDistance
from tests.support.turns import in_turn

FRACTIONS = {
    "f1": FBeta(1.0),
    "f0.5": FBeta(0.5),
    "jaccard": Jaccard(),
    "jaccard without a prize": Jaccard(empty=0.0),
    "precision": LinearFractional([0, 0, 1, 0, 0], [0, 1, 1, 0, 0]),
    "half precision": LinearFractional([0, 0, 0.5, 0, 0], [0, 1, 0.5, 0, 0]),
    "tversky": LinearFractional([0, 0, 0.3, 0.7, 0], [0, 1, 0.3, 0.7, 0]),
    "irrational": LinearFractional([0, 0, 2**0.5, 1, 0], [0, np.pi, 2**0.5, 1, 0]),
    "specificity": LinearFractional([0, 0, 1, 0, 0], [0, 0, 1, 0, 1]),
    "negative predictive value": LinearFractional([0, 0, 0, 1, 0], [0, 0, 0, 1, 1]),
}


def random_forest(generator, n_labels, closed=False):
    """A random forest with potentials."""
    parents = np.array([generator.integers(-1, i) if i else -1 for i in range(n_labels)])
    return Forest(parents, generator.normal(size=(n_labels, 2, 2)), closed=closed)


@in_turn("name", FRACTIONS)
@in_turn("closed", [False, True])
@in_turn("of", ["loss", "utility"])
def test_shifting_scores_equals_listing_sets(name, closed, of):
    """Sum-product at the nodes of a rule for 1/D against the plain sum over a forest's sets."""
    generator = np.random.default_rng(len(name))
    for n_labels in (1, 3, 7):
        space = random_forest(generator, n_labels, closed)
        scores = 3.0 * generator.normal(size=(9, n_labels))
        y_true = generator.integers(0, 2, (9, n_labels)).astype(np.uint8)
        y_true[0], y_true[1] = 0, 1
        measure = FRACTIONS[name].measure(n_labels, of)
        shifted = shifted_mean(space, measure, scores, y_true, parameters=True)
        listed = listed_mean(space, FRACTIONS[name], scores, y_true, of)
        for part in ("log_partition", "value", "scores", "parameters"):
            np.testing.assert_allclose(
                getattr(shifted, part), getattr(listed, part), rtol=1e-10, atol=1e-11, err_msg=part
            )


@in_turn("name", FRACTIONS)
def test_a_long_chain_without_potentials_is_the_cube(name):
    """The automaton at 60 labels, too many to list, against the product over labels."""
    generator = np.random.default_rng(3)
    scores = generator.normal(size=(6, 60)) - 1.0
    y_true = (generator.random((6, 60)) < 0.2).astype(np.uint8)
    chain = Forest.chain(60).expectation(FRACTIONS[name]).moment(scores, y_true, 1.0)
    cube = Cube(60).expectation(FRACTIONS[name]).moment(scores, y_true, 1.0)
    np.testing.assert_allclose(chain.value, cube.value, atol=1e-9)
    np.testing.assert_allclose(chain.scores, cube.scores, atol=1e-9)


@in_turn("name", FRACTIONS)
@in_turn("n_labels", [1, 3, 12, 40, 300])
def test_float32_agrees_with_float64(name, n_labels):
    """Whatever the coefficients, sizes and scores: single precision loses only rounding."""
    generator = np.random.default_rng(n_labels)
    for center in (-3.0, -1.0, 0.0, 2.0):
        scores = (generator.normal(size=(40, n_labels)) + center).astype(np.float32)
        y_true = (generator.random(scores.shape) < generator.random((40, 1))).astype(np.uint8)
        y_true[0], y_true[1] = 0, 1
        loss = CompSum(FRACTIONS[name], Cube(n_labels), 1.0)
        value, gradient = loss.value_and_gradient(scores, y_true)
        exact, exact_gradient = loss.value_and_gradient(scores.astype(np.float64), y_true)
        np.testing.assert_allclose(value, exact, atol=1.5e-6)
        np.testing.assert_allclose(gradient, exact_gradient, atol=1.5e-6)


@pytest.mark.parametrize("n_labels", [1_100, 30_000])
@pytest.mark.parametrize("missing", [0, 1])
def test_full_label_sets_of_many_labels_have_their_closed_form(n_labels, missing):
    """With every label true, Jaccard is tp / l, whose mean is that of the probabilities."""
    generator = np.random.default_rng(0)
    scores = generator.normal(size=(2, n_labels))
    y_true = np.ones((2, n_labels), dtype=np.uint8)
    y_true[:, :missing] = 0
    moment = Cube(n_labels).expectation("jaccard").moment(scores, y_true, 1.0)
    probability = 1.0 / (1.0 + np.exp(-2.0 * scores))
    n_true = n_labels - missing
    found = probability[:, missing:].sum(axis=1)
    wrong = probability[:, :missing].sum(axis=1)
    expected = found * ((1.0 - wrong) / n_true + wrong / (n_true + 1))
    np.testing.assert_allclose(moment.value, expected, rtol=1e-9)


@pytest.mark.parametrize("n_labels", [5, 160, 2_000])
def test_the_logistic_subset_loss_on_the_paper_scale_is_the_likelihood(n_labels):
    generator = np.random.default_rng(1)
    scores = generator.normal(size=(3, n_labels))
    y_true = generator.integers(0, 2, scores.shape)
    value, gradient = Logistic("subset", Cube(n_labels), "paper").value_and_gradient(scores, y_true)
    sign = 2.0 * y_true - 1.0
    expected = np.logaddexp(0.0, -2.0 * sign * scores)
    np.testing.assert_allclose(value, expected.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(gradient, -2.0 * sign * -np.expm1(-expected), atol=1e-12)


def test_parameter_gradients_of_a_size_sum_to_zero():
    """A constant added to every bias changes nothing, also where one size is all but certain."""
    loss = CompSum("hamming", Sized(4, [0.0, 0.0]), q=-0.68)
    gradient = loss.value_and_gradients([[7.78, -33.9, -21.9, 19.1]], [[0, 0, 0, 1]])[2]
    assert abs(gradient.sum()) <= 1e-12 * np.abs(gradient).max()


def test_a_count_function_may_index_what_it_is_given():
    def lenient(tp, fp, fn, tn):
        loss = np.zeros_like(tp)
        loss[fp + fn > 1] = 1.0
        return loss

    scores, y_true = np.array([[0.3, -1.0, 2.0]]), np.array([[1, 0, 0]], dtype=np.uint8)
    by_law = CompSum(CountTarget(lenient), Cube(3), 1.0).value_and_gradient(scores, y_true)
    sets = Cube(3).enumerate()
    by_list = CompSum(CountTarget(lenient), Catalog(sets), 1.0).value_and_gradient(scores, y_true)
    np.testing.assert_allclose(by_law[0], by_list[0], rtol=1e-12)
    np.testing.assert_allclose(by_law[1], by_list[1], rtol=1e-12, atol=1e-15)


SURROGATES = {
    "f1 on the cube": CompSum("f1", Cube(4), 0.5),
    "subset on a catalog": Logistic("subset", Catalog(np.eye(4, dtype=int))),
    "jaccard on a slice": CompSum("jaccard", Slice(4, 2), 1.0),
    "tree distance on paths": CompSum(TreeDistance([-1, 0, 0, 1]), Paths([-1, 0, 0, 1])),
    "constrained on a forest": Constrained("f1", Forest([-1, 0, 0, 1]), "hinge"),
    "binary relevance": BinaryRelevance(),
}


@in_turn("name", SURROGATES)
@in_turn("again", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_used_surrogate_can_be_copied_and_sent_elsewhere(name, again):
    scores, y_true = np.linspace(-1, 1, 8).reshape(2, 4), np.eye(4, dtype=int)[:2]
    loss = SURROGATES[name]
    before = loss.value_and_gradient(scores, y_true)
    after = again(loss).value_and_gradient(scores, y_true)
    np.testing.assert_array_equal(before[0], after[0])
    np.testing.assert_array_equal(before[1], after[1])


def test_a_space_keeps_its_own_copy_of_what_it_was_given():
    sets, bias = np.array([[True, False], [False, True]]), np.array([0.0, 1.0, 2.0])
    catalog, sized = Catalog(sets), Sized(2, bias)
    sets[0, 1], bias[0] = True, np.nan
    assert catalog.sets.tolist() == [[1, 0], [0, 1]]
    assert sized.bias.tolist() == [0.0, 1.0, 2.0]


def test_read_only_arrays_are_welcome():
    scores, y_true = np.zeros((2, 3)), np.eye(3, dtype=np.uint8)[:2]
    expected = CompSum("f1", Cube(3), 1.0).value_and_gradient(scores, y_true)
    scores.setflags(write=False)
    y_true.setflags(write=False)
    found = CompSum("f1", Cube(3), 1.0).value_and_gradient(scores, y_true)
    np.testing.assert_array_equal(expected[0], found[0])


def test_a_margin_that_is_sampled_needs_no_exact_expectation():
    """A function of the counts on a wide forest: no exact way, but an unbiased sample."""
    lenient = CountTarget(lambda tp, fp, fn, tn: (fp + fn > 7) * 1.0)
    scores, y_true = np.full((1, 17), 0.1), np.zeros((1, 17), dtype=np.uint8)
    sampled = Constrained(lenient, Forest.chain(17), "hinge", n_samples=4_000)
    exact = Constrained(lenient, Catalog(Forest.chain(17).enumerate()), "hinge")
    error = sampled.standard_error(scores, y_true)
    assert error > 0
    difference = sampled.value_and_gradient(scores, y_true)[0]
    difference = difference - exact.value_and_gradient(scores, y_true)[0]
    assert abs(difference) < 4 * error
    with pytest.raises(ValueError, match=r"CountTarget.*Forest"):
        Constrained(lenient, Forest.chain(17), "exponential")


@pytest.mark.parametrize("target", ["hamming", "f1", "jaccard", "subset"])
@pytest.mark.parametrize("q", [-1.0, -0.3])
def test_float32_scores_far_from_the_truth_keep_their_digits_below_zero(target, q):
    """Probabilities that float32 cannot hold, times their reciprocals."""
    scores = np.array([[40.0, 35.0, -30.0, 12.0]], dtype=np.float32)
    y_true = np.array([[0, 0, 1, 0]])
    loss = CompSum(target, Cube(4), q, "paper")
    exact, exact_gradient = loss.value_and_gradient(scores.astype(np.float64), y_true)
    value, gradient = loss.value_and_gradient(scores, y_true)
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(value, exact.astype(np.float32), rtol=1e-6)
        np.testing.assert_allclose(gradient, exact_gradient.astype(np.float32), rtol=1e-6)

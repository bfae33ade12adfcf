"""Laws of the comp-sum family: its values and gradients are the enumerated sums, for every q and
scale.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setwise.spaces import Cube, Slice
from setwise.surrogates import (
    CompSum,
    GeneralizedCrossEntropy,
    Logistic,
    MeanAbsoluteError,
    SumExponential,
)
from setwise.targets import FBeta, Hamming, Jaccard, ZeroOne
from tests.support import cases, oracle
from tests.support.examples import (
    Example,
    assert_agrees,
    examples,
    examples_of_targets,
    exponents,
)
from tests.support.turns import in_turn, told


def enumerated(example, q, scale):
    """The oracle's values and gradients of each row."""
    return example.answers(
        lambda space, target, scores, y_true: oracle.comp_sum(
            space, target, scores, y_true, q, scale
        )
    )


def floor_of(example, q, scale):
    """The uniform utility, on the scale of the answer: |Y|^(1-q) M(0) on the paper's."""
    uniform = example.uniform_utility()
    return uniform if scale == "unit" else uniform * example.space.oracle.size ** (1 - q)


def assert_is_the_enumerated_sum(example, q, scale, space_name):
    """Value, score gradient and parameter gradient against the oracle."""
    surrogate = CompSum(example.target.target, example.space.space, q=q, scale=scale)
    values, score_gradient, parameter_gradient = surrogate.value_and_gradients(
        example.scores, example.y_true
    )
    expected_values, expected_scores, expected_parameters = enumerated(example, q, scale)
    floor = floor_of(example, q, scale)
    assert_agrees(values, expected_values, floor)
    assert_agrees(score_gradient, expected_scores, floor)
    if space_name in cases.CONSTANT_PARAMETERS:
        expected_parameters = np.zeros_like(parameter_gradient)
    assert_agrees(parameter_gradient, expected_parameters, floor)


@in_turn("group", cases.by_space(cases.PAIRS), ids=cases.group_id)
@settings(max_examples=settings.default.max_examples // 2)
@given(data=st.data())
def test_value_and_gradients_are_the_enumerated_sums(group, data):
    """sum_{y'} u Psi_q(1/s) and its derivatives in scores and parameters, to 1e-9 plus 1e-9 of
    M(0).
    """
    q = data.draw(exponents(), label="q")
    scale = data.draw(st.sampled_from(("unit", "paper")), label="scale")
    for name, example in data.draw(examples_of_targets(*group, grows=q < 0)).items():
        with told(target=name, example=example):
            assert_is_the_enumerated_sum(example, q, scale, group[0])


@pytest.mark.parametrize("lengths", [[0.62625891, 1.64229404], [1.0, 0.1], [3.0, 1 / 3]])
def test_a_utility_of_zero_stays_zero_beside_huge_weights(lengths):
    """Two paths as far apart as the diameter have u = 0 exactly: rounding it to 1e-17 would show as
    e^300 times that (q = -1, both sets of a chain of two).
    """
    chain = {"parents": [-1, 0], "leaves_only": False}
    case = cases.SpaceCase(cases.Paths, oracle.paths, chain, on_paths=True)
    arguments = {"parents": [-1, 0], "lengths": np.array(lengths)}
    target = cases.TargetCase(cases.TreeDistance, oracle.tree_distance, arguments)
    scores, y_true = np.array([[150.0, 150.0], [150.0, -150.0]]), np.array([[1, 1], [1, 0]])
    assert_is_the_enumerated_sum(Example(case, target, scores, y_true), -1.0, "unit", "paths")


@pytest.mark.parametrize("n_labels", [3, 7])
def test_a_complement_has_no_weighted_hamming_utility(n_labels):
    """The set with every label wrong has u = 0 exactly, whatever the rounding of the weights."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        case = cases.cube(n_labels, rng)
        target = cases.weighted_hamming(rng, case)
        y_true = rng.integers(0, 2, size=(2, n_labels))
        scores = (2 * y_true - 1) * 300.0 / n_labels
        assert_is_the_enumerated_sum(Example(case, target, scores, y_true), -1.0, "unit", "cube")


def refusal_of(target, space):
    """What the refusal of a pair says, or None where the pair is accepted."""
    try:
        CompSum(target, space)
    except ValueError as refusal:
        return str(refusal)
    return None


@pytest.mark.parametrize("space_name", cases.FOREST_NAMES)
@given(data=st.data())
def test_count_functions_on_a_forest_are_exact_or_refused(space_name, data):
    """A pair that cannot be exact is refused at construction, naming the space; otherwise it is
    exact.
    """
    q = data.draw(exponents(), label="q")
    drawn = data.draw(examples_of_targets(space_name, cases.COUNT_NAMES, grows=q < 0))
    for name, example in drawn.items():
        message = refusal_of(example.target.target, example.space.space)
        with told(target=name, example=example):
            if message is None:
                assert_is_the_enumerated_sum(example, q, "unit", space_name)
            else:
                assert "Forest" in message
                assert "CountTarget" in message


@in_turn("q", [-1.0, -1e-9, 0.0, 1e-9, 0.5, 1.0])
@in_turn(
    "pair", [("f1", "tree"), ("hamming", "sized"), ("subset", "joint catalog")], ids=cases.pair_id
)
@given(data=st.data())
def test_value_and_gradient_are_the_first_two_of_value_and_gradients(pair, q, data):
    """Asking for fewer gradients changes none."""
    example = data.draw(examples(pair, grows=True))
    surrogate = CompSum(example.target.target, example.space.space, q=q)
    values, gradient = surrogate.value_and_gradient(example.scores, example.y_true)
    same_values, same_gradient, _ = surrogate.value_and_gradients(example.scores, example.y_true)
    np.testing.assert_allclose(values, same_values, rtol=1e-12)
    np.testing.assert_allclose(gradient, same_gradient, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("scale", ["unit", "paper"])
@pytest.mark.parametrize(
    ("name", "q"),
    [
        (SumExponential, -1.0),
        (Logistic, 0.0),
        (MeanAbsoluteError, 1.0),
    ],
)
def test_each_name_is_a_member_of_the_family(name, q, scale):
    """Sum-exponential is q = -1, logistic q = 0, mean absolute error q = 1."""
    rng = np.random.default_rng(0)
    scores, y_true = rng.normal(size=(6, 4)), rng.integers(0, 2, size=(6, 4))
    named = name(FBeta(), Cube(4), scale=scale).value_and_gradient(scores, y_true)
    member = CompSum(FBeta(), Cube(4), q=q, scale=scale).value_and_gradient(scores, y_true)
    np.testing.assert_array_equal(named[0], member[0])
    np.testing.assert_array_equal(named[1], member[1])


@pytest.mark.parametrize("space", [Cube(4), Slice(4, 2)], ids=("cube", "slice"))
def test_with_q_is_the_other_member_and_keeps_little(space):
    """As q moves, values are those of a loss made for that q, and spaces do not pile up."""
    rng = np.random.default_rng(0)
    scores, y_true = rng.normal(size=(6, 4)), rng.integers(0, 2, size=(6, 4))
    family = CompSum(FBeta(), space, q=1.0)
    for q in np.linspace(-1.0, 1.0, 41):
        moved = family.with_q(q).value_and_gradient(scores, y_true)
        made = CompSum(FBeta(), space, q=q).value_and_gradient(scores, y_true)
        np.testing.assert_array_equal(moved[0], made[0])
        np.testing.assert_array_equal(moved[1], made[1])
    assert family.q == 1.0
    assert len(getattr(family.expectation, "_tempered", ())) <= 16


@pytest.mark.parametrize("q", [0.1, 0.7])
def test_generalized_cross_entropy_is_the_family_between_zero_and_one(q):
    rng = np.random.default_rng(1)
    scores, y_true = rng.normal(size=(6, 4)), rng.integers(0, 2, size=(6, 4))
    named = GeneralizedCrossEntropy(Jaccard(), Cube(4), q=q).value_and_gradient(scores, y_true)
    member = CompSum(Jaccard(), Cube(4), q=q).value_and_gradient(scores, y_true)
    np.testing.assert_array_equal(named[0], member[0])
    np.testing.assert_array_equal(named[1], member[1])


@in_turn("q", [-1.0, -0.4, -1e-9, 0.0, 1e-9, 0.4, 1.0])
@in_turn("space", [Cube(5), Slice(5, 2)], ids=("cube", "slice"))
def test_unit_value_is_zero_where_z_is_constant(space, q):
    """At scores zero every set has s = 1/|Y|, so u Psi_q(1/(|Y| s)) vanishes term by term."""
    y_true = oracle.all_sets(5)
    for target in (Hamming(), FBeta(), ZeroOne()):
        values, _ = CompSum(target, space, q=q).value_and_gradient(np.zeros((32, 5)), y_true)
        np.testing.assert_allclose(values, 0, atol=1e-13)


@pytest.mark.parametrize(
    "pair", [("f1", "cube"), ("jaccard", "sized"), ("tversky", "tree")], ids=cases.pair_id
)
@given(data=st.data())
def test_unit_value_is_continuous_in_q(pair, data):
    """Tiny q on either side of zero give the logistic value up to the first-order term."""
    example = data.draw(examples(pair, largest=5.0))

    def value(q):
        surrogate = CompSum(example.target.target, example.space.space, q=q)
        return surrogate.value_and_gradient(example.scores, example.y_true)[0]

    for q in (1e-7, -1e-7, 1e-10, -1e-10, 1e-14, -1e-14):
        np.testing.assert_allclose(
            value(q), value(0.0), rtol=1e-3 * abs(q) / 1e-7 + 1e-11, atol=1e-11
        )


@given(data=st.data())
def test_subset_logistic_on_the_cube_is_binary_relevance_with_doubled_scores(data):
    """MATH.md section 4.1: on the paper's scale, sum_i log(1 + exp(-2 y_i h_i))."""
    example = data.draw(examples(("subset", "cube")))
    value, _ = Logistic(ZeroOne(), example.space.space, scale="paper").value_and_gradient(
        example.scores, example.y_true
    )
    expected = [
        oracle.binary_relevance(2 * scores, true, "logistic").value
        for scores, true in zip(example.scores, example.y_true, strict=True)
    ]
    np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-12)


@given(data=st.data())
def test_subset_logistic_of_a_joint_catalog_is_cross_entropy(data):
    """With a score for each listed set: log sum_k exp(score_k) - score_true."""
    example = data.draw(examples(("subset", "joint catalog without bias")))
    sets = example.space.oracle.sets
    rows = np.arange(len(example.scores)) % len(sets)
    value, gradient = Logistic(ZeroOne(), example.space.space, scale="paper").value_and_gradient(
        example.scores, sets[rows]
    )
    shifted = example.scores - example.scores.max(axis=1, keepdims=True)
    probability = np.exp(shifted) / np.exp(shifted).sum(axis=1, keepdims=True)
    expected = np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(len(rows)), rows]
    np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(
        gradient, probability - np.eye(len(sets))[rows], rtol=1e-10, atol=1e-12
    )


@given(data=st.data())
def test_probability_of_a_likelihood_is_the_marginal(data):
    """logistic[subset] is a likelihood: its scores become the space's marginals, sigmoid(2 h) on
    the cube.
    """
    example = data.draw(examples(("subset", "cube")))
    probability = Logistic(ZeroOne(), example.space.space).probability(example.scores)
    np.testing.assert_allclose(
        probability, 0.5 * (1 + np.tanh(example.scores)), rtol=1e-12, atol=1e-15
    )

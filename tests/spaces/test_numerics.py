"""Laws of the numbers: derivatives, huge scores, precision, batches, untouched inputs, sparse sets,
order of labels.
"""

from functools import cache

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from setwise.surrogates import BinaryRelevance, CompSum, Constrained
from tests.support import cases, oracle
from tests.support.examples import FEWER, Example, assert_agrees, examples, exponents, limited
from tests.support.profile import THOROUGH
from tests.support.turns import in_turn

# One pair for each form of target on each kind of space, for laws that do not depend on the target.
FEW_PAIRS = [
    (target, space)
    for target in ("weighted hamming", "f1", "irrational", "subset", "tree distance", "table")
    for space in (
        "cube",
        "sized",
        "slice",
        "tree",
        "hierarchy",
        "paths",
        "catalog",
        "joint catalog",
    )
] + [
    ("geometric mean", "cube"),
    ("geometric mean", "sized"),
    ("precision@k", "slice"),
    ("recall@k", "slice"),
]
few_pairs = in_turn("pair", FEW_PAIRS, ids=cases.pair_id)

SURROGATES = {
    "sum-exponential": lambda target, space: CompSum(target, space, q=-1.0),
    "logistic": lambda target, space: CompSum(target, space, q=0.0),
    "cross-entropy": lambda target, space: CompSum(target, space, q=0.7),
    "absolute": lambda target, space: CompSum(target, space, q=1.0),
    "constrained exponential": lambda target, space: Constrained(
        target, space, margin="exponential"
    ),
    "constrained squared hinge": lambda target, space: Constrained(
        target, space, margin="squared_hinge"
    ),
    "constrained hinge": lambda target, space: Constrained(target, space, margin="hinge"),
    "constrained rho": lambda target, space: Constrained(target, space, margin="rho"),
}
every_surrogate = in_turn("surrogate_name", SURROGATES)
# One of each way through a surrogate, for laws of what goes in and comes out.
each_way = in_turn(
    "surrogate_name",
    ["logistic", "cross-entropy", "constrained exponential", "constrained squared hinge"],
)


def surrogate_of(example, name):
    return SURROGATES[name](example.target.target, example.space.space)


@cache
def fixed_example(pair, n_labels=5, n_rows=6, size=1.0, seed=0) -> Example:
    """An example without hypothesis: scores from a normal law."""
    rng = np.random.default_rng(seed)
    case = cases.EVERY_SPACE[pair[1]](n_labels, rng)
    target = cases.EVERY_TARGET[pair[0]](rng, case)
    inside = pair[0] in cases.TREE_NAMES and pair[1] in cases.PATHS_NAMES
    y_true = case.oracle.sets[rng.integers(case.oracle.size, size=n_rows)]
    if not inside:
        y_true = rng.integers(0, 2, size=(n_rows, n_labels))
    return Example(case, target, rng.normal(scale=size, size=(n_rows, case.n_scores)), y_true)


# ------------------------------------------------------------------------------------- derivatives

STEP = 1e-4  # values are good to 1e-12 or so, hence differences to 1e-8


def score_differences(surrogate, scores, y_true, step):
    """Central differences of the value in each score, all in one batch."""
    n_rows, n_scores = scores.shape
    moves = step * np.repeat(np.eye(n_scores), n_rows, axis=0)
    tiled, true = np.tile(scores, (n_scores, 1)), np.tile(y_true, (n_scores, 1))
    up, _ = surrogate.value_and_gradient(tiled + moves, true)
    down, _ = surrogate.value_and_gradient(tiled - moves, true)
    return ((up - down) / (2 * step)).reshape(n_scores, n_rows).T


def parameter_differences(make, space, scores, y_true, step):
    """Central differences of the value in each finite parameter; zero for the infinite ones."""
    parameters = np.asarray(space.parameters)
    columns = []
    for position, value in enumerate(parameters):
        if not np.isfinite(value):
            columns.append(np.zeros(len(scores)))
            continue
        move = step * (np.arange(len(parameters)) == position)
        up, down = (
            make(space.with_parameters(parameters + sign * move)).value_and_gradient(
                scores, y_true
            )[0]
            for sign in (1, -1)
        )
        columns.append((up - down) / (2 * step))
    return np.array(columns).reshape(len(parameters), len(scores)).T


@few_pairs
@settings(max_examples=FEWER // 2)
@given(data=st.data())
def test_comp_sum_gradient_is_the_central_difference(pair, data):
    """d value / d scores, by the package alone."""
    q = data.draw(exponents(), label="q")
    example = data.draw(examples(pair, largest=2.0, most_labels=5, n_rows=3))
    surrogate = CompSum(example.target.target, example.space.space, q=q)
    scores = example.scores / 3
    values, gradient = surrogate.value_and_gradient(scores, example.y_true)
    differences = score_differences(surrogate, scores, example.y_true, STEP)
    assert_agrees(gradient, differences, 0.1 + np.abs(values), tolerance=1e-6)


SMOOTH = [name for name in SURROGATES if name not in ("constrained hinge", "constrained rho")]


@in_turn(
    ("pair", "surrogate_name"),
    [
        (pair, name)
        for k, pair in enumerate(FEW_PAIRS)
        for j, name in enumerate(SMOOTH)
        if THOROUGH or (k + j) % 3 == 0
    ],
)
def test_parameter_gradient_is_the_central_difference(pair, surrogate_name):
    """d value / d parameters, through with_parameters; minus infinity has gradient zero."""
    example = fixed_example(pair, n_labels=4, n_rows=3)
    space, target = example.space.space, example.target.target
    values, scores_gradient, gradient = surrogate_of(example, surrogate_name).value_and_gradients(
        example.scores, example.y_true
    )
    differences = parameter_differences(
        lambda moved: SURROGATES[surrogate_name](target, moved),
        space,
        example.scores,
        example.y_true,
        STEP,
    )
    assert_agrees(gradient, differences, 0.1 + np.abs(values), tolerance=1e-6)
    by_scores = score_differences(
        surrogate_of(example, surrogate_name), example.scores, example.y_true, STEP
    )
    assert_agrees(scores_gradient, by_scores, 0.1 + np.abs(values), tolerance=1e-6)


# -------------------------------------------------------------------------------------- huge scores


def huge(example):
    """Scores of +-1e4 in some rows, a mixture of 1e4 and ordinary ones in the others."""
    rng = np.random.default_rng(1)
    scores = 1e4 * rng.choice((-1.0, 1.0), size=example.scores.shape)
    scores[::2] = np.where(rng.random(scores[::2].shape) < 0.5, scores[::2], example.scores[::2])
    return Example(example.space, example.target, scores, example.y_true)


@few_pairs
@in_turn("scale", ["unit", "paper"])
@in_turn("q", [0.0, 1e-12, 1e-6, 1e-3, 0.3, 1.0])
def test_huge_scores_are_finite_and_exact_for_q_from_zero_to_one(pair, q, scale):
    example = huge(fixed_example(pair))
    surrogate = CompSum(example.target.target, example.space.space, q=q, scale=scale)
    values, gradient, parameter_gradient = surrogate.value_and_gradients(
        example.scores, example.y_true
    )
    assert all(np.isfinite(answer).all() for answer in (values, gradient, parameter_gradient))
    expected, expected_gradient, _ = example.answers(
        lambda space, target, scores, y_true: oracle.comp_sum(
            space, target, scores, y_true, q, scale
        )
    )
    floor = example.uniform_utility() * (
        1 if scale == "unit" else example.space.oracle.size ** (1 - q)
    )
    assert_agrees(values, expected, floor)
    assert_agrees(gradient, expected_gradient, floor)


@few_pairs
@in_turn("scale", ["unit", "paper"])
@in_turn("q", [-1e-3, -0.3, -1.0])
def test_huge_scores_are_never_nan_for_negative_q(pair, q, scale):
    """Finite or +inf; where the oracle's extended range holds the value, inf only if it is beyond
    float64.
    """
    example = huge(fixed_example(pair))
    surrogate = CompSum(example.target.target, example.space.space, q=q, scale=scale)
    answers = surrogate.value_and_gradients(example.scores, example.y_true)
    assert not any(np.isnan(answer).any() for answer in answers)
    assert (answers[0] > -np.inf).all()
    if q == -1e-3:
        expected, _, _ = example.answers(
            lambda space, target, scores, y_true: oracle.comp_sum(
                space, target, scores, y_true, q, scale
            )
        )
        np.testing.assert_allclose(answers[0], expected, rtol=1e-8, atol=1e-9)


@few_pairs
@in_turn("margin", ["exponential", "squared_hinge", "hinge", "rho"])
def test_huge_scores_are_never_nan_in_a_constrained_loss(pair, margin):
    """An exponential margin may reach +inf, a hinge is exact."""
    example = huge(fixed_example(pair))
    surrogate = Constrained(example.target.target, example.space.space, margin=margin)
    answers = surrogate.value_and_gradients(example.scores, example.y_true)
    assert not any(np.isnan(answer).any() for answer in answers)
    assert (answers[0] >= 0).all()
    if margin != "exponential":
        expected, _, _ = example.answers(
            lambda space, target, scores, y_true: oracle.constrained(
                space, target, scores, y_true, margin, 1.0, "unit"
            )
        )
        assert_agrees(answers[0], expected, 1e4)


# ---------------------------------------------------------------------------------------- precision


@few_pairs
@every_surrogate
def test_float32_in_gives_float32_out(pair, surrogate_name):
    """The same answers as for the same scores in float64, to float32's accuracy."""
    example = fixed_example(pair, n_rows=10)
    single = example.scores.astype(np.float32)
    surrogate = surrogate_of(example, surrogate_name)
    answers = surrogate.value_and_gradients(single, example.y_true)
    expected = surrogate.value_and_gradients(single.astype(np.float64), example.y_true)
    for answer, wide in zip(answers, expected, strict=True):
        assert answer.dtype == np.float32
        assert wide.dtype == np.float64
        assert_agrees(answer, wide, 1.0, tolerance=2e-6)


# -------------------------------------------------------------------------------- batches and input


@few_pairs
@each_way
def test_a_batch_equals_its_rows_one_by_one(pair, surrogate_name):
    example = fixed_example(pair, n_rows=9, size=2.0)
    surrogate = surrogate_of(example, surrogate_name)
    batch = surrogate.value_and_gradients(example.scores, example.y_true)
    rows = [
        surrogate.value_and_gradients(example.scores[[row]], example.y_true[[row]])
        for row in range(len(example.scores))
    ]
    for answer, parts in zip(batch, zip(*rows, strict=True), strict=True):
        assert_agrees(answer, np.concatenate(parts), 1.0, tolerance=1e-12)


@few_pairs
@each_way
def test_no_rows_in_no_rows_out(pair, surrogate_name):
    example = fixed_example(pair)
    values, gradient, parameter_gradient = surrogate_of(
        example, surrogate_name
    ).value_and_gradients(example.scores[:0], example.y_true[:0])
    assert values.shape == (0,)
    assert gradient.shape == (0, example.space.n_scores)
    assert parameter_gradient.shape == (0, len(example.space.space.parameters))


@few_pairs
@each_way
def test_inputs_are_not_changed(pair, surrogate_name):
    """Read-only arrays are accepted and come out as they went in, for C and Fortran order."""
    example = fixed_example(pair)
    surrogate = surrogate_of(example, surrogate_name)
    expected = surrogate.value_and_gradients(example.scores.copy(), example.y_true.copy())
    for order in ("C", "F"):
        scores, y_true = (
            np.array(example.scores, order=order),
            np.array(example.y_true, order=order),
        )
        scores.flags.writeable = y_true.flags.writeable = False
        answers = surrogate.value_and_gradients(scores, y_true)
        np.testing.assert_array_equal(scores, example.scores)
        np.testing.assert_array_equal(y_true, example.y_true)
        for answer, same in zip(answers, expected, strict=True):
            assert_agrees(answer, same, 1.0, tolerance=1e-13)


@few_pairs
def test_constructor_arguments_are_not_changed(pair):
    """Biases, potentials, lists, weights and tables stay the caller's own."""
    rng = np.random.default_rng(0)
    case = cases.EVERY_SPACE[pair[1]](5, rng)
    target = cases.EVERY_TARGET[pair[0]](rng, case)
    given_arguments = [*case.arguments.values(), *target.arguments.values()]
    arrays = [value for value in given_arguments if isinstance(value, np.ndarray)]
    copies = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    scores = rng.normal(size=(3, case.n_scores))
    inside = pair[0] in cases.TREE_NAMES and pair[1] in cases.PATHS_NAMES
    y_true = case.oracle.sets[[0, 0, 0]] if inside else rng.integers(0, 2, size=(3, 5))
    values, _, _ = CompSum(target.target, case.space, q=0.5).value_and_gradients(scores, y_true)
    assert np.isfinite(values).all()
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def sparse_versions(y_true):
    """CSR arrays and matrices of several dtypes, one with explicit zeros and unsorted columns."""
    yield scipy.sparse.csr_array(y_true)
    yield scipy.sparse.csr_matrix(y_true.astype(np.float32))
    yield scipy.sparse.csr_matrix(y_true.astype(bool))
    n_rows, n_labels = y_true.shape
    columns = np.tile(np.arange(n_labels)[::-1], n_rows)
    starts = n_labels * np.arange(n_rows + 1)
    yield scipy.sparse.csr_matrix((y_true[:, ::-1].ravel(), columns, starts), shape=y_true.shape)


@few_pairs
@each_way
def test_sparse_label_sets_equal_dense_ones(pair, surrogate_name):
    example = fixed_example(pair)
    surrogate = surrogate_of(example, surrogate_name)
    expected = surrogate.value_and_gradients(example.scores, example.y_true)
    for y_true in sparse_versions(example.y_true):
        for answer, same in zip(
            surrogate.value_and_gradients(example.scores, y_true), expected, strict=True
        ):
            assert_agrees(answer, same, 1.0, tolerance=1e-13)


@in_turn("margin", ["logistic", "exponential", "hinge", "squared_hinge"])
def test_sparse_label_sets_equal_dense_ones_in_binary_relevance(margin):
    example = fixed_example(("hamming", "cube"))
    surrogate = BinaryRelevance(margin=margin)
    expected = surrogate.value_and_gradients(example.scores, example.y_true)
    for y_true in sparse_versions(example.y_true):
        for answer, same in zip(
            surrogate.value_and_gradients(example.scores, y_true), expected, strict=True
        ):
            assert_agrees(answer, same, 1.0, tolerance=1e-13)


@in_turn("dtype", [bool, np.int8, np.uint8, np.float32, np.float64])
def test_label_sets_may_have_any_number_type(dtype):
    example = fixed_example(("f1", "sized"))
    surrogate = surrogate_of(example, "cross-entropy")
    expected = surrogate.value_and_gradients(example.scores, example.y_true)
    for answer, same in zip(
        surrogate.value_and_gradients(example.scores, example.y_true.astype(dtype)),
        expected,
        strict=True,
    ):
        assert_agrees(answer, same, 1.0, tolerance=1e-13)


# ---------------------------------------------------------------------------------- order of labels


def permuted(example, order):
    """The same example with its labels listed in another order, everywhere."""
    scores = example.scores if example.space.joint else example.scores[:, order]
    return Example(
        example.space.permuted(order),
        example.target.permuted(order),
        scores,
        example.y_true[:, order],
    )


def permuted_gradients(example, answers, order):
    """Where each number of the answers goes when the labels are reordered."""
    values, gradient, parameter_gradient = answers
    if not example.space.joint:
        gradient = gradient[:, order]
    if "potentials" in example.space.arguments:
        n_labels = example.space.n_labels
        parameter_gradient = parameter_gradient.reshape(-1, n_labels, 4)[:, order].reshape(
            -1, 4 * n_labels
        )
    return values, gradient, parameter_gradient


@few_pairs
@settings(max_examples=FEWER)
@given(data=st.data())
def test_permuting_labels_permutes_comp_sum(pair, data):
    """Label names mean nothing: scores, label sets, target and space reordered alike reorder the
    answer.
    """
    q = data.draw(exponents(), label="q")
    example = data.draw(examples(pair, grows=q < 0))
    order = np.array(data.draw(st.permutations(range(example.space.n_labels))))
    other = permuted(example, order)
    answers = CompSum(example.target.target, example.space.space, q=q).value_and_gradients(
        example.scores, example.y_true
    )
    others = CompSum(other.target.target, other.space.space, q=q).value_and_gradients(
        other.scores, other.y_true
    )
    for answer, expected in zip(others, permuted_gradients(example, answers, order), strict=True):
        assert_agrees(answer, expected, np.abs(answers[0]) + example.uniform_utility())


@few_pairs
@in_turn("surrogate_name", [name for name in SURROGATES if name.startswith("constrained")])
def test_permuting_labels_permutes_constrained_losses(pair, surrogate_name):
    example = fixed_example(pair)
    order = np.array([3, 0, 4, 2, 1])
    other = permuted(example, order)
    answers = surrogate_of(example, surrogate_name).value_and_gradients(
        example.scores, example.y_true
    )
    others = surrogate_of(other, surrogate_name).value_and_gradients(other.scores, other.y_true)
    for answer, expected in zip(others, permuted_gradients(example, answers, order), strict=True):
        assert_agrees(answer, expected, 1.0 + np.abs(answers[0]))


@in_turn("name", cases.EVERY_SPACE)
def test_permuting_labels_permutes_spaces(name):
    """Marginals and most likely sets move with the labels (continuous scores have no ties)."""
    rng = np.random.default_rng(2)
    case = cases.EVERY_SPACE[name](6, rng)
    order = np.array([2, 5, 0, 4, 1, 3])
    other = case.permuted(order)
    scores = rng.normal(size=(7, case.n_scores))
    moved = scores if case.joint else scores[:, order]
    np.testing.assert_allclose(
        other.space.log_partition(moved), case.space.log_partition(scores), rtol=1e-12
    )
    np.testing.assert_allclose(
        other.space.marginals(moved), case.space.marginals(scores)[:, order], rtol=1e-10
    )
    np.testing.assert_array_equal(
        other.space.most_likely(moved), np.asarray(case.space.most_likely(scores))[:, order]
    )


def test_limited_keeps_the_promised_range():
    """The examples for growing losses do reach 2 sum|h| = 600, and never exceed it."""
    scores = limited(np.full((1, 4), 300.0), joint=False)
    assert np.abs(scores).sum() == pytest.approx(300.0)

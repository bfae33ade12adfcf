"""Laws of closed sets and paths: sums over up to ten labels enumerated, over many by the general
recursions, predictions closed.
"""

from copy import copy
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setwise.decoders import MinimumRisk, MostLikely
from setwise.spaces import Forest, Paths
from setwise.spaces.expectation import Tempered
from setwise.spaces.nodes import GROUP, LANES, Nodes
from setwise.surrogates import CompSum, Logistic
from setwise.targets import Hamming, TreeDistance, ZeroOne
from setwise.taxonomy import Taxonomy
from tests.support import cases, oracle
from tests.support.examples import Example, assert_agrees, exponents, generators, score_arrays
from tests.support.profile import THOROUGH
from tests.support.turns import in_turn

KINDS = {"closed": cases.hierarchy, "paths": cases.paths, "leaf paths": cases.leaf_paths}
every_kind = in_turn("kind", KINDS)


@st.composite
def small_trees(draw, kind, distance=cases.tree_distance, largest=50.0, n_rows=3):
    """A space of two to ten labels, tree distance of random lengths, scores, sets of the space."""
    rng = draw(generators())
    case = KINDS[kind](draw(st.integers(2, 10)), rng)
    scores = draw(score_arrays(n_rows, case.n_labels, largest))
    y_true = case.oracle.sets[rng.integers(case.oracle.size, size=n_rows)]
    return case, distance(rng, case), scores, y_true


def enumerated(function, case, scores):
    return np.array([oracle.as_float(function(case.oracle, row)) for row in scores])


@every_kind
@given(data=st.data())
def test_partition_and_marginals_are_enumerated(kind, data):
    case, _, scores, _ = data.draw(small_trees(kind))
    found = case.space.log_partition(scores)
    expected = enumerated(oracle.log_partition, case, scores)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-11)
    expected = enumerated(oracle.marginals, case, scores)
    np.testing.assert_allclose(case.space.marginals(scores), expected, rtol=1e-9, atol=1e-13)


@every_kind
@given(data=st.data())
def test_expected_distance_and_its_gradient_are_enumerated(kind, data):
    """Every member of the family, from a taxonomy that carries the lengths."""
    q = data.draw(exponents().filter(lambda q: q >= 0.0), label="q")
    case, target, scores, y_true = data.draw(small_trees(kind))
    taxonomy = Taxonomy.from_parents(case.arguments["parents"], lengths=target.arguments["lengths"])
    options = {"closed": True} if kind == "closed" else {"leaves_only": kind == "leaf paths"}
    space = (Forest if kind == "closed" else Paths)(taxonomy, **options)
    loss = CompSum(TreeDistance(taxonomy), space, q)
    value, gradient = loss.value_and_gradient(scores, y_true)
    expected = Example(case, target, scores, y_true).answers(
        partial(oracle.comp_sum, q=q, scale="unit")
    )
    assert_agrees(value, expected[0], 1.0)
    assert_agrees(gradient, expected[1], 1.0)


@every_kind
@pytest.mark.parametrize("q", [-1.0, -0.5])
@given(data=st.data())
def test_sets_without_utility_weigh_nothing_at_negative_powers(kind, q, data):
    """Where sets as far apart as can be have all the weight, any rounding of u = 0 would show."""
    case, target, scores, y_true = data.draw(small_trees(kind, cases.uneven_tree_distance, 30.0))
    value, gradient = CompSum(target.target, case.space, q).value_and_gradient(scores, y_true)
    expected = Example(case, target, scores, y_true).answers(
        partial(oracle.comp_sum, q=q, scale="unit")
    )
    assert_agrees(value, expected[0], 1.0)
    assert_agrees(gradient, expected[1], 1.0)


def test_the_ends_of_an_uneven_chain_have_no_utility():
    """The diameter leaves the root's edge out, and 1 - total / diameter is all but rounding."""
    loss = CompSum(TreeDistance([-1, 0, 1], [0.001, 0.3, 0.7]), Paths([-1, 0, 1]), -1.0, "paper")
    value, gradient = loss.value_and_gradient([[0.0, 0.0, -30.0]], [[1, 0, 0]])
    # The paths of one and of two labels have half the weight each and utilities 1 and 0.7.
    np.testing.assert_allclose(value, [1.7], rtol=1e-12)
    np.testing.assert_allclose(gradient, [[0.0, 0.6, 0.0]], atol=1e-12)


# ----------------------------------------------------------------------------------- many labels


def deep(n_labels, rng):
    """A chain with a few branches, in random order."""
    parents = [-1, *(max(0, node - int(rng.integers(1, 3))) for node in range(n_labels - 1))]
    return cases.permuted_parents(parents, rng.permutation(n_labels))


def wide(n_labels, rng):
    """Three levels, more labels in a level than a group holds."""
    parents = [-1 if node < 3 else int(rng.integers(min(node, 9))) for node in range(n_labels)]
    return cases.permuted_parents(parents, rng.permutation(n_labels))


SHAPES = {
    "deep": deep,
    "wide": wide,
    "random": lambda n_labels, rng: cases.random_parents(n_labels, rng, 4),
    "roots only": lambda n_labels, rng: [-1] * n_labels,
}
every_shape = in_turn("shape", SHAPES)
POWERS = (-0.4, 0.0, 0.02, 0.5, 1.0)


def drawn(shape, seed, size=1.0, n_rows=2 * LANES + 3, n_labels=2 * GROUP + 40):
    """Parents, potentials, lengths, scores and closed sets (or paths) of many labels."""
    rng = np.random.default_rng(seed)
    parents = SHAPES[shape](n_labels, rng)
    taxonomy = Taxonomy.from_parents(parents, lengths=rng.uniform(0.2, 3.0, n_labels))
    scores = size * rng.normal(size=(n_rows, n_labels))
    ends = np.eye(n_labels, dtype=int)[rng.integers(n_labels, size=(n_rows, 3))]
    return rng, taxonomy, scores, ends


def without_passes_of_its_own(closed):
    """The same forest by the recursion that knows potentials."""
    general = copy(closed)
    object.__setattr__(general, "closed_law", None)
    return general


@in_turn(
    ("shape", "size", "q"),
    [
        (shape, size, q)
        for k, (shape, q, size) in enumerate(product(SHAPES, POWERS, (0.3, 3.0, 1e4)))
        if THOROUGH or (k + k // 3) % 3 == 0
    ],
)
def test_passes_over_nodes_equal_the_general_recursion(shape, size, q):
    """Closed sets with and without potentials against 2x2 tables, paths against their list."""
    rng, taxonomy, scores, ends = drawn(shape, 1, size)
    n_labels = taxonomy.n_labels
    potentials = rng.normal(size=(n_labels, 2, 2))
    for space, y_true in (
        (Forest(taxonomy, closed=True), taxonomy.close(ends.max(axis=1))),
        (Forest(taxonomy, potentials, closed=True), taxonomy.close(ends.max(axis=1))),
        (Paths(taxonomy), taxonomy.close(ends[:, 0])),
        (Paths(taxonomy, leaves_only=True), taxonomy.close(ends[:, 0])),
    ):
        for target in (TreeDistance(taxonomy), Hamming(rng.random(n_labels))):
            target = target.on(space)
            fast, slow = space.expectation(target), Tempered(target, space)
            np.testing.assert_allclose(
                fast.uniform(y_true), slow.uniform(y_true), rtol=1e-11, atol=1e-13
            )
            for of in ("utility", "loss"):
                found = fast.moment(scores, y_true, q, of, log_scale=0.3)
                right = slow.moment(scores, y_true, q, of, log_scale=0.3)
                compare(found, right, 1e-9)
        if q == 0.0:
            compare(fast.logistic(scores, y_true), slow.logistic(scores, y_true), 1e-9 * size)


def compare(found, right, tolerance):
    """Values relative to themselves, slopes to the largest of their row and the value."""
    overflow = ~np.isfinite(right.value)
    np.testing.assert_array_equal(found.value[overflow], right.value[overflow])
    kept = ~overflow & np.isfinite(right.scores).all(axis=1)
    floor = np.abs(right.value[kept])
    assert_agrees(found.value[kept], right.value[kept], floor, tolerance)
    assert_agrees(found.scores[kept], right.scores[kept], floor, tolerance)
    assert_agrees(found.parameters[kept], right.parameters[kept], floor, tolerance)
    assert not np.isnan(found.scores).any()
    assert not np.isnan(found.parameters).any()


@every_shape
@in_turn("size", [0.3, 3.0, 1e4])
def test_the_likelihood_by_nodes_is_the_general_one(shape, size):
    """Sets inside and outside the space; a probability near 1 keeps its logarithm's digits."""
    _, taxonomy, scores, ends = drawn(shape, 2, size)
    closed = Forest(taxonomy, closed=True)
    some = taxonomy.close(ends.max(axis=1))
    some[0] = closed.most_likely(scores[:1])
    some[1] = 1 - some[1]
    value, by_score, by_potential = closed.negative_log_likelihood(scores, some)
    np.testing.assert_array_equal(np.isfinite(value), closed.contains(some))
    expected = without_passes_of_its_own(closed).negative_log_likelihood(scores, some)
    np.testing.assert_allclose(value, expected[0], rtol=1e-11)
    np.testing.assert_allclose(by_score, expected[1], rtol=1e-9, atol=1e-300)
    inside = closed.contains(some)
    np.testing.assert_allclose(by_potential[inside], expected[2][inside], rtol=1e-9, atol=1e-12)
    for space in (Paths(taxonomy), Paths(taxonomy, leaves_only=True)):
        some = taxonomy.close(ends[:, 0])
        some[0] = space.most_likely(scores[:1])
        some[1] = 0
        listed, found = Tempered(ZeroOne(), space), space.expectation("subset")
        np.testing.assert_allclose(found.uniform(some), listed.uniform(some), rtol=1e-12)
        for q in (0.5, 1.0):
            compare(found.moment(scores, some, q), listed.moment(scores, some, q), 1e-9)
        value, slope = found.logistic(scores, some), listed.logistic(scores, some)
        np.testing.assert_allclose(value.value, slope.value, rtol=1e-9, atol=1e-9 * size)
        np.testing.assert_allclose(value.scores, slope.scores, atol=1e-12)


def test_a_path_that_is_all_but_certain_keeps_its_digits():
    """-log s(y) and E[y'] - y where the other paths weigh e^-60."""
    value, by_score, _ = Paths([-1, 0, 0]).negative_log_likelihood(
        np.array([[0.0, 30.0, 0.0]]), np.array([[1, 1, 0]], dtype=np.uint8)
    )
    # The root alone and its other child have e^-60 each of the weight.
    np.testing.assert_allclose(value, [2.0 * np.exp(-60.0)], rtol=1e-12)
    expected = [[0.0, -4.0 * np.exp(-60.0), 2.0 * np.exp(-60.0)]]
    np.testing.assert_allclose(by_score, expected, rtol=1e-12)


@every_shape
@every_kind
@in_turn("q", [-1.0, -0.5, 0.0, 0.5, 1.0])
def test_float32_scores_lose_only_rounding(shape, kind, q):
    """Scores at which a loss of q < 0 is a number of float32."""
    _, taxonomy, scores, ends = drawn(shape, 3, size=1.0 if q >= 0.0 else 0.1)
    y_true = taxonomy.close(ends.max(axis=1) if kind == "closed" else ends[:, 0])
    space = Forest(taxonomy, closed=True)
    if kind != "closed":
        space = Paths(taxonomy, leaves_only=kind == "leaf paths")
    single = scores.astype(np.float32)
    for loss in (CompSum(TreeDistance(taxonomy), space, q), Logistic("subset", space, "paper")):
        value, gradient = loss.value_and_gradient(single, y_true)
        wide_value, wide_gradient = loss.value_and_gradient(single.astype(np.float64), y_true)
        assert value.dtype == gradient.dtype == np.float32
        np.testing.assert_allclose(value, wide_value, rtol=1e-6, atol=1e-7)
        assert_agrees(gradient, wide_gradient, 0.0, tolerance=1e-6)


@pytest.mark.parametrize(
    ("space", "scores"),
    [(Forest([-1], closed=True), [-160.0]), (Paths([-1, -1, 0]), [-0.2, 0.3, -160.0])],
)
def test_a_factor_beyond_float32_meets_a_mean_as_small(space, scores):
    """q = -1 where the one unlikely set has no utility: e^320 times e^-320."""
    single = np.array([scores], dtype=np.float32)
    y_true = space.most_likely(single)
    loss = CompSum(TreeDistance(space.parents), space, -1.0)
    value, gradient = loss.value_and_gradient(single, y_true)
    wide_value, wide_gradient = loss.value_and_gradient(single.astype(np.float64), y_true)
    assert value.dtype == gradient.dtype == np.float32
    assert np.abs(wide_value) < 1.0
    np.testing.assert_allclose(value, wide_value, rtol=1e-6)
    np.testing.assert_allclose(gradient, wide_gradient, rtol=1e-6, atol=1e-30)


@every_shape
def test_groups_hold_no_parent_of_their_own(shape):
    """Each label once, parents first, all groups together all nodes."""
    _, taxonomy, _, _ = drawn(shape, 4)
    nodes = Nodes.of(taxonomy.parents)
    np.testing.assert_array_equal(np.sort(nodes.labels), np.arange(-1, taxonomy.n_labels))
    parents = np.where(nodes.above[1:] > 0, nodes.labels[nodes.above[1:]], -1)
    np.testing.assert_array_equal(parents, taxonomy.parents[nodes.labels[1:]])
    assert nodes.ends[0] == 1
    assert nodes.ends[-1] == len(nodes.labels)
    for first, stop in zip(nodes.ends[:-1], nodes.ends[1:], strict=True):
        assert 0 < stop - first <= GROUP
        assert (nodes.above[first:stop] < first).all()


# -------------------------------------------------------------------------------------- decoding


def closed_sets(parents):
    return oracle.forest(parents, closed=True).sets


@every_kind
@given(data=st.data())
def test_no_closed_set_has_less_expected_distance(kind, data):
    """The decoder's risk is the enumerated minimum over all closed sets, which it attains."""
    case, target, scores, _ = data.draw(small_trees(kind))
    lengths, parents = target.arguments["lengths"], case.arguments["parents"]
    answer = MinimumRisk(target.target).decode_scores(scores, case.space, return_risk=True)
    candidates = closed_sets(parents)
    scale = oracle.diameter(case.oracle.sets, lengths) if kind != "closed" else lengths.sum()
    apart = (candidates[:, None] != case.oracle.sets[None]) @ lengths / max(float(scale), 1e-300)
    for row, chosen, risk in zip(scores, answer.sets, answer.risk, strict=True):
        law = oracle.as_float(oracle.set_probability(case.oracle, row))
        risks = apart @ law
        place = np.flatnonzero((candidates == chosen).all(axis=1))
        assert len(place) == 1, f"{chosen} is not closed"
        assert risks[place[0]] <= risks.min() + 1e-10
        if scale > 0:
            assert risk == pytest.approx(min(risks.min(), 1.0), abs=1e-10)


@given(rng=generators(), n_labels=st.integers(1, 40), size=st.sampled_from([0.0, 0.1, 3.0, 1e4]))
def test_every_prediction_is_closed(rng, n_labels, size):
    """Whatever the tree, the scores, the space and the decoder; ties included."""
    taxonomy = Taxonomy.from_parents(cases.random_parents(n_labels, rng))
    scores = size * rng.normal(size=(4, n_labels))
    target = TreeDistance(taxonomy, lengths=rng.uniform(0.1, 2.0, n_labels))
    for space in (
        Forest(taxonomy, closed=True),
        Forest(taxonomy, rng.normal(size=(n_labels, 2, 2)), closed=True),
        Paths(taxonomy),
        Paths(taxonomy, leaves_only=True),
    ):
        likely = MostLikely(space).decode(scores)
        assert space.contains(likely).all()
        taxonomy.refuse_open(likely)
        taxonomy.refuse_open(MinimumRisk(target).decode_scores(scores, space))
    taxonomy.refuse_open(MinimumRisk(target).decode(rng.random((4, n_labels))))
    taxonomy.refuse_open(MinimumRisk(target).decode(np.full((1, n_labels), 0.5)))


@given(rng=generators(), n_labels=st.integers(1, 30))
def test_from_paths_the_best_closed_set_is_a_path_or_nothing(rng, n_labels):
    """Siblings share their parent's probability, so no two of them are above 1/2."""
    taxonomy = Taxonomy.from_parents(cases.random_parents(n_labels, rng))
    space = Paths(taxonomy)
    scores = 2.0 * rng.normal(size=(5, n_labels))
    sets = MinimumRisk(TreeDistance(taxonomy)).decode_scores(scores, space)
    assert (space.contains(sets) | (sets.sum(axis=1) == 0)).all()

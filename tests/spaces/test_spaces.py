"""Laws of the spaces: each sum over label sets is the enumerated one."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from setwise.spaces import SPACES, Catalog, Cube, Forest, Paths, Sized, Slice, register
from tests.support import cases, oracle
from tests.support.examples import space_examples
from tests.support.turns import in_turn

every_space = in_turn("name", cases.EVERY_SPACE)


def by_row(function, case, scores):
    return np.array([oracle.as_float(function(case.oracle, row)) for row in scores])


@every_space
@given(data=st.data())
def test_log_partition_is_the_enumerated_sum(name, data):
    """A(h) = log sum_{y'} exp(z(y'))."""
    case, scores = data.draw(space_examples(name))
    expected = by_row(oracle.log_partition, case, scores)
    # Scores may cancel: rounding is relative to their size, not to that of the sum.
    rounding = 1e-12 + 1e-15 * np.abs(scores).sum(axis=1).max(initial=0.0)
    np.testing.assert_allclose(
        case.space.log_partition(scores), expected, rtol=1e-12, atol=rounding
    )


@every_space
@given(data=st.data())
def test_marginals_are_the_enumerated_probabilities(name, data):
    """P(label i in the set) under s, also where it is within 1e-12 of 0 or 1."""
    case, scores = data.draw(space_examples(name))
    np.testing.assert_allclose(
        case.space.marginals(scores), by_row(oracle.marginals, case, scores), rtol=1e-9, atol=1e-13
    )


@every_space
@given(data=st.data())
def test_the_likelihood_is_the_enumerated_one(name, data):
    """-log s(y) and its gradients by scores and by parameters; log s(y) is -inf outside."""
    case, scores = data.draw(space_examples(name))
    place = data.draw(st.lists(st.integers(0, case.oracle.size - 1), min_size=5, max_size=5))
    sets, space = case.oracle.sets[place].astype(np.uint8), case.oracle
    value, by_score, by_parameter = case.space.negative_log_likelihood(scores, sets)
    for row, k in enumerate(place):
        law = oracle.set_probability(space, scores[row])
        floor = 1e-12 * (1.0 + np.abs(scores[row]).sum())
        others = float(oracle.as_float(np.delete(law, k).sum()))
        expected = -np.log1p(-others) if others < 0.5 else -float(np.log(law[k]))
        np.testing.assert_allclose(value[row], expected, rtol=1e-9, atol=floor)
        for found, features in (
            (by_score, space.score_features), (by_parameter, space.parameter_features),
        ):  # fmt: skip
            if features.shape[1] == 0:
                assert not found.any()
                continue
            slope = -oracle.as_float(oracle.centred(features, law)[k])
            np.testing.assert_allclose(found[row], slope, rtol=1e-9, atol=1e-13)
    other = 1 - sets
    log_probability = case.space.log_probability(scores, other)
    assert (np.isneginf(log_probability) == ~space.contains(other)).all()


def test_a_registered_space_is_described_by_itself():
    """What makes every law run on a kind of space that the tests know nothing of."""
    rng = np.random.default_rng(0)
    for make in SPACES.values():
        case = cases.registered(make)(4, rng)
        scores = rng.normal(size=(3, case.space.n_scores))
        expected = by_row(oracle.log_partition, case, scores)
        np.testing.assert_allclose(case.space.log_partition(scores), expected, rtol=1e-12)
        assert case.oracle.log_size == pytest.approx(case.space.log_size)


def test_a_name_is_registered_once():
    with pytest.raises(ValueError, match="already"):
        register("cube", SPACES["cube"])


@every_space
@given(data=st.data())
def test_no_label_set_has_a_larger_z_than_the_most_likely(name, data):
    """most_likely is a member of the space that attains the maximum; which of several is free."""
    case, scores = data.draw(space_examples(name))
    predicted = np.asarray(case.space.most_likely(scores)).astype(int)
    for row, chosen in zip(scores, predicted, strict=True):
        z = case.oracle.z(row)
        position = np.flatnonzero((case.oracle.sets == chosen).all(axis=1))
        assert len(position) == 1, f"{chosen} is not in the space"
        assert z[position[0]] >= z.max() - 1e-12 * (1 + np.abs(row).sum())


@every_space
@given(data=st.data())
def test_log_size_is_the_log_of_the_count(name, data):
    """Biases and potentials do not count; minus infinity does."""
    case, _ = data.draw(space_examples(name, n_rows=1))
    assert case.space.log_size == pytest.approx(case.oracle.log_size, rel=1e-13, abs=1e-13)


@every_space
@given(data=st.data())
def test_enumerate_lists_each_set_of_the_support_once(name, data):
    case, _ = data.draw(space_examples(name, n_rows=1))
    listed = [tuple(row) for row in np.asarray(case.space.enumerate()).astype(int).tolist()]
    assert len(listed) == len(set(listed))
    assert set(listed) == {tuple(row) for row in case.oracle.sets.tolist()}


@every_space
@given(data=st.data())
def test_contains_is_membership_in_the_support(name, data):
    case, _ = data.draw(space_examples(name, n_rows=1))
    everything = oracle.all_sets(case.n_labels)
    expected = case.oracle.contains(everything)
    np.testing.assert_array_equal(case.space.contains(everything), expected)
    np.testing.assert_array_equal(case.space.contains(scipy.sparse.csr_array(everything)), expected)


@every_space
@given(data=st.data(), q=st.sampled_from([1.0, 0.5, 1e-6, 0.0, -0.3, -1.0]))
def test_a_tempered_space_sums_tempered_exponentials(name, data, q):
    """A_q(h) = log sum exp(q z): biases and potentials are scaled with the scores, the support is
    not.
    """
    case, scores = data.draw(space_examples(name, n_rows=2))
    tempered = case.space.tempered(q)
    expected = [float(oracle.log_partition(case.oracle, row, q)) for row in scores]
    np.testing.assert_allclose(tempered.log_partition(q * scores), expected, rtol=1e-12, atol=1e-12)
    assert tempered.log_size == pytest.approx(case.space.log_size, rel=1e-13, abs=1e-13)


@every_space
@given(data=st.data())
def test_parameters_round_trip(name, data):
    """with_parameters(parameters) is the same space; other parameters give the space built from
    them.
    """
    case, scores = data.draw(space_examples(name, largest=5.0, n_rows=2))
    parameters = np.asarray(case.space.parameters)
    same = case.space.with_parameters(parameters)
    np.testing.assert_array_equal(same.parameters, parameters)
    np.testing.assert_array_equal(same.log_partition(scores), case.space.log_partition(scores))
    if name in cases.CONSTANT_PARAMETERS:
        return
    moved = np.where(
        np.isfinite(parameters), 0.5 * parameters - 0.1 * np.arange(len(parameters)), parameters
    )
    moved = np.maximum(moved, case.space.lower_bounds)
    changed = {}
    own, bonus = np.split(moved, [len(moved) - len(case.arguments.get("bonus", []))])
    if len(bonus):
        changed["bonus"] = bonus
    if len(own):
        by_edge = "parents" in case.arguments
        changed |= {"potentials": own.reshape(-1, 2, 2)} if by_edge else {"bias": own}
    expected = case.describe(**(case.arguments | changed))
    actual = case.space.with_parameters(moved).log_partition(scores)
    np.testing.assert_allclose(
        actual, [float(oracle.log_partition(expected, row)) for row in scores], rtol=1e-12
    )


@every_space
@given(data=st.data())
def test_sizes_are_declared(name, data):
    """n_labels, n_scores and the number of parameters match what was given."""
    case, _ = data.draw(space_examples(name, n_rows=1))
    assert case.space.n_labels == case.n_labels
    assert case.space.n_scores == case.n_scores
    if name not in cases.CONSTANT_PARAMETERS:
        assert len(case.space.parameters) == case.oracle.parameter_features.shape[1]


@every_space
@given(data=st.data(), size=st.sampled_from([1e4, 1e-300]))
def test_extreme_scores_give_the_enumerated_sums(name, data, size):
    """No overflow, no underflow to NaN: scores of 1e4 and of 1e-300."""
    case, scores = data.draw(space_examples(name, largest=1.0, n_rows=2))
    scores = scores * size
    expected = by_row(oracle.log_partition, case, scores)
    # As above: six scores of 9990 that cancel leave the rounding of 60,000.
    rounding = 1e-12 + 1e-15 * np.abs(scores).sum(axis=1).max(initial=0.0)
    np.testing.assert_allclose(
        case.space.log_partition(scores), expected, rtol=1e-12, atol=rounding
    )
    np.testing.assert_allclose(
        case.space.marginals(scores), by_row(oracle.marginals, case, scores), atol=1e-10
    )


@every_space
def test_float32_in_gives_float32_out(name):
    rng = np.random.default_rng(0)
    case = cases.EVERY_SPACE[name](6, rng)
    scores = rng.normal(scale=3, size=(8, case.n_scores)).astype(np.float32)
    log_partition, marginals = case.space.log_partition(scores), case.space.marginals(scores)
    assert log_partition.dtype == marginals.dtype == np.float32
    np.testing.assert_allclose(
        log_partition, by_row(oracle.log_partition, case, scores), rtol=1e-6, atol=1e-6
    )
    np.testing.assert_allclose(
        marginals, by_row(oracle.marginals, case, scores), rtol=1e-5, atol=1e-6
    )


# ------------------------------------------------------------------ spaces that are one another


@given(data=st.data())
def test_the_automaton_equals_the_closed_form(data):
    """The paper's two passes over a chain, when the potentials vanish: sum log(2 cosh h) and
    sigmoid(2 h).
    """
    case, scores = data.draw(space_examples("cube"))
    chain = Forest.chain(case.n_labels)
    np.testing.assert_allclose(
        chain.log_partition(scores),
        np.logaddexp(scores, -scores).sum(axis=1),
        rtol=1e-13,
        atol=1e-13,
    )
    np.testing.assert_allclose(
        chain.marginals(scores), 0.5 * (1 + np.tanh(scores)), rtol=1e-12, atol=1e-15
    )
    np.testing.assert_allclose(
        chain.log_partition(scores), case.space.log_partition(scores), rtol=1e-13, atol=1e-13
    )
    assert chain.log_size == pytest.approx(case.n_labels * np.log(2))


@given(data=st.data())
def test_a_chain_is_the_forest_whose_parent_is_the_label_before(data):
    case, scores = data.draw(space_examples("chain"))
    chain = Forest.chain(case.n_labels, potentials=case.arguments["potentials"])
    np.testing.assert_array_equal(chain.log_partition(scores), case.space.log_partition(scores))
    np.testing.assert_array_equal(chain.marginals(scores), case.space.marginals(scores))


@given(data=st.data())
def test_one_space_written_in_two_ways_is_one_space(data):
    """A slice is a sized space with one size; sizes without bias are the cube; paths are the list
    of paths.
    """
    case, scores = data.draw(space_examples("slice"))
    n_labels, size = case.n_labels, case.arguments["size"]
    bias = np.full(n_labels + 1, -np.inf)
    bias[size] = 0.0
    pairs = [
        (Slice(n_labels, size), Sized(n_labels, bias)),
        (Cube(n_labels), Sized(n_labels, np.zeros(n_labels + 1))),
        (Slice(n_labels, size), Catalog(oracle.slice_of(n_labels, size).sets)),
    ]
    parents = [-1, *(label // 2 for label in range(n_labels - 1))]
    pairs.append((Paths(parents), Catalog(oracle.paths(parents).sets)))
    for first, second in pairs:
        np.testing.assert_allclose(
            first.log_partition(scores), second.log_partition(scores), rtol=1e-12, atol=1e-12
        )
        np.testing.assert_allclose(
            first.marginals(scores), second.marginals(scores), rtol=1e-9, atol=1e-13
        )


# ---------------------------------------------------------------------------------------- ties


def test_a_score_of_zero_is_positive_on_the_cube():
    """sgn(0) = +1, as in the paper."""
    np.testing.assert_array_equal(Cube(3).most_likely(np.array([[0.0, -0.0, -1.0]])), [[1, 1, 0]])


def test_ties_go_to_the_lower_label_on_a_slice():
    np.testing.assert_array_equal(
        Slice(4, 2).most_likely(np.array([[1.0, 1.0, 1.0, 1.0]])), [[1, 1, 0, 0]]
    )
    np.testing.assert_array_equal(
        Slice(4, 2).most_likely(np.array([[0.0, 5.0, 0.0, 0.0]])), [[1, 1, 0, 0]]
    )


def test_ties_go_to_the_earlier_row_of_a_list():
    sets = np.array([[0, 1, 1], [1, 0, 0], [1, 1, 1]])
    np.testing.assert_array_equal(Catalog(sets).most_likely(np.zeros((1, 3))), [[0, 1, 1]])
    np.testing.assert_array_equal(
        Catalog(sets[::-1], joint=True).most_likely(np.zeros((1, 3))), [[1, 1, 1]]
    )


# ------------------------------------------------------------------------------------ large spaces


def test_log_sizes_of_spaces_too_large_to_enumerate():
    """Counting needs no enumeration: 2^1000, C(1000, 3), and the closed sets of 300 pairs."""
    assert Cube(1000).log_size == pytest.approx(1000 * np.log(2))
    assert Slice(1000, 3).log_size == pytest.approx(np.log(1000 * 999 * 998 / 6))
    parents = [-1 if label % 2 == 0 else label - 1 for label in range(600)]
    assert Forest(parents, closed=True).log_size == pytest.approx(300 * np.log(3))


def test_a_large_sized_space_neither_underflows_nor_overflows():
    """1,001 labels of score zero and no bias up to size 500: half the cube, by symmetry."""
    space, half = Sized(1001, np.zeros(501)), 1000 * np.log(2)
    np.testing.assert_allclose(space.log_partition(np.zeros((1, 1001))), half, rtol=1e-12)
    assert space.log_size == pytest.approx(half, rel=1e-12)


def test_a_long_chain_equals_its_transfer_matrix():
    """1,000 labels with one score and one potential: the largest eigenvalue in closed form."""
    n_labels, score, coupling = 1000, 0.3, 0.7
    potentials = np.zeros((n_labels, 2, 2))
    potentials[:, 0, 0] = potentials[:, 1, 1] = coupling
    own = np.diag(np.exp([-score, score]))
    step = own @ np.exp(potentials[0])
    vector, log_total = own @ np.ones(2), 0.0
    for _ in range(n_labels - 1):
        vector = step @ vector
        log_total += np.log(vector.sum())
        vector /= vector.sum()
    space = Forest.chain(n_labels, potentials=potentials)
    np.testing.assert_allclose(
        space.log_partition(np.full((1, n_labels), score)), log_total, rtol=1e-12
    )


def test_where_to_start_is_found_without_a_copy_of_the_label_sets():
    sets = (np.random.default_rng(0).random((2000, 500)) < 0.01).astype(np.uint8)
    weights = np.linspace(0.5, 1.5, 2000)
    tracemalloc.start()
    found = Cube(500).start_scores(sets, weights)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < sets.nbytes / 2
    share = (np.array([weights[row > 0].sum() for row in sets.T]) + 0.5) / (weights.sum() + 1.0)
    np.testing.assert_allclose(np.exp(2.0 * found), share / (1.0 - share), rtol=1e-12)

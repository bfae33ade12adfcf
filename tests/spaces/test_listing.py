"""Laws of sums over a list of label sets."""

from fractions import Fraction

import numpy as np
import pytest

from setwise.spaces import Catalog, Sized
from setwise.spaces.expectation import Tempered
from setwise.spaces.listing import ListedExpectation
from setwise.spaces.space import others_of_group, sum_of_others
from setwise.surrogates import CompSum
from setwise.targets import CountTarget, TableTarget, get_target, measure


@pytest.mark.parametrize("shape", [(0, 3), (1, 4), (50, 2), (50, 30), (7, 0)])
@pytest.mark.parametrize("alike", [False, True])
def test_rows_are_those_of_their_first_places(monkeypatch, shape, alike):
    """Also where the keys of different rows are the same."""
    if alike:
        monkeypatch.setattr(measure, "label_numbers", lambda count: np.zeros(count, np.int64))
    sets = np.random.default_rng(0).integers(0, 2, shape).astype(np.uint8)
    first, inverse = measure.distinct_rows(sets)
    np.testing.assert_array_equal(sets[first][inverse], sets)
    assert len(first) == len({row.tobytes() for row in sets})


def test_the_sum_of_other_entries_keeps_its_digits():
    values = np.array([[1.0, 1e-20, 3e-30], [0.25, 0.5, 0.25], [0.0, 0.0, 0.0], [0.0, 7.0, 0.0]])
    expected = [[1e-20 + 3e-30, 1.0, 1.0], [0.75, 0.5, 0.75], [0, 0, 0], [7.0, 0.0, 7.0]]
    np.testing.assert_allclose(sum_of_others(values), expected, rtol=1e-15)
    by_groups = others_of_group(np.hstack([values, values]), 3)
    np.testing.assert_allclose(by_groups, np.tile(expected, 2), rtol=1e-15)


def test_derivatives_are_exact_where_one_set_is_all_but_certain():
    """At q = 1 against the quotient of whole numbers."""
    sets = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 1]])
    target, y_true = get_target("f1"), np.array([[1, 1, 0]], np.uint8)
    utility = [Fraction(*pair) for pair in ((0, 1), (2, 3), (1, 1), (1, 2))]
    for bias in ([30.0, 0.0, 0.0, 0.0], [0.0, 0.0, 30.0, -20.0], [1.0, 40.0, 0.0, -3.0]):
        found = Catalog(sets, bias).expectation(target).moment(np.zeros((1, 3)), y_true, 1.0)
        weight = [Fraction(float(w)) for w in np.exp(np.array(bias) - max(bias))]
        total = sum(weight)
        mean = sum(w * u for w, u in zip(weight, utility, strict=True)) / total
        exact = [float(w / total * (u - mean)) for w, u in zip(weight, utility, strict=True)]
        np.testing.assert_allclose(found.parameters[0], exact, rtol=1e-13)


@pytest.mark.parametrize("q", [-1.0, -0.3, 0.0, 1e-3, 0.5, 1.0])
@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("name", ["f1", "hamming", "counts", "table"])
def test_moments_are_those_by_a_tempered_space(name, joint, q):
    """With a set that is excluded, and true sets that are not listed."""
    generator = np.random.default_rng(1)
    sets = np.unique(generator.integers(0, 2, (9, 4)), axis=0)
    bias = generator.normal(size=len(sets))
    bias[2] = -np.inf
    target = {
        "counts": CountTarget(lambda tp, fp, fn, tn: (fp + fn * fn) / 20.0),
        "table": TableTarget(sets, generator.random((len(sets), len(sets)))),
    }.get(name, name)
    space = Catalog(sets, bias, joint=joint)
    pair = space.expectation(target)
    assert isinstance(pair, ListedExpectation)
    other = Tempered(pair.target, space)
    scores = 2.0 * generator.normal(size=(30, space.n_scores))
    listed = sets[generator.integers(0, len(sets), 30)]
    y_true = (listed if name == "table" else generator.integers(0, 2, (30, 4))).astype(np.uint8)
    for of in ("utility", "loss"):
        np.testing.assert_allclose(pair.uniform(y_true, of), other.uniform(y_true, of), rtol=1e-13)
        for one, two in zip(
            pair.moment(scores, y_true, q, of, 0.7), other.moment(scores, y_true, q, of, 0.7),
            strict=True,
        ):  # fmt: skip
            np.testing.assert_allclose(one, two, rtol=1e-11, atol=1e-14)
    for one, two in zip(
        pair.logistic(scores, y_true, 0.7), other.logistic(scores, y_true, 0.7), strict=True
    ):
        np.testing.assert_allclose(one, two, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("q", [-0.5, 0.0, 0.3, 1.0])
def test_a_level_that_all_sets_share_changes_no_digit(q):
    """Joint scores in steps of 1/1024, to which 2**40 can be added exactly."""
    generator = np.random.default_rng(2)
    sets = np.unique(generator.integers(0, 2, (20, 5)), axis=0)
    scores = generator.integers(-4000, 4000, (50, len(sets))) / 1024
    y_true = sets[generator.integers(0, len(sets), 50)].astype(np.uint8)
    pair = Catalog(sets, joint=True).expectation("f1")
    for far in (scores + 2.0**40, scores - 2.0**40):
        for one, two in zip(
            pair.moment(scores, y_true, q), pair.moment(far, y_true, q), strict=True
        ):
            np.testing.assert_array_equal(one, two)
        for one, two in zip(pair.logistic(scores, y_true), pair.logistic(far, y_true), strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("q", [0.0, 1.0])
@pytest.mark.parametrize("space", [Catalog([[0, 0], [0, 1], [1, 0]]), Sized(2, [0.0, 1.0])])
def test_a_true_set_outside_of_a_table_is_named_by_its_row(space, q):
    sets = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    loss = CompSum(TableTarget(sets[:3], np.zeros((3, 3))), space, q)
    with pytest.raises(ValueError, match=r"y_true\[2\] = \[1, 1\] is not among the 3"):
        loss.value_and_gradient(np.zeros((5, 2)), sets[[1, 0, 3, 1, 0]])


def test_a_function_is_asked_for_counts_that_occur_only():
    """Of these sets, none of which is empty, 1 - precision is defined."""
    sets = np.random.default_rng(5).integers(0, 2, (200, 6)).astype(np.uint8)
    sets = np.unique(sets[sets.any(axis=1)], axis=0)
    target = CountTarget(lambda tp, fp, fn, tn: fp / (tp + fp))
    found = target.measure(6, "loss").matrix(Catalog(sets), sets)
    shares = sets.sum(axis=1, dtype=float) - sets @ sets.T.astype(float)
    np.testing.assert_array_equal(found, shares / sets.sum(axis=1, dtype=float))


def test_rows_beyond_a_range_are_like_the_first():
    """Lists so long that rows are gone through a few at a time."""
    generator = np.random.default_rng(3)
    sets = np.unique(generator.integers(0, 2, (1500, 12)), axis=0)
    space = Catalog(sets, generator.normal(size=len(sets)))
    scores = generator.normal(size=(200, 12))
    y_true = generator.integers(0, 2, (200, 12)).astype(np.uint8)
    whole = CompSum("f1", space, 0.5).value_and_gradients(scores, y_true)
    last = CompSum("f1", space, 0.5).value_and_gradients(scores[150:], y_true[150:])
    for one, two in zip(whole, last, strict=True):
        np.testing.assert_allclose(one[150:], two, rtol=1e-12, atol=1e-18)


@pytest.mark.parametrize("name", ["f1", "jaccard", "subset", "counts"])
def test_values_of_many_pairs_are_those_of_each_pair(name):
    """So many that they are looked up by their counts."""
    generator = np.random.default_rng(4)
    sets = np.unique(generator.integers(0, 2, (90, 7)), axis=0).astype(np.uint8)
    y_true = generator.integers(0, 2, (300, 7)).astype(np.uint8)
    target = CountTarget(lambda tp, fp, fn, tn: (fp + fn * tn) / 40.0)
    target = target if name == "counts" else get_target(name)
    for of in ("utility", "loss"):
        value = target.measure(7, of)
        found = value.matrix(Catalog(sets), y_true)
        each = [value.rows(np.broadcast_to(y, y_true.shape), y_true) for y in sets]
        np.testing.assert_array_equal(found, np.transpose(each))

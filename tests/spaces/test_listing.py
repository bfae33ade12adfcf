"""Laws of sums over a list of label sets."""

from fractions import Fraction

import numpy as np
import pytest

from setwise.spaces import Catalog
from setwise.spaces.expectation import Tempered
from setwise.spaces.listing import ListedExpectation, others
from setwise.spaces.space import others_of_group
from setwise.targets import CountTarget, TableTarget, get_target, measure


@pytest.mark.parametrize("shape", [(0, 3), (1, 4), (50, 2), (50, 30), (7, 0)])
@pytest.mark.parametrize("alike", [False, True])
def test_rows_are_those_of_their_first_places(monkeypatch, shape, alike):
    """Also where the keys of different rows are the same."""
    if alike:
        monkeypatch.setattr(measure, "row_keys", lambda sets: np.zeros(len(sets), np.int64))
    sets = np.random.default_rng(0).integers(0, 2, shape).astype(np.uint8)
    first, inverse = measure.distinct_rows(sets)
    np.testing.assert_array_equal(sets[first][inverse], sets)
    assert len(first) == len({row.tobytes() for row in sets})


def test_the_sum_of_other_entries_keeps_its_digits():
    values = np.array([[1.0, 1e-20, 3e-30], [0.25, 0.5, 0.25], [0.0, 0.0, 0.0], [0.0, 7.0, 0.0]])
    expected = [[1e-20 + 3e-30, 1.0, 1.0], [0.75, 0.5, 0.75], [0, 0, 0], [7.0, 0.0, 7.0]]
    np.testing.assert_allclose(others(values), expected, rtol=1e-15)
    np.testing.assert_allclose(others(values), others_of_group(values, 3), rtol=1e-15)


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

"""Laws of lanes: each computes what NumPy does, number by number, whatever the precision."""

import numpy as np
import pytest

from setwise.kernels import exp, kernel
from setwise.lanes import (
    LANES,
    add,
    larger,
    load,
    load_row,
    product,
    size,
    smaller,
    spread,
    store,
    store_row,
    total,
    where_smaller,
    wide,
)
from setwise.spaces import Catalog, Cube
from setwise.surrogates import CompSum
from setwise.targets import LinearFractional
from tests.support.turns import in_turn

PRECISIONS = [np.float32, np.float64]
# Of rows that are lanes: not the width of others, and no power of two.
WIDTH = 12
# A quotient to which labels that are left out add too.
ABSENT = LinearFractional((0.1, 0.0, 1.4, 1.5, 0.2), (0.5, 2.7, 1.6, 1.5, 0.4), empty=1.0)


@kernel
def each_of(x, y, bits, one, out):
    for j in range(0, len(x), LANES):
        a, b, bit = load(x, j, one), load(y, j, one), load(bits, j, one)
        store(out[0], j, one / (a * b - one) + bit * (-size(a)))
        store(out[1], j, where_smaller(a, b, smaller(b, spread(one)), larger(a, b)))
        store(out[2], j, exp(a))


@kernel
def sums_of(x, one):
    sums, products = spread(0.0), spread(1.0)
    for j in range(0, len(x), LANES):
        sums = sums + wide(load(x, j, one))
        products = products * wide(load(x, j, one))
    return total(sums), product(products)


@kernel
def rows_of(rows, other, number, out):
    lanes = add(load_row(rows, 1, WIDTH), number, load_row(other, 0, WIDTH))
    store_row(out, 0, load_row(rows, 0, WIDTH) * lanes - rows[0, 0])
    store_row(out, 1, lanes)
    return total(lanes)


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_rows_of_a_matrix_are_lanes_of_its_width(dtype):
    random = np.random.default_rng(0)
    rows, other, out = (random.random((k, WIDTH)).astype(dtype) for k in (3, 1, 2))
    summed = rows_of(rows, other, 0.75, out)
    lanes = rows[1] + dtype(0.75) * other[0]
    error = 8 * np.finfo(dtype).eps
    np.testing.assert_allclose(summed, lanes.sum(), rtol=error)
    np.testing.assert_allclose(out[0], rows[0] * lanes - rows[0, 0], atol=error)
    np.testing.assert_allclose(out[1], lanes, rtol=error)


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_lanes_compute_what_numpy_does(dtype):
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(2, 5 * LANES)).astype(dtype) * 3
    bits, out = generator.integers(0, 2, len(x), dtype=np.uint8), np.empty((3, len(x)), dtype)
    each_of(x, y, bits, dtype(1), out)
    error = 8 * np.finfo(dtype).eps
    exact, other = x.astype(np.float64), y.astype(np.float64)
    wanted = 1 / (exact * other - 1) - bits * np.abs(exact)
    # (Where x y is close to 1 its rounding counts.)
    np.testing.assert_allclose(out[0], wanted, rtol=error * np.abs(1 / (exact * other - 1)).max())
    np.testing.assert_array_equal(out[1], np.where(x < y, np.minimum(y, 1), np.maximum(x, y)))
    np.testing.assert_allclose(out[2], np.exp(exact), rtol=error)


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_totals_and_products_are_those_of_all_lanes(dtype):
    x = np.random.default_rng(1).uniform(0.5, 1.5, 7 * LANES).astype(dtype)
    found = sums_of(x, dtype(1))
    exact = x.astype(np.float64)
    np.testing.assert_allclose(found, (exact.sum(), exact.prod()), rtol=1e-13)


@in_turn("target", ["f1", "jaccard", "hamming", ABSENT])
@in_turn("q", [1.0, 0.5, 0.0, -1.0])
def test_labels_before_at_and_behind_the_end_of_lanes_are_all_there_is(target, q):
    """The cube, whose rows are filled up to whole lanes, as the list of all its label sets."""
    generator = np.random.default_rng(2)
    for n_labels in (LANES - 1, LANES, LANES + 1):
        scores = generator.normal(size=(3, n_labels))
        y_true = generator.integers(0, 2, scores.shape, dtype=np.uint8)
        cube = Cube(n_labels)
        found = CompSum(target, cube, q).value_and_gradient(scores, y_true)
        listed = CompSum(target, Catalog(cube.enumerate()), q).value_and_gradient(scores, y_true)
        for one, other in zip(found, listed, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * np.abs(other).max())

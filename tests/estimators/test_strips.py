"""Products of sparse rows, a strip of labels at a time, are the products."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from setwise.estimators.strips import FEWEST, LANES, product, transposed_product
from setwise.lanes import LINE_BYTES, empty_lanes
from setwise.threads import threads_limited


def drawn(seed, n, d, m, dtype, index=np.int32):
    """Sparse inputs (n, d) with empty rows and columns, and what m labels have of both."""
    random = np.random.default_rng(seed)
    dense = random.normal(size=(n, d)) * (random.random((n, d)) < random.choice([0.0, 0.2, 1.0]))
    inputs = csr_array(dense.astype(dtype))
    inputs.indices, inputs.indptr = inputs.indices.astype(index), inputs.indptr.astype(index)
    return (
        inputs,
        random.normal(size=(d, m)).astype(dtype),
        random.normal(size=(n, m)).astype(dtype),
    )


@given(
    st.integers(0), st.integers(0, 70), st.integers(1, 20), st.integers(1, 3 * LANES + 1),
    st.sampled_from([np.float32, np.float64]), st.sampled_from([np.int32, np.int64]),
)  # fmt: skip
def test_products_are_those_of_the_dense_inputs(seed, n, d, m, dtype, index):
    inputs, weights, values = drawn(seed, n, d, m, dtype, index)
    dense, rounding = inputs.toarray().astype(np.float64), 100.0 * np.finfo(dtype).eps
    for found, exact in (
        (product(inputs, weights), dense @ weights),
        (transposed_product(inputs, values), dense.T @ values),
        (product(dense.astype(dtype), weights), dense @ weights),
    ):
        assert found.dtype == dtype
        np.testing.assert_allclose(found, exact, rtol=rounding, atol=rounding)


def test_products_are_the_same_however_many_threads_there_are():
    inputs, weights, values = drawn(1, 3000, 200, 4 * LANES, np.float32)
    together = product(inputs, weights), transposed_product(inputs, values)
    with threads_limited(1):
        alone = product(inputs, weights), transposed_product(inputs, values)
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_label_has_the_same_product_whatever_stands_beside_it():
    inputs, weights, values = drawn(2, 50, 30, FEWEST + LANES, np.float64)
    few = slice(0, FEWEST)
    np.testing.assert_array_equal(
        product(inputs, weights)[:, few], product(inputs, weights[:, few])
    )
    np.testing.assert_array_equal(
        transposed_product(inputs, values)[:, few], transposed_product(inputs, values[:, few])
    )


def test_lanes_begin_a_cache_line():
    for count, dtype in ((8, np.float32), (16, np.float64), (32, np.uint8)):
        lanes = empty_lanes((3, 5), count, dtype)
        assert lanes.shape == (3, 5, count)
        assert lanes.dtype == dtype
        assert lanes.ctypes.data % LINE_BYTES == 0
        assert lanes.flags.c_contiguous

"""Sums over blocks: in an order that depends on the number of blocks only."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from setwise.blocks import Block, MemoryBlocks
from setwise.blocks.block import total
from setwise.threads import threads_limited


def by_level(terms):
    """Neighbours are added, then neighbours of these, until one is left."""
    while len(terms) > 1:
        pairs = [terms[i : i + 2] for i in range(0, len(terms), 2)]
        terms = [pair[0] if len(pair) == 1 else f"({pair[0]}+{pair[1]})" for pair in pairs]
    return terms[0]


class Word(str):
    def __add__(self, other):
        return Word(f"({self}+{other})")


@given(st.integers(1, 70))
def test_terms_are_added_level_by_level(count):
    words = [Word(number) for number in range(count)]
    assert total((word,) for word in words) == (by_level(words),)


def test_no_block_is_refused():
    with pytest.raises(ValueError, match="at least one block"):
        total([])


def column_sums(block, factor):
    return (factor * block.inputs.sum(axis=0), block.sets.sum(axis=0), float(block.weights.sum()))


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_sums_are_the_same_to_the_last_bit_with_any_number_of_threads(form):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(100, 3)) * 10.0 ** rng.integers(-8, 8, (100, 3)), np.eye(100) > 0
    blocks = MemoryBlocks.of(form(X), form(Y.astype(np.uint8)), rng.random(100), rows=3)
    found = []
    for threads in (1, 2, 5):
        with threads_limited(threads):
            found.append(blocks.sum(column_sums, 0.5))
    for other in found[1:]:
        for one, same in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, same)
    np.testing.assert_allclose(found[0][0], 0.5 * X.sum(axis=0))


def test_an_error_in_a_block_ends_the_sum():
    blocks = MemoryBlocks.of(np.zeros((9, 1)), np.eye(9, dtype=np.uint8), rows=1)

    def fails(block):
        raise ArithmeticError("in a block")

    with pytest.raises(ArithmeticError, match="in a block"):
        blocks.sum(fails)


def test_changes_are_made_to_each_block_by_its_number():
    blocks = MemoryBlocks.of(np.ones((4, 1)), np.eye(4, dtype=np.uint8), rows=1)
    changed = blocks.changed(lambda number, block: block._replace(inputs=number * block.inputs))
    assert changed.sum(lambda block: (block.inputs.sum(),)) == (6.0,)
    assert blocks.sum(lambda block: (block.inputs.sum(),)) == (4.0,)
    assert [b.tolist() for b in changed.each(lambda block: block.inputs[0])] == [[0], [1], [2], [3]]
    assert isinstance(changed.load(0), Block)


def test_inputs_are_tidied_and_taken_as_floats():
    twice = csr_array(([1.0, 0.0], [0, 1], [0, 2]), (1, 2))
    assert MemoryBlocks.of(twice, [[1, 0]]).load(0).inputs.nnz == 1
    assert MemoryBlocks.of([[1, 2]], [[1, 0]]).load(0).inputs.dtype == np.float64
    single = np.ones((1, 2), np.float32)
    assert np.shares_memory(MemoryBlocks.of(single, [[1, 0]]).load(0).inputs, single)
    with pytest.raises(ValueError, match="X must have two dimensions"):
        MemoryBlocks.of([1.0, 2.0], [[1, 0], [0, 1]])

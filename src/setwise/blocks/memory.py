"""Blocks in the memory of this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from setwise.blocks.block import BLOCK_ROWS, Block, Change, Function, LocalBlocks
from setwise.labels import read_labels
from setwise.validation import input_matrix, real_vector, same_rows, whole_number


@dataclass(frozen=True, eq=False)
class MemoryBlocks(LocalBlocks):
    """Blocks that are held in memory, summed by several threads.

    Examples
    --------
    >>> blocks = MemoryBlocks.of([[1.0], [2.0], [4.0]], [["a"], ["a", "b"], ["b"]], rows=2)
    >>> len(blocks), blocks.sum(lambda block: (block.inputs.sum(),))[0].item()
    (2, 7.0)
    """

    blocks: Sequence[Block] = field(default=(), kw_only=True)

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Any = None, rows: int = BLOCK_ROWS) -> MemoryBlocks:
        """Arrays cut into blocks of so many rows; y in any form of `setwise.labels.read_labels`."""
        inputs = input_matrix(X)
        sets, names = read_labels(y)
        same_rows(X=inputs, y=sets)
        n = sets.shape[0]
        given = np.ones(n) if sample_weight is None else sample_weight
        whole = Block(inputs, sets, real_vector(given, n, "sample_weight"))
        step = whole_number(rows, "rows", 1)
        parts = [whole.take(slice(first, first + step)) for first in range(0, n, step)]
        return cls(names, inputs.shape[1], getattr(X, "columns", None), blocks=parts)

    def __len__(self) -> int:
        return len(self.blocks)

    def load(self, number: int) -> Block:
        return self.blocks[number]

    def changed(self, change: Change) -> MemoryBlocks:
        return replace(self, blocks=[change(i, block) for i, block in enumerate(self.blocks)])


@dataclass(frozen=True, eq=False)
class Whole:
    """All rows as one block, whose products and kernels have all threads."""

    block: Block

    def sum(self, function: Function, *parameters: Any) -> tuple[Any, ...]:
        """See `Blocks`."""
        return function(self.block, *parameters)

    def each(self, function: Callable[..., Any], *parameters: Any) -> Iterator[Any]:
        """See `Blocks`."""
        yield function(self.block, *parameters)

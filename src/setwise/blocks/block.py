"""A block of rows, what many of them are asked, and the order in which terms are summed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from operator import add
from typing import Any, NamedTuple

from setwise.labels import LabelNames
from setwise.threads import small_products, thread_count, threads_limited

# Rows of a block where nobody says how many.
BLOCK_ROWS = 2**16
OWN_SETS = "blocks have their label sets and weights: fit(blocks) takes no y and no sample_weight"


class Block(NamedTuple):
    """Inputs (n, d), dense or CSR, label sets (n, l) of 0/1, dense or CSR, and weights (n,).

    Examples
    --------
    >>> import numpy as np
    >>> block = Block(np.eye(3), np.eye(3, 2, dtype=int), np.ones(3))
    >>> block.take([0, 2]).sets
    array([[1, 0],
           [0, 0]])
    """

    inputs: Any
    sets: Any
    weights: Any

    def take(self, rows: Any) -> Block:
        """Some of the rows."""
        return Block(self.inputs[rows], self.sets[rows], self.weights[rows])


Function = Callable[..., tuple[Any, ...]]
Change = Callable[[int, Block], Block]


def joined(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    """Two terms added, entry by entry."""
    return tuple(map(add, one, other))


def total(terms: Iterable[Any], joined: Callable[[Any, Any], Any] = joined) -> Any:
    """The sum of terms, entry by entry, in pairs of neighbours, pairs of pairs, and so on.

    So the rounding of a sum grows with the logarithm of the number of terms, and depends on their
    order and number only. Few partial sums are held at a time.

    Examples
    --------
    >>> total([(1, 10), (2, 20), (3, 30)])
    (6, 60)
    """
    parts: list[Any] = []
    for number, term in enumerate(terms, 1):
        parts.append(term)
        while number % 2 == 0:
            parts[-2:], number = [joined(*parts[-2:])], number // 2
    while len(parts) > 1:
        parts[-2:] = [joined(*parts[-2:])]
    if not parts:
        raise ValueError("there must be at least one block with rows, but there is none")
    return parts[0]


class Blocks(ABC):
    """Blocks of rows that have the same features and labels.

    Attributes
    ----------
    names : LabelNames
        The names of the labels.
    n_features : int
    feature_names : array of str, or None

    Examples
    --------
    >>> from setwise.blocks import MemoryBlocks
    >>> blocks = MemoryBlocks.of([[1.0], [2.0], [4.0]], [["a"], ["a", "b"], ["b"]], rows=2)
    >>> isinstance(blocks, Blocks), blocks.n_labels, blocks.n_features
    (True, 2, 1)
    """

    names: LabelNames
    n_features: int
    feature_names: Any

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return self.names.n_labels

    @abstractmethod
    def __len__(self) -> int:
        """Number of blocks."""

    @abstractmethod
    def sum(self, function: Function, *parameters: Any) -> tuple[Any, ...]:
        """The sum over all blocks of ``function(block, *parameters)``, a tuple of arrays.

        ``function`` can be pickled, does not change what it is given, and is computed by one thread
        at a time for each block; the sum is that of `total`.
        """

    @abstractmethod
    def each(self, function: Callable[..., Any], *parameters: Any) -> Iterator[Any]:
        """``function(block, *parameters)`` of every block, in order."""

    @abstractmethod
    def changed(self, change: Change) -> Blocks:
        """The same blocks with ``change(number, block)`` in place of each, which can be pickled."""


@dataclass(frozen=True, eq=False)
class LocalBlocks(Blocks, ABC):
    """Blocks that the threads of this process can load by number."""

    names: LabelNames
    n_features: int
    feature_names: Any = None

    @abstractmethod
    def load(self, number: int) -> Block:
        """A block; other threads may load others at the same time."""

    def sum(self, function: Function, *parameters: Any) -> tuple[Any, ...]:
        with small_products(0.0):
            return total(self.each(function, *parameters))

    def each(self, function: Callable[..., Any], *parameters: Any) -> Iterator[Any]:
        def of(number: int) -> Any:
            with threads_limited(1):
                return function(self.load(number), *parameters)

        threads = min(thread_count(), len(self))
        if threads < 2:
            yield from map(of, range(len(self)))
            return
        with ThreadPoolExecutor(threads, thread_name_prefix="setwise blocks") as pool:
            ahead: deque[Future[Any]] = deque()
            try:
                for number in range(len(self)):
                    # One more than can be computed at a time, so that no thread waits.
                    if len(ahead) > threads:
                        yield ahead.popleft().result()
                    ahead.append(pool.submit(of, number))
                while ahead:
                    yield ahead.popleft().result()
            finally:
                for later in ahead:
                    later.cancel()

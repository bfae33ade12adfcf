"""Blocks of rows that the workers of a Dask cluster hold."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from setwise import __version__
from setwise.blocks import Block, Blocks
from setwise.blocks.block import OWN_SETS, Change, Function, joined, total
from setwise.labels import LabelNames
from setwise.sparse import tidy_sets
from setwise.threads import threads_limited
from setwise.validation import input_matrix

MISSING = "a Dask cluster needs dask and distributed: pip install 'setwise[dask]'"
# Seconds without any worker after which a computation is given up, and between two looks.
PATIENCE, BETWEEN = 60.0, 2.0
# A sum is asked for again so often where what it needs was lost with workers.
RETRIES = 10


def distributed() -> Any:
    """The module, or one sentence that says how to get it."""
    try:
        import dask
        import distributed
    except ImportError as error:
        raise ImportError(MISSING) from error
    assert dask
    return distributed


def is_collection(given: Any) -> bool:
    """Whether it is computed by Dask."""
    return hasattr(given, "__dask_graph__")


@dataclass(frozen=True, eq=False)
class DaskBlocks(Blocks):
    """Blocks on a cluster: tasks that give them, and what is made of each before it is summed.

    ``sources`` are Dask's delayed blocks. They are computed once and kept by the workers; one that
    is lost is computed again from its source.
    """

    names: LabelNames
    n_features: int
    feature_names: Any
    client: Any
    sources: list[Any]
    held: list[Any] = field(default_factory=list)

    @classmethod
    def of(
        cls, client: Any, X: Any, y: Any = None, sample_weight: Any = None, label_names: Any = None
    ) -> DaskBlocks:
        """Blocks of what Dask has.

        Parameters
        ----------
        client : Client, optional
            By default the one there is.
        X : Dask array or data frame, or list of delayed (X, Y) or (X, Y, weights)
        y : Dask array or data frame of 0/1 columns, in the same chunks of rows
        sample_weight : Dask array of shape (n,), optional
        label_names : sequence, optional
            By default the columns of a data frame, else numbers from 0.
        """
        distributed()
        from dask.delayed import delayed

        client = client_of(client)
        pairs = rows_in_parts(X, y, sample_weight)
        block: Any = delayed(_block)
        sources = [block(pair, number) for number, pair in enumerate(pairs)]
        features = getattr(X, "columns", None)
        features = None if features is None else [str(name) for name in features]
        found = cls(LabelNames([0]), 0, features, client, sources, client.persist(sources))
        shape: Any = delayed(_shape)
        n_features, n_labels = found._result(lambda: client.compute(shape(found.held[0])))
        own = getattr(y, "columns", None) if label_names is None else label_names
        names = LabelNames(np.arange(n_labels) if own is None else list(own))
        return replace(found, names=names, n_features=n_features)

    def __len__(self) -> int:
        return len(self.sources)

    def changed(self, change: Change) -> DaskBlocks:
        from dask.delayed import delayed

        made: Any = delayed(_changed)
        sources = [made(block, change, number) for number, block in enumerate(self.sources)]
        held = [made(block, change, number) for number, block in enumerate(self.held)]
        return replace(self, sources=sources, held=self.client.persist(held))

    def sum(self, function: Function, *parameters: Any) -> tuple[Any, ...]:
        together = partial(self.client.submit, joined, pure=False)
        return self._result(lambda: total(self._terms(function, parameters), together))

    def each(self, function: Callable[..., Any], *parameters: Any) -> Iterator[Any]:
        yield from self._result(lambda: self._terms(function, parameters))

    def _terms(self, function: Any, parameters: tuple[Any, ...]) -> list[Any]:
        """The function of each block, to be computed where the block is."""
        # (As a task, which is computed again where it is lost. What is scattered is lost with its
        # worker, and a broadcast waits for workers that have died.)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            sent = self.client.submit(_itself, (function, parameters), pure=False)
        blocks = self.client.compute(self.held)
        return self.client.map(_term, blocks, sent=sent, pure=False)

    def _result(self, asked: Callable[[], Any]) -> Any:
        """What is asked for; once more, where what it needs was lost with workers."""
        lost = distributed().scheduler.KilledWorker, distributed().client.FutureCancelledError
        for attempt in range(RETRIES + 1):
            try:
                return result_of(self.client, asked())
            except lost as error:
                if attempt == RETRIES:
                    raise RuntimeError(
                        f"the workers of the cluster were lost {RETRIES + 1} times over the same "
                        f"computation: do blocks fit into the memory of a worker?"
                    ) from error
                wait_for_workers(self.client)
                self.held[:] = self._anew()
        raise AssertionError

    def _anew(self) -> list[Any]:
        """The blocks, computed again from their sources as other tasks."""
        from dask.delayed import delayed

        copied: Any = delayed(_itself, pure=False)
        return self.client.persist([copied(source) for source in self.sources])


def result_of(client: Any, asked: Any) -> Any:
    """The value of a future, or of a list of them, as long as there is a cluster to compute it."""
    futures = asked if isinstance(asked, list) else [asked]
    seen = time.monotonic()
    while True:
        try:
            distributed().wait(futures, timeout=BETWEEN)
            break
        except TimeoutError:
            if client.nthreads():
                seen = time.monotonic()
            elif time.monotonic() - seen > PATIENCE:
                wait_for_workers(client)
    found = client.gather(futures)
    return found if isinstance(asked, list) else found[0]


def wait_for_workers(client: Any) -> None:
    """Raise if there are none, and none comes."""
    end = time.monotonic() + PATIENCE
    while not client.nthreads():
        if time.monotonic() > end:
            raise RuntimeError(
                f"the Dask cluster {client.scheduler.address} has had no worker for "
                f"{PATIENCE:g} s; start some, then fit again"
            )
        time.sleep(min(BETWEEN, PATIENCE))


def client_of(client: Any) -> Any:
    """The client, or the one there is; its workers must be there, and have this package."""
    if client is None:
        try:
            client = distributed().get_client()
        except ValueError as error:
            raise ValueError(
                "there is no Dask client: make one (distributed.Client(...)) or name it "
                "(client=...)"
            ) from error
    wait_for_workers(client)
    refuse_lacking(client, "setwise", __version__)
    return client


def refuse_lacking(client: Any, module: str, version: str) -> None:
    """Raise if a worker has not this version of a module."""

    def version_there() -> str | None:
        # (Sent by value: a worker may not have the module that this stands in.)
        from importlib import import_module

        try:
            return import_module(module).__version__
        except ImportError:
            return None

    # (A worker that is lost meanwhile says nothing.)
    told = client.run(version_there, on_error="ignore").values()
    other = {found for found in told if found != version}
    if other:
        named = ", ".join(sorted(map(str, other)))
        what = f"lack {module}" if None in other else f"have {module} {named}"
        raise RuntimeError(
            f"workers of the Dask cluster {what}; install {module} {version} on each of them"
        )


def blocks_given(client: Any, X: Any, y: Any, sample_weight: Any) -> Blocks:
    """The blocks of what a fit is given, which may be blocks already."""
    if not isinstance(X, Blocks):
        return DaskBlocks.of(client, X, y, sample_weight)
    if y is not None or sample_weight is not None:
        raise ValueError(OWN_SETS)
    return X


def rows_in_parts(X: Any, y: Any, sample_weight: Any) -> list[Any]:
    """Delayed (X, Y, weights) of each part of the rows."""
    if isinstance(X, list | tuple):
        if y is not None or sample_weight is not None or not X:
            raise ValueError(
                "a list of delayed blocks has (X, Y) or (X, Y, weights) in each, and at least one; "
                "it takes no y and no sample_weight"
            )
        return list(X)
    parts = [parts_of(X, "X"), parts_of(y, "y")]
    if sample_weight is not None:
        parts.append(parts_of(sample_weight, "sample_weight"))
    sizes = [len(part) for part in parts]
    if len(set(sizes)) > 1:
        raise ValueError(
            f"X, y and sample_weight must be in the same chunks of rows, but they have "
            f"{', '.join(map(str, sizes))}"
        )
    return [tuple(part) for part in zip(*parts, strict=True)]


def parts_of(collection: Any, name: str) -> list[Any]:
    """The delayed chunks of rows of a Dask array or data frame."""
    if not is_collection(collection) or not hasattr(collection, "to_delayed"):
        raise ValueError(
            f"{name} must be a Dask array or data frame, or X a list of delayed (X, Y) blocks, "
            f"but it is a {type(collection).__name__}"
        )
    if hasattr(collection, "rechunk") and collection.ndim == 2:
        collection = collection.rechunk({1: -1})
    return np.ravel(np.asarray(collection.to_delayed(), dtype=object)).tolist()


# --------------------------------------------------------------------------- what workers compute


def _block(pair: Any, number: int) -> Block:
    """A block of what a task gives: inputs in CSR or floats, label sets in CSR."""
    try:
        X, Y, *rest = (part if issparse(part) else np.asarray(part) for part in pair)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"block {number} must be (X, Y) or (X, Y, weights), not a {type(pair).__name__}"
        ) from error
    try:
        if Y.ndim != 2:
            raise ValueError(f"Y must have two dimensions, but its shape is {Y.shape}")
        inputs = input_matrix(X)
        sets = tidy_sets(csr_array(Y) if not issparse(Y) else Y, "Y").astype(np.uint8)
    except (TypeError, ValueError) as error:
        raise ValueError(f"block {number}: {error}") from error
    weights = np.asarray(rest[0], np.float64).ravel() if rest else np.ones(sets.shape[0])
    return Block(inputs, sets, weights)


def _shape(block: Block) -> tuple[int, int]:
    """Features and labels of a block."""
    return block.inputs.shape[1], block.sets.shape[1]


def _term(block: Block, sent: tuple[Any, tuple[Any, ...]]) -> Any:
    """What a block adds, by one thread, so that rounding is the same everywhere."""
    function, parameters = sent
    with threads_limited(1):
        return function(_plain_block(block), *map(_plain, parameters))


def _changed(block: Block, change: Change, number: int) -> Any:
    """What becomes of a block."""
    with threads_limited(1):
        return change(number, _plain_block(block))


def _plain_block(block: Any) -> Any:
    return Block(*map(_plain, block)) if isinstance(block, Block) else block


def _plain(array: Any) -> Any:
    """The array in C order where the processor likes it; what comes by a network may be elsewhere.

    (NumPy multiplies arrays that lie anywhere by other code, which rounds otherwise.)
    """
    if issparse(array):
        parts = (_plain(part) for part in (array.data, array.indices, array.indptr))
        return csr_array(tuple(parts), array.shape)
    return np.require(array, requirements=["C", "A"]) if isinstance(array, np.ndarray) else array


def _itself(given: Any) -> Any:
    return given

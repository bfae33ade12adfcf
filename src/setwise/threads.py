"""Rows shared among threads.

Kernels release the interpreter lock and work on a range of rows, so a plain pool of threads runs
them side by side. (The compiler's own parallel loops are not used: they cannot be entered from two
Python threads at once, nor after a fork.) The number of threads is that of the processors this
process may use, by its affinity and the quota of its control group, or OMP_NUM_THREADS where that
is set, unless `threads_limited` says less.

The threads of matrix products wait for each other at the end of every product. Where products are
small and processors busy with something else, they wait most of the time: `small_products` keeps
such products on one thread.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from threading import current_thread, main_thread
from time import thread_time
from typing import Any

_CHUNKS_PER_THREAD = 8
# Seconds of work from which on it is shared: on busy processors, to wake another thread takes more.
WORTH_SHARING = 0.003
# Products of fewer multiplications, a hundredth of a second or so on one thread, are small.
SMALL_PRODUCT = 2**26
_pool: ThreadPoolExecutor | None = None
_most: ContextVar[int | None] = ContextVar("most threads", default=None)


@contextmanager
def threads_limited(most: int) -> Iterator[None]:
    """Use at most ``most`` threads for whatever the calling thread does inside the block."""
    before = _most.set(most)
    try:
        yield
    finally:
        _most.reset(before)


def thread_count() -> int:
    """How many threads share the rows of a batch."""
    most = _most.get()
    return _usable_threads() if most is None else min(most, _usable_threads())


def _usable_threads() -> int:
    limit = os.environ.get("OMP_NUM_THREADS", "")
    if limit.isdigit() and int(limit) > 0:
        return int(limit)
    usable = _quota()
    return min(len(os.sched_getaffinity(0)), usable) if hasattr(os, "sched_getaffinity") else usable


@cache
def _quota() -> int:
    """The processors that affinity and the control group leave to this process, read once."""
    from joblib import cpu_count

    return cpu_count()


@contextmanager
def small_products(multiplications: float) -> Iterator[None]:
    """Matrix products of so many multiplications inside the block; small ones on one thread.

    The limit holds for the whole process. It is set in the main thread alone: OpenBLAS does not
    hear of it elsewhere, and two threads that set and lift it in turns would leave it behind.
    """
    is_small = multiplications < SMALL_PRODUCT
    if not (is_small and current_thread() is main_thread()):
        yield
        return
    with _libraries().limit(limits=1, user_api="blas"):
        yield


@cache
def _libraries() -> Any:
    """The linear algebra that is loaded; looking for it takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _forget_pool() -> None:
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    # A child process inherits the pool's bookkeeping but none of its threads.
    os.register_at_fork(after_in_child=_forget_pool)


def for_rows(kernel, n_rows: int, *arguments, least: int = 64, room: Any = tuple) -> None:
    """Call ``kernel(start, stop, *arguments, *room())`` on ranges that cover ``range(n_rows)``.

    ``room`` makes the arrays that a range works in. (A kernel that made them itself would count
    references to all arrays, which takes twice as long to compile.)
    Ranges have at least ``least`` rows; a batch too small to share runs in the calling thread.
    So does one whose first range tells that the others take less than `WORTH_SHARING` of a
    processor's time.
    The calling thread works too. Each thread takes the next range when it is free, so a busy
    processor does not delay the others. The ranges depend on nothing that is measured.
    """
    global _pool
    if n_rows == 0:
        return
    chunks = n_rows // least
    # (The number of threads is asked for only where it matters: that takes longer than a row.)
    threads = thread_count() if chunks > 1 else 1
    chunks = min(threads * _CHUNKS_PER_THREAD, chunks)
    if threads == 1:
        kernel(0, n_rows, *arguments, *room())
        return
    turns = iter(range(chunks))

    def work() -> None:
        for part in turns:
            ends = n_rows * part // chunks, n_rows * (part + 1) // chunks
            kernel(*ends, *arguments, *room())

    began = thread_time()
    kernel(0, n_rows * (next(turns) + 1) // chunks, *arguments, *room())
    if (thread_time() - began) * (chunks - 1) < WORTH_SHARING:
        work()
        return
    if _pool is None:
        _pool = ThreadPoolExecutor(max_workers=threads - 1, thread_name_prefix="setwise")
    helpers = [_pool.submit(work) for _ in range(threads - 1)]
    work()
    for helper in helpers:
        helper.cancel()
        if not helper.cancelled():
            helper.result()

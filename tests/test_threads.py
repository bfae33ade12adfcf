"""How many threads there are, and how many matrix products take."""

import os
import threading
from itertools import pairwise

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from setwise import SetClassifierCV, threads


def product_threads():
    """What the linear algebra that is loaded is allowed."""
    np.ones((2, 2)) @ np.ones((2, 2))
    return {
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    }


@pytest.fixture
def two_product_threads():
    """Linear algebra with two threads, on any machine."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(2, user_api="blas"):
        if product_threads() != {2}:
            pytest.skip("this linear algebra has no threads")
        yield


def test_small_products_take_one_thread_and_large_ones_all(two_product_threads):
    with threads.small_products(threads.SMALL_PRODUCT - 1):
        assert product_threads() == {1}
    assert product_threads() == {2}
    with threads.small_products(threads.SMALL_PRODUCT):
        assert product_threads() == {2}


def test_a_factorisation_takes_one_thread(two_product_threads, monkeypatch):
    """On processors that are busy, two take ten times as long as one."""
    taken, factorised = [], np.linalg.eigh

    def eigh(symmetric):
        taken.append(product_threads())
        return factorised(symmetric)

    monkeypatch.setattr(np.linalg, "eigh", eigh)
    rng = np.random.default_rng(0)
    for shape in ((30, 4), (30, 60)):
        X, Y = rng.normal(size=shape), rng.integers(0, 2, (30, 3))
        SetClassifierCV("f1", alphas=[0.1], cv=2).fit(X, Y)
    assert len(taken) >= 2
    assert all(own == {1} for own in taken)
    assert product_threads() == {2}


def test_another_thread_sets_no_limit_and_lifts_none(two_product_threads):
    def other():
        with threads.small_products(1):
            pass

    worker = threading.Thread(target=other)
    with threads.small_products(1):
        with threads.small_products(1):
            worker.start()
            worker.join()
        assert product_threads() == {1}
    assert product_threads() == {2}


def test_an_error_inside_ends_the_limit(two_product_threads):
    with pytest.raises(KeyError), threads.small_products(1):
        raise KeyError
    assert product_threads() == {2}


@pytest.mark.parametrize("least_shared", [0.0, np.inf])
def test_ranges_are_the_same_whether_they_are_worth_sharing_or_not(least_shared, monkeypatch):
    """Sums over them have then the same bits on a busy machine."""
    monkeypatch.setattr(threads, "_usable_threads", lambda: 2)
    monkeypatch.setattr(threads, "WORTH_SHARING", least_shared)
    taken, workers, met, both = [], [], set(), threading.Barrier(2)

    def work(start, stop):
        taken.append((start, stop))
        workers.append(threading.get_ident())
        # (Behind the first range two share the rest: each waits once for the other.)
        if start > 0 and least_shared == 0.0 and threading.get_ident() not in met:
            met.add(threading.get_ident())
            both.wait(timeout=60)

    threads.for_rows(work, 1_000)
    ends = [1_000 * part // 15 for part in range(16)]
    assert sorted(taken) == list(pairwise(ends))
    assert workers[0] == threading.get_ident()
    assert len(set(workers)) == (2 if least_shared == 0.0 else 1)


def test_threads_are_no_more_than_the_quota(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(threads, "_quota", lambda: 1)
    assert threads.thread_count() == 1
    monkeypatch.setattr(threads, "_quota", lambda: 10**6)
    if hasattr(os, "sched_getaffinity"):
        assert threads.thread_count() == len(os.sched_getaffinity(0))

"""How many threads there are, and how many matrix products take."""

import os
import threading

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


def test_threads_are_no_more_than_the_quota(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(threads, "_quota", lambda: 1)
    assert threads.thread_count() == 1
    monkeypatch.setattr(threads, "_quota", lambda: 10**6)
    if hasattr(os, "sched_getaffinity"):
        assert threads.thread_count() == len(os.sched_getaffinity(0))

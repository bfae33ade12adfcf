"""Laws of the vectorised elementary functions and of the threads that share rows."""

import multiprocessing
import threading

import numba
import numpy as np
import pytest

from setwise.kernels import exp, inner, kernel, log1p_unit
from setwise.threads import for_rows


@kernel
def exp_of(x, out):
    for i in range(len(x)):
        out[i] = exp(x[i])


@kernel
def log1p_of(x, out):
    for i in range(len(x)):
        out[i] = log1p_unit(x[i])


@inner
def twice(x):
    return 2 * x


@inner
def twice_twice(x):
    return twice(twice(x))


def one_more(x):
    return twice_twice(x) + twice(x) + 1


@kernel
def mark(start, stop, out):
    for i in range(start, stop):
        out[i] += 1


@pytest.mark.parametrize(
    ("dtype", "low", "high", "error"), [(np.float64, -700, 700, 4e-16), (np.float32, -86, 87, 2e-7)]
)
def test_exp_is_accurate_to_rounding(dtype, low, high, error):
    x = np.random.default_rng(0).uniform(low, high, 100_000).astype(dtype)
    out = np.empty_like(x)
    exp_of(x, out)
    exact = np.exp(x.astype(np.longdouble))
    assert np.abs(out / exact - 1).max() < error


def test_log1p_is_accurate_to_rounding_near_zero_and_one():
    x = np.concatenate([np.linspace(0, 1, 10_001)[1:], np.logspace(-300, 0, 1_000)])
    out = np.empty_like(x)
    log1p_of(x, out)
    assert np.abs(out / np.log1p(x) - 1).max() < 5e-16


@pytest.mark.parametrize("n_rows", [0, 1, 63, 64, 129, 1_000, 10_007])
def test_every_row_is_visited_once(n_rows):
    out = np.zeros(n_rows, dtype=np.int64)
    for_rows(mark, n_rows, out)
    assert (out == 1).all()


def test_threads_of_the_caller_do_not_disturb_each_other():
    arrays = [np.zeros(20_000, dtype=np.int64) for _ in range(8)]
    threads = [threading.Thread(target=for_rows, args=(mark, 20_000, a)) for a in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((a == 1).all() for a in arrays)


def test_an_error_in_a_kernel_reaches_the_caller():
    def fail(start, stop):
        raise RuntimeError(f"rows {start} to {stop}")

    with pytest.raises(RuntimeError, match="rows"):
        for_rows(fail, 1_000)


def _visit(queue):
    out = np.zeros(20_000, dtype=np.int64)
    for_rows(mark, 20_000, out)
    queue.put(int(out.sum()))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_makes_its_own_threads():
    _visit(multiprocessing.get_context("fork").SimpleQueue())
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=_visit, args=(queue,))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert queue.get() == 20_000


def test_parts_of_kernels_are_compiled_into_them_and_nowhere_else():
    # Not a kernel, which would be read from the disk: so it is compiled here.
    compiled = numba.njit(one_more)
    assert compiled(3) == 19
    assert compiled(0.5) == 4.0
    assert len(twice.overloads) == len(twice_twice.overloads) == 2
    for made in (*twice.overloads.values(), *twice_twice.overloads.values()):
        assert not made.library.codegen._engine.is_symbol_defined(made.fndesc.llvm_func_name)

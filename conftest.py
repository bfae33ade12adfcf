"""How test runs share the processors; what is collected, and in which order it is run.

The examples in docstrings of `setwise.nn` run where PyTorch is installed.
"""

import gc
import os
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec

import pytest

# Test processes share the processors. Threads of matrix products and trees that wait for each other
# sleep then: by default they spin, which takes longer than what they compute. (Read at imports.)
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
# Workers of a Dask cluster are forked from one process that has imported what they need.
os.environ.setdefault("DASK_DISTRIBUTED__WORKER__MULTIPROCESSING_METHOD", "forkserver")

collect_ignore_glob = [] if find_spec("torch") else ["src/setwise/nn/*"]

# What all tests together import; in a new environment nothing of it is compiled yet.
IMPORTED = ("torch", "dask.dataframe", "distributed", "pandas", "sklearn.ensemble", "scipy.stats")


def pytest_configure(config):
    """Workers that collect everything import the same modules, each beginning at another end.

    Else they would compile the same module at the same moment, one after the other, all of them.
    """
    number = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
    if number and {"src", "tests"} <= set(config.args):
        for name in IMPORTED[:: -1 if int(number) % 2 else 1]:
            with suppress(ImportError):
                import_module(name)


def pytest_collection_modifyitems(items):
    """Each worker begins with its share of the examples in docstrings.

    These need nearly every kernel once: so each is compiled by one worker, and not by all at the
    same moment. (The tests of a worker are one piece of the list, until it takes over others'.)
    """
    n_workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    examples = [item for item in items if isinstance(item, pytest.DoctestItem)]
    tests = [item for item in items if not isinstance(item, pytest.DoctestItem)]
    items[:] = [
        item
        for worker in range(n_workers)
        for kind in (examples, tests)
        for item in kind[len(kind) * worker // n_workers : len(kind) * (worker + 1) // n_workers]
    ]


def pytest_collection(session):
    """Nothing of what is imported and collected is garbage."""
    # (What only hands tests to workers collects nothing, and is not told of an end.)
    if not session.config.pluginmanager.has_plugin("dsession"):
        gc.disable()


def pytest_collection_finish():
    """What tests make is looked through, but not what was there before them."""
    gc.freeze()
    gc.enable()

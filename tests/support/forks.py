"""Processes that begin with everything loaded: forked from one that has imported the package."""

import multiprocessing
import os
import sys
import time
from contextlib import chdir, contextmanager
from unittest.mock import patch

from joblib.externals.loky import backend as loky

LOADED = [
    "setwise.report", "setwise.study", "setwise.cli", "setwise.cli.tables",
    "tests.support.slow_study",
]  # fmt: skip


def server():
    """What processes are forked by; where none can be, they begin by themselves."""
    if not hasattr(os, "fork"):
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(LOADED)
    return context


@contextmanager
def forked_workers():
    """Workers of joblib begin so too; by themselves each imports everything."""
    server()
    loky.context.set_start_method("forkserver", force=True)
    try:
        with patch("multiprocessing.reduction.dump", loky.reduction.dump):
            yield
    finally:
        loky.context.set_start_method(None, force=True)


def begin(act, *arguments):
    """A process that does something; it is ended by a signal, or ends itself."""
    context = server()
    process = context.Process(target=act, args=arguments)
    process.start()
    return process


def command(folder, words, output=None, errors=None):
    """`setwise` with these words in a folder, its output and complaints in files or pipes."""
    from setwise.cli import main

    with chdir(folder):
        for descriptor, path in ((1, output), (2, errors)):
            os.dup2(os.open(path or os.devnull, os.O_WRONLY | os.O_CREAT), descriptor)
        status = main([str(word) for word in words])
    sys.stdout.flush()
    os._exit(status)


def without_output(folder, words, errors):
    """The same as Python begins where the standard output is closed."""
    from setwise.cli import main

    with chdir(folder):
        os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT), 2)
        os.close(1)
        sys.stdout = sys.__stdout__ = None
        os._exit(main([str(word) for word in words]))


def read_study(folder, out):
    """How many outcomes a study has, told in a file."""
    from setwise.study import load

    out.write_text(str(len(load(folder).outcomes)))


def wait_for(condition, process):
    """Until something is so, or the process has ended."""
    while not condition() and process.exitcode is None:
        time.sleep(0.002)

"""`setwise compile`: kernels compiled and kept now, so that first calls need not wait for them."""

from __future__ import annotations

import time

from setwise.cli.options import command, echo, say


@command()
def compile(*, json: bool = False) -> None:
    r"""Compile now what first calls would have to wait for.

    setwise compiles its inner loops when they are first used, and keeps the machine code in a
    folder (`setwise doctor` says where). Run this once where the first call must not take seconds
    and nothing was compiled at installation, for instance while a container image is built. It
    takes a minute or so. Rarer calls may still have something to compile.

    \b
    Examples:
      setwise compile
      NUMBA_CACHE_DIR=/opt/setwise setwise compile

    Exit status: 0 success; 2 the code cannot be kept; 130 interrupted.
    """
    from setwise.first_calls import compile_all
    from setwise.kernel_cache import writable_folder

    began = time.perf_counter()
    folder = writable_folder()
    compile_all(
        lambda told: echo(f"setwise: {time.perf_counter() - began:.0f} s: {told}", err=True)
    )
    seconds = time.perf_counter() - began
    told = {"folder": str(folder), "seconds": round(seconds, 1)}
    say(json, told, f"compiled in {seconds:.0f} s; kept in {folder}")

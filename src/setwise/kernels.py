"""Exponential and logarithm that compiled loops can vectorise.

The compiler turns a loop over labels into SIMD instructions only if everything in its body is
arithmetic. The C library's ``exp`` and ``log1p`` are calls, so they are written here as a range
reduction and a polynomial, in the precision of their argument (float32 or float64).

Every kernel of the package is compiled through `kernel`: once, cached on disk, without the global
interpreter lock, with division as in C (no check for zero) and sums that may be reassociated.
Infinities and NaN keep their meaning in it (``nnan`` and ``ninf`` are not set), except in `exp`.
"""

# pyright: reportCallIssue=false
# (Intrinsics are called without the context their definitions name first.)

import math
from functools import partial
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba import types

from setwise.kernel_cache import cached
from setwise.kernel_parts import Kernel, Part
from setwise.lanes import constant, intrinsic, like

# Without an entry for callers in C, of which there are none.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "no_cfunc_wrapper": True}


def _compiler(fastmath: set[str], **options):
    """A decorator that compiles a kernel when it is first called, and keeps it on disk."""
    entered: dict[str, Any] = {"nogil": True, "pipeline_class": Kernel, **_OPTIONS, **options}
    compiled = numba.njit(fastmath=fastmath, **entered)
    return lambda function: cached(compiled(function))


_REORDERED = {"reassoc", "contract", "nsz", "arcp"}
kernel = _compiler(_REORDERED)
# Without counting references: for kernels that allocate nothing and make many short views, which
# would cost more to count than to use.
view_kernel = _compiler(_REORDERED, _nrt=False)

# For what only kernels call: it has no entry for Python, which may take as long to compile. (Unlike
# what the compiler calls jitable, it is compiled once, whether a kernel calls it or a part of one.)
_PART: dict[str, Any] = {"no_cpython_wrapper": True, "pipeline_class": Part, **_OPTIONS}
inner = numba.njit(fastmath=_REORDERED, **_PART)
_VIEW: dict[str, Any] = {"fastmath": _REORDERED, "_nrt": False, **_PART}
view_inner = numba.njit(**_VIEW, **{"forceinline": False})
# The same, always taken over by its caller: for a part with many arrays, which to hand over would
# cost more than the arithmetic of a row. (Parts that it calls are taken over too, unless they say
# otherwise.)
embedded = numba.njit(**_VIEW, **{"forceinline": True})


class _Reduction(NamedTuple):
    """How e^x is computed in a precision: as 2^k e^r with a polynomial for e^r.

    log 2 is in two parts: the first has trailing zero bits, so that k times it is exact. The
    polynomial is 1 + r + r^2 times the one that meets (e^r - 1 - r) / r^2 at Chebyshev nodes.
    """

    bound: float
    log2_high: float
    log2_low: float
    coefficients: tuple[float, ...]
    # Bits of the number, and of its fraction.
    bits: int
    fraction: int


_DOUBLE = _Reduction(
    708.0, 6.93147180369123816490e-01, 1.90821492927058770002e-10,
    (2.5100375832561234e-08, 2.7620075879983367e-07, 2.7557268480310024e-06,
     2.4801521322368692e-05, 1.9841269863040545e-04, 1.3888888917196719e-03,
     8.333333333330065e-03, 0.041666666666624164, 0.16666666666666669, 0.5, 1.0, 1.0), 64, 52,
)  # fmt: skip
_SINGLE = _Reduction(
    87.0, 0.693359375, -2.12194440054690580e-4,
    (0.0013926176, 0.008363173, 0.041666556, 0.16666578, 0.5, 1.0, 1.0), 32, 23,
)  # fmt: skip


@intrinsic
def exp(_context, x):
    """e**x in the precision of x, for x in [-708, 708] (float32: [-87, 87]); a number or lanes.

    Arguments outside count as the nearer end, and NaN as the lower one.
    Relative error below 3e-16 (float64) and 1.5e-7 (float32). Only for compiled code.

    (Written in the compiler's own instructions: as a function in Python each of its sums would be
    inferred and translated anew for every kernel, for longer than a small kernel takes.)
    """
    way = _SINGLE if getattr(x, "dtype", x) == types.float32 else _DOUBLE

    def code(context, builder, signature, arguments):
        # The range reduction is exact only in the order it is written in, so its sums may not be
        # reassociated.
        plus, minus, times = (
            partial(operation, flags=("contract", "nsz"))
            for operation in (builder.fadd, builder.fsub, builder.fmul)
        )
        number = partial(constant, arguments[0].type)
        bounded = _chosen(builder, ">", arguments[0], number(-way.bound))
        bounded = _chosen(builder, "<", bounded, number(way.bound))
        # Beside such a number there is room for whole numbers alone: to add it is to round.
        room = number(1.5 * 2.0**way.fraction)
        rounded = plus(times(bounded, number(1.0 / math.log(2.0))), room)
        k = minus(rounded, room)
        rest = minus(bounded, times(k, number(way.log2_high)))
        rest = minus(rest, times(k, number(way.log2_low)))
        value = number(way.coefficients[0])
        for coefficient in way.coefficients[1:]:
            value = plus(times(value, rest), number(coefficient))
        # k stands in the last bits of what was rounded, and is added to the exponent.
        kind = like(value.type, ir.IntType(way.bits))
        bits, whole = (builder.bitcast(one, kind) for one in (value, rounded))
        moved = builder.add(bits, builder.shl(whole, constant(kind, way.fraction)))
        return builder.bitcast(moved, value.type)

    return x(x), code


def _chosen(builder, comparison, x, y):
    """The one of two that compares so with the other; y if x is not a number."""
    return builder.select(builder.fcmp_ordered(comparison, x, y), x, y)


@kernel
def sum_rows(start, stop, array, sums):
    """The sum of each row in float64: not finite if an entry is not."""
    for row in range(start, stop):
        entries = array[row]
        total = 0.0
        for j in range(len(entries)):
            total += np.float64(entries[j])
        sums[row] = total


@inner
def log1p_unit(x):
    """log(1 + x) for 0 <= x <= 1, by 2 artanh(x / (2 + x)); relative error below 4e-16.

    artanh(s) / s is the polynomial in s^2 that meets it at the Chebyshev nodes of [0, 1/9].
    """
    s = x / (2.0 + x)
    u = s * s
    t = 0.08522081781390699
    t = t * u + 0.0416225325593041
    t = t * u + 0.06055084364034609
    t = t * u + 0.06650187016337313
    t = t * u + 0.07693307021152004
    t = t * u + 0.09090870416252403
    t = t * u + 0.11111112040373837
    t = t * u + 0.14285714272727057
    t = t * u + 0.20000000000092874
    t = t * u + 0.33333333333333076
    t = t * u + 1.0
    return 2.0 * s * t


@inner
def copy_into(target, source):
    """target[:] = source, of one length.

    (As a loop: the compiler's own assignment of arrays takes seconds to compile, for the message
    with which it refuses different shapes.)
    """
    for j in range(len(target)):
        target[j] = source[j]


# e^_LEAST is nothing beside 1.
_LEAST = -700.0


@inner
def log_plus(a, b):
    """log(e^a + e^b) for finite numbers or -inf; both -inf give -inf, never NaN."""
    high = a if a > b else b
    low = b if a > b else a
    gap = low - high
    # Not a number if both are -inf; the comparison then fails too, and -inf plus nothing is left.
    gap = gap if gap > _LEAST else _LEAST
    return high + log1p_unit(exp(gap))

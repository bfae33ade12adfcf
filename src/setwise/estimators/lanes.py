"""Labels that a kernel takes through the inputs side by side, as one SIMD value.

Labels stand in strips of `LANES`: an array (labels, d) becomes (strips, d, LANES). A row of a strip
is held in registers as `Lanes`: a sum over the entries of a sparse row then goes through memory
once, and not at every entry. Products of CSR inputs are 1.5 to 2.2 times as fast as by the loops
that the compiler vectorises itself. What lanes without a label hold does not matter, as long as it
is finite. Only for compiled code, and for rows that exist: nothing is checked.
"""

# pyright: reportCallIssue=false
# (Intrinsics are called without the context their definitions name first.)

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.datamodel import models
from numba.extending import intrinsic, register_model
from numpy.typing import NDArray

from setwise.kernels import kernel
from setwise.threads import for_rows

Array = NDArray[Any]

LANES = 32
# Rows of float32 lanes are whole cache lines, if the first one begins one.
_LINE_BYTES = 64


class Lanes(types.Type):
    """The type of `LANES` numbers of one type."""

    def __init__(self, dtype):
        self.dtype = dtype
        super().__init__(f"Lanes({dtype})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, lanes):
        number = manager.lookup(lanes.dtype).get_value_type()
        super().__init__(manager, lanes, ir.VectorType(number, LANES))


def _pointer(context, builder, signature, arguments):
    """Where the row (second argument) of a contiguous array (first argument) begins."""
    (array_type, row_type), (array, row) = signature.args[:2], arguments[:2]
    memory = context.make_array(array_type)(context, builder, array).data
    row = context.cast(builder, row, row_type, types.intp)
    first = builder.gep(memory, [builder.mul(row, row.type(LANES))])
    return builder.bitcast(first, context.get_value_type(Lanes(array_type.dtype)).as_pointer())


def _factor(context, builder, given, number, lanes):
    """A factor as a vector: lanes as they are, a number in every lane."""
    if isinstance(given, Lanes):
        return number
    kind = context.get_value_type(lanes)
    number = context.cast(builder, number, given, lanes.dtype)
    single = builder.insert_element(kind(ir.Undefined), number, ir.IntType(32)(0))
    everywhere = ir.VectorType(ir.IntType(32), LANES)([0] * LANES)
    return builder.shuffle_vector(single, kind(ir.Undefined), everywhere)


@intrinsic
def load(_context, array, row):
    """The row of an array (rows, LANES)."""

    def codegen(context, builder, signature, arguments):
        pointer = _pointer(context, builder, signature, arguments)
        return builder.load(pointer, align=array.dtype.bitwidth // 8)

    return Lanes(array.dtype)(array, row), codegen


@intrinsic
def store(_context, array, row, lanes):
    """Puts lanes into the row of an array (rows, LANES)."""

    def codegen(context, builder, signature, arguments):
        pointer = _pointer(context, builder, signature, arguments)
        builder.store(arguments[2], pointer, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, row, lanes), codegen


@intrinsic
def add(_context, lanes, factor, other):
    """Lanes + factor * other; the factor is a number or lanes."""

    def codegen(context, builder, _signature, arguments):
        vector = _factor(context, builder, factor, arguments[1], lanes)
        product = builder.fmul(vector, arguments[2], ("contract",))
        return builder.fadd(arguments[0], product, ("contract",))

    return lanes(lanes, factor, other), codegen


@intrinsic
def times(_context, factor, lanes):
    """Factor * lanes; the factor is a number or lanes."""

    def codegen(context, builder, _signature, arguments):
        return builder.fmul(_factor(context, builder, factor, arguments[0], lanes), arguments[1])

    return lanes(factor, lanes), codegen


# ------------------------------------------------------------------------------------------ strips


def empty_lanes(shape: tuple[int, ...], dtype: Any) -> Array:
    """An array of shape (*shape, LANES) that begins at a cache line."""
    count = int(np.prod(shape)) * LANES * np.dtype(dtype).itemsize
    memory = np.empty(count + _LINE_BYTES, np.uint8)
    first = -memory.ctypes.data % _LINE_BYTES
    return memory[first : first + count].view(dtype).reshape(*shape, LANES)


def n_strips(n_labels: int) -> int:
    """How many strips hold that many labels."""
    return -(-n_labels // LANES)


def to_strips(array: Array, dtype: Any) -> Array:
    """(labels, d) as (strips, d, LANES); lanes without a label are 0."""
    strips = empty_lanes((n_strips(len(array)), array.shape[1]), dtype)
    for strip, into in enumerate(strips):
        part = array[strip * LANES : (strip + 1) * LANES]
        into[:, : len(part)] = part.T
        into[:, len(part) :] = 0.0
    return strips


def from_strips(strips: Array, n_labels: int) -> Array:
    """(strips, d, LANES) as float64 (labels, d)."""
    array = np.empty((n_labels, strips.shape[1]))
    for strip, part in enumerate(strips):
        into = array[strip * LANES : (strip + 1) * LANES]
        into[:] = part[:, : len(into)].T
    return array


def move_labels(
    strips: Array, labels: Array, into: Array | None = None, places: Array | None = None
) -> Array:
    """Copies labels to places in other strips, by default to the front of new ones; returns these.

    Within the same strips, labels may move to the front, in their order.
    """
    n, count = strips.shape[1], n_strips(len(labels))
    if into is None:
        into = empty_lanes((count, n), strips.dtype)
    if places is None:
        places = np.arange(len(labels))
    firsts = [lanes // LANES * (n * LANES) + lanes % LANES for lanes in (labels, places)]
    for_rows(move_rows, n, strips.reshape(-1), into.reshape(-1), *firsts)
    return into[:count]


@kernel
def move_rows(start, stop, entries, into, sources, places):
    """Copies lanes, given by their first entries, for a range of rows; strip by strip."""
    for first in range(0, len(sources), LANES):
        some, others = sources[first : first + LANES], places[first : first + LANES]
        for row in range(start, stop):
            for j in range(len(some)):
                into[np.uint64(others[j] + row * LANES)] = entries[np.uint64(some[j] + row * LANES)]

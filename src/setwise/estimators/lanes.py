"""Labels that a kernel takes through the inputs side by side, as one SIMD value.

A loop over so few labels is too short for the compiler to vectorise well, and what it adds up would
go through memory at every step. `Lanes` hold a row of an array (rows, `LANES`) in registers.
Only for compiled code, and for rows that exist: nothing is checked.
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


def empty_lanes(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """An array of shape (*shape, LANES) that begins at a cache line."""
    count = int(np.prod(shape)) * LANES * np.dtype(dtype).itemsize
    memory = np.empty(count + _LINE_BYTES, np.uint8)
    first = -memory.ctypes.data % _LINE_BYTES
    return memory[first : first + count].view(dtype).reshape(*shape, LANES)


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
    """The row of an array."""

    def codegen(context, builder, signature, arguments):
        pointer = _pointer(context, builder, signature, arguments)
        return builder.load(pointer, align=array.dtype.bitwidth // 8)

    return Lanes(array.dtype)(array, row), codegen


@intrinsic
def store(_context, array, row, lanes):
    """Puts lanes into the row of an array."""

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

"""A row of a matrix, of any constant width, as one SIMD value that a kernel holds in registers.

The compiler vectorises loops of its own where it can tell that arrays do not overlap; where it
cannot, kernels say it with these. A matrix (rows, count) is read and written by its rows; ``count``
is a constant of the caller's module.
"""

# pyright: reportCallIssue=false
# (Intrinsics are called without the context their definitions name first.)

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core.datamodel import models
from numba.extending import intrinsic, register_model


class Lanes(types.Type):
    """The type of ``count`` numbers of one type."""

    def __init__(self, dtype, count):
        self.dtype, self.count = dtype, count
        super().__init__(f"Lanes({dtype}, {count})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, lanes):
        number = manager.lookup(lanes.dtype).get_value_type()
        super().__init__(manager, lanes, ir.VectorType(number, lanes.count))


def _pointer(context, builder, signature, arguments, kind):
    """Where a row (second argument) of a contiguous matrix begins; nothing is checked."""
    (matrix, row), (array, place) = signature.args[:2], arguments[:2]
    memory = context.make_array(matrix)(context, builder, array).data
    place = context.cast(builder, place, row, types.intp)
    first = builder.gep(memory, [builder.mul(place, place.type(kind.count))])
    return builder.bitcast(first, context.get_value_type(kind).as_pointer())


def _everywhere(context, builder, number, kind):
    """A number in all lanes."""
    vector = context.get_value_type(kind)
    single = builder.insert_element(vector(ir.Undefined), number, ir.IntType(32)(0))
    places = ir.VectorType(ir.IntType(32), kind.count)([0] * kind.count)
    return builder.shuffle_vector(single, vector(ir.Undefined), places)


@intrinsic(prefer_literal=True)
def load(_context, matrix, row, count):
    """The lanes of a row of a matrix (rows, count)."""
    if not isinstance(count, types.IntegerLiteral):
        return None
    kind = Lanes(matrix.dtype, count.literal_value)

    def codegen(context, builder, signature, arguments):
        pointer = _pointer(context, builder, signature, arguments, kind)
        return builder.load(pointer, align=matrix.dtype.bitwidth // 8)

    return kind(matrix, row, count), codegen


@intrinsic
def store(_context, matrix, row, lanes):
    """Puts lanes into a row of a matrix (rows, count)."""

    def codegen(context, builder, signature, arguments):
        pointer = _pointer(context, builder, signature, arguments, lanes)
        builder.store(arguments[2], pointer, align=matrix.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(matrix, row, lanes), codegen


@intrinsic
def add(_context, lanes, factor, other):
    """Lanes + factor * other, for a factor that is a number."""

    def codegen(context, builder, _signature, arguments):
        number = context.cast(builder, arguments[1], factor, lanes.dtype)
        vector = _everywhere(context, builder, number, lanes)
        product = builder.fmul(vector, arguments[2], ("contract",))
        return builder.fadd(arguments[0], product, ("contract",))

    return lanes(lanes, factor, other), codegen


@intrinsic
def times(_context, lanes, other):
    """Lanes * other."""

    def codegen(_context, builder, _signature, arguments):
        return builder.fmul(*arguments)

    return lanes(lanes, other), codegen


@intrinsic
def total(_context, lanes):
    """The sum of the lanes."""

    def codegen(context, builder, _signature, arguments):
        vector, number = context.get_value_type(lanes), context.get_value_type(lanes.dtype)
        name = f"llvm.vector.reduce.fadd.v{lanes.count}f{lanes.dtype.bitwidth}"
        kind = ir.FunctionType(number, [number, vector])
        function = builder.module.declare_intrinsic(name, fnty=kind)
        return builder.call(function, [number(0.0), arguments[0]], fastmath=("reassoc",))

    return lanes.dtype(lanes), codegen

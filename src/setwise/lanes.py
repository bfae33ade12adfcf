"""Several numbers at a time, in kernels whose loops over labels are short.

The compiler vectorises a plain loop by itself, but before every row it asks whether arrays overlap,
and what is left over it takes number by number: with a hundred labels that costs more than the
arithmetic. Where it matters, loops are written in `Lanes`: ``load`` eight numbers, calculate with
them as with one (``+ - * /`` and the functions below), ``store`` them. Arrays have whole lanes, and
are filled beyond the last label so that nothing there counts. ``load_row`` and ``store_row`` take a
row of a matrix (rows, count) as lanes, for any ``count`` that is a constant of the caller's module.
"""

import operator
from itertools import accumulate, pairwise
from math import prod
from typing import Any

import numpy as np
from llvmlite import ir
from numba import extending, types
from numba.core import cgutils
from numba.core.typing import templates
from numba.core.typing.templates import AbstractTemplate, signature
from numba.extending import lower_builtin, models, register_model
from numpy.typing import NDArray

LANES = 8
# A processor fetches and writes so many bytes at once, where they begin at a multiple of it.
LINE_BYTES = 64
# (Called without the context that definitions name first, which no type of it says.)
intrinsic: Any = extending.intrinsic
_infer: Any = templates.infer_global


def empty_lanes(shape: tuple[int, ...], count: int, dtype: Any = np.float64) -> NDArray[Any]:
    """An array (*shape, count) that begins a cache line: wide rows are then whole lines."""
    size = prod(shape) * count * np.dtype(dtype).itemsize
    memory = np.empty(size + LINE_BYTES, np.uint8)
    first = -memory.ctypes.data % LINE_BYTES
    return memory[first : first + size].view(dtype).reshape(*shape, count)


def room_in_lanes(count: int, *rows: int) -> list[NDArray[np.float64]]:
    """Arrays of so many rows of lanes each, by one allocation: it takes longer than a short row."""
    ends = list(accumulate(rows, initial=0))
    whole = empty_lanes((ends[-1],), count)
    return [whole[first:last] for first, last in pairwise(ends)]


class Lanes(types.Type):
    """The type of ``count`` numbers of one dtype in compiled code."""

    def __init__(self, dtype, count=LANES):
        self.dtype, self.count = dtype, count
        super().__init__(name=f"lanes({dtype}, {count})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, lanes):
        number = manager[lanes.dtype].get_value_type()
        super().__init__(manager, lanes, ir.VectorType(number, lanes.count))


_OPERATIONS = {
    operator.add: "fadd",
    operator.sub: "fsub",
    operator.mul: "fmul",
    operator.truediv: "fdiv",
}


class _Arithmetic(AbstractTemplate):
    """Lanes with lanes, or with a number for all of them."""

    def generic(self, args, kws):
        made = [argument for argument in args if isinstance(argument, Lanes)]
        if len(args) != 2 or not made:
            return None
        kinds = {
            argument if isinstance(argument, Lanes) else Lanes(argument, made[0].count)
            for argument in args
        }
        return signature(made[0], *args) if len(kinds) == 1 else None


def _lower(function, instruction):
    def code(context, builder, signature, arguments):
        count = signature.return_type.count
        return getattr(builder, instruction)(*(_as_lanes(builder, one, count) for one in arguments))

    for given in ((Lanes, Lanes), (Lanes, types.Float), (types.Float, Lanes)):
        lower_builtin(function, *given)(code)


for _function, _instruction in _OPERATIONS.items():
    _infer(_function)(type(f"_{_instruction}", (_Arithmetic,), {}))
    _lower(_function, _instruction)


@_infer(operator.neg)
class _Negation(AbstractTemplate):
    def generic(self, args, kws):
        return signature(*args, *args) if isinstance(args[0], Lanes) else None


lower_builtin(operator.neg, Lanes)(
    lambda context, builder, signature, arguments: builder.fneg(*arguments)
)


def _as_lanes(builder, value, count):
    """The value in every lane, if it is not lanes already."""
    if isinstance(value.type, ir.VectorType):
        return value
    number, place = ir.VectorType(value.type, count), ir.IntType(32)
    first = builder.insert_element(ir.Constant(number, ir.Undefined), value, place(0))
    places = constant(like(number, place), 0)
    return builder.shuffle_vector(first, ir.Constant(number, ir.Undefined), places)


def like(kind, number):
    """The LLVM type of a number in place of that of another one, or of lanes."""
    return ir.VectorType(number, kind.count) if isinstance(kind, ir.VectorType) else number


def constant(kind, value):
    """A number as a constant of an LLVM type, in all lanes of one that has some."""
    return ir.Constant(kind, [value] * kind.count if isinstance(kind, ir.VectorType) else value)


@intrinsic
def load(_context, array, first, one):
    """array[first : first + 8] as lanes in the precision of ``one``."""
    sent = Lanes(one)(array, first, one)

    def code(context, builder, signature, arguments):
        there = _place(context, builder, signature.args[0], *arguments[:2])
        wanted = context.get_value_type(signature.return_type)
        found = builder.load(there, align=1)
        if isinstance(array.dtype, types.Integer):
            return builder.uitofp(found, wanted)
        return found if array.dtype == one else builder.fpext(found, wanted)

    return sent, code


@intrinsic
def store(_context, array, first, lanes):
    """array[first : first + 8] = lanes, in its own precision."""
    sent = types.void(array, first, lanes)

    def code(context, builder, signature, arguments):
        there = _place(context, builder, signature.args[0], *arguments[:2])
        builder.store(arguments[2], there, align=1)
        return context.get_dummy_value()

    return sent, code


def _place(context, builder, kind, array, first, count=LANES):
    """A pointer to so many numbers of an array in C order."""
    data = context.make_array(kind)(context, builder, array).data
    number = context.get_data_type(kind.dtype)
    start = builder.gep(data, [first], inbounds=True)
    return builder.bitcast(start, ir.VectorType(number, count).as_pointer())


def _row(context, builder, signature, arguments, count):
    """A pointer to a row of a matrix (rows, count)."""
    (matrix, row), (array, place) = signature.args[:2], arguments[:2]
    place = context.cast(builder, place, row, types.intp)
    return _place(context, builder, matrix, array, builder.mul(place, place.type(count)), count)


@intrinsic(prefer_literal=True)
def load_row(_context, matrix, row, count):
    """The lanes of a row of a matrix (rows, count)."""
    if not isinstance(count, types.IntegerLiteral):
        return None
    kind = Lanes(matrix.dtype, count.literal_value)

    def code(context, builder, signature, arguments):
        there = _row(context, builder, signature, arguments, kind.count)
        return builder.load(there, align=matrix.dtype.bitwidth // 8)

    return kind(matrix, row, count), code


@intrinsic
def store_row(_context, matrix, row, lanes):
    """Puts lanes into a row of a matrix (rows, count)."""

    def code(context, builder, signature, arguments):
        there = _row(context, builder, signature, arguments, lanes.count)
        builder.store(arguments[2], there, align=matrix.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(matrix, row, lanes), code


@intrinsic
def add(_context, lanes, factor, other):
    """Lanes + factor * other, for a factor that is a number; rounded once where hardware can."""

    def code(context, builder, signature, arguments):
        number = context.cast(builder, arguments[1], factor, lanes.dtype)
        vector = _as_lanes(builder, number, lanes.count)
        product = builder.fmul(vector, arguments[2], ("contract",))
        return builder.fadd(arguments[0], product, ("contract",))

    return lanes(lanes, factor, other), code


@intrinsic
def spread(_context, x):
    """The number x in every lane."""
    return Lanes(x)(x), lambda context, builder, sent, args: _as_lanes(builder, args[0], LANES)


@intrinsic
def wide(_context, x):
    """x in float64."""
    double = Lanes(types.float64, x.count) if isinstance(x, Lanes) else types.float64

    def code(context, builder, signature, arguments):
        wanted = context.get_value_type(double)
        same = arguments[0].type == wanted
        return arguments[0] if same else builder.fpext(arguments[0], wanted)

    return double(x), code


def call(builder, name, returned, given, **options):
    """Call an intrinsic of LLVM, which names types by the last argument."""
    kind = given[-1].type
    is_one = not isinstance(kind, ir.VectorType)
    number, before = (kind, "") if is_one else (kind.element, f"v{kind.count}")
    name = f"llvm.{name}.{before}{number.intrinsic_name}"
    function = ir.FunctionType(returned, [value.type for value in given])
    declared = cgutils.get_or_insert_function(builder.module, function, name)
    return builder.call(declared, given, **options)


def _reduction(name, start):
    @intrinsic
    def reduce(_context, lanes):
        def code(context, builder, signature, arguments):
            number = arguments[0].type.element
            given = [ir.Constant(number, start), *arguments]
            return call(builder, f"vector.reduce.{name}", number, given, fastmath=("reassoc",))

        return lanes.dtype(lanes), code

    return reduce


total = _reduction("fadd", 0.0)
product = _reduction("fmul", 1.0)


def _chosen(comparison):
    @intrinsic
    def choose(_context, x, y):
        lanes = x if isinstance(x, Lanes) else y

        def code(context, builder, signature, arguments):
            if isinstance(lanes, Lanes):
                arguments = [_as_lanes(builder, one, lanes.count) for one in arguments]
            is_first = builder.fcmp_ordered(comparison, *arguments)
            return builder.select(is_first, *arguments)

        return lanes(x, y), code

    return choose


# x if that is smaller (larger), else y: y too where x is not a number.
smaller = _chosen("<")
larger = _chosen(">")


@intrinsic
def where_smaller(_context, x, y, if_smaller, otherwise):
    """if_smaller where x < y, else otherwise: all of them numbers, or all lanes."""

    def code(context, builder, signature, arguments):
        return builder.select(builder.fcmp_ordered("<", *arguments[:2]), *arguments[2:])

    return if_smaller(x, y, if_smaller, otherwise), code


@intrinsic
def size(_context, x):
    """The absolute value."""

    def code(context, builder, signature, arguments):
        return call(builder, "fabs", arguments[0].type, arguments)

    return x(x), code


@intrinsic
def stand_apart(_context):
    """Keep the function this is called in from being taken over by its callers.

    A loop with many constants then has registers for them.
    """

    def code(context, builder, signature, arguments):
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), code

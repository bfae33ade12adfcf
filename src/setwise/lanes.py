"""Eight numbers at a time, in kernels whose loops over labels are short.

The compiler vectorises a plain loop by itself, but before every row it asks whether arrays overlap,
and what is left over it takes number by number: with a hundred labels that costs more than the
arithmetic. Where it matters, loops are written in `Lanes`: ``load`` eight numbers, calculate with
them as with one (``+ - * /`` and the functions below), ``store`` them. Arrays have whole lanes, and
are filled beyond the last label so that nothing there counts.
"""

import operator
from typing import Any

from llvmlite import ir
from numba import extending, types
from numba.core import cgutils
from numba.core.typing import templates
from numba.core.typing.templates import AbstractTemplate, signature
from numba.extending import lower_builtin, models, register_model

LANES = 8
# (Called without the context that definitions name first, which no type of it says.)
intrinsic: Any = extending.intrinsic
_infer: Any = templates.infer_global


class Lanes(types.Type):
    """The type of eight numbers of one dtype in compiled code."""

    def __init__(self, dtype):
        self.dtype = dtype
        super().__init__(name=f"lanes({dtype})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, lanes):
        number = manager[lanes.dtype].get_value_type()
        super().__init__(manager, lanes, ir.VectorType(number, LANES))


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
        if len(args) == 2 and made:
            return signature(made[0], made[0], made[0]) if len(made) == 2 else _mixed(*args)
        return None


def _mixed(one, other):
    lanes, number = (one, other) if isinstance(one, Lanes) else (other, one)
    return signature(lanes, one, other) if number == lanes.dtype else None


def _lower(function, instruction):
    def code(context, builder, signature, arguments):
        pairs = zip(signature.args, arguments, strict=True)
        return getattr(builder, instruction)(*(_as_lanes(builder, *pair) for pair in pairs))

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


def _as_lanes(builder, kind, value):
    """The value in every lane, if it is not lanes already."""
    if isinstance(kind, Lanes):
        return value
    number, place = ir.VectorType(value.type, LANES), ir.Constant(ir.IntType(32), 0)
    first = builder.insert_element(ir.Constant(number, ir.Undefined), value, place)
    places = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(first, ir.Constant(number, ir.Undefined), places)


def _number(kind):
    """The dtype of a number, of lanes or of an array."""
    return getattr(kind, "dtype", kind)


def _like(kind, bits_or_type):
    """An LLVM type as it is for a number, or for all lanes."""
    return ir.VectorType(bits_or_type, LANES) if isinstance(kind, Lanes) else bits_or_type


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


def _place(context, builder, kind, array, first):
    """A pointer to eight numbers of an array in C order."""
    data = context.make_array(kind)(context, builder, array).data
    number = context.get_data_type(kind.dtype)
    start = builder.gep(data, [first], inbounds=True)
    return builder.bitcast(start, ir.VectorType(number, LANES).as_pointer())


@intrinsic
def spread(_context, x):
    """The number x in every lane."""
    return Lanes(x)(x), lambda context, builder, sent, args: _as_lanes(builder, x, args[0])


@intrinsic
def wide(_context, x):
    """x in float64."""
    double = Lanes(types.float64) if isinstance(x, Lanes) else types.float64

    def code(context, builder, signature, arguments):
        wanted = context.get_value_type(double)
        same = arguments[0].type == wanted
        return arguments[0] if same else builder.fpext(arguments[0], wanted)

    return double(x), code


def _call(builder, name, returned, given, **options):
    """Call an intrinsic of LLVM, which names types by the last argument."""
    kind = given[-1].type
    number, before = (kind.element, f"v{LANES}") if isinstance(kind, ir.VectorType) else (kind, "")
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
            return _call(builder, f"vector.reduce.{name}", number, given, fastmath=("reassoc",))

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
                pairs = zip(signature.args, arguments, strict=True)
                arguments = [_as_lanes(builder, *pair) for pair in pairs]
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


def _elementwise(name):
    @intrinsic
    def function(_context, x):
        def code(context, builder, signature, arguments):
            return _call(builder, name, arguments[0].type, arguments)

        return x(x), code

    return function


floor = _elementwise("floor")
size = _elementwise("fabs")


@intrinsic
def power_of_two(_context, exponent):
    """2**exponent of a whole number, by writing the exponent bits; in the precision it has."""
    bits, bias, shift = (32, 127, 23) if _number(exponent) == types.float32 else (64, 1023, 52)

    def code(context, builder, signature, arguments):
        kind = _like(exponent, ir.IntType(bits))
        whole = builder.fptosi(arguments[0], _like(exponent, ir.IntType(32)))
        whole = whole if bits == 32 else builder.sext(whole, kind)

        def constant(value):
            return ir.Constant(kind, [value] * LANES if isinstance(exponent, Lanes) else value)

        biased = builder.add(whole, constant(bias))
        return builder.bitcast(builder.shl(biased, constant(shift)), arguments[0].type)

    return exponent(exponent), code


@intrinsic
def stand_apart(_context):
    """Keep the function this is called in from being taken over by its callers.

    A loop with many constants then has registers for them.
    """

    def code(context, builder, signature, arguments):
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), code

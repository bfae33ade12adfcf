"""How kernels and their parts are compiled: with what they need of the compiler, and once.

Kernels are loops over arrays, without closures, comprehensions or array expressions. The compiler's
passes that rewrite these (and look through every function anew after each) are left out here.

Numba optimises every function that a kernel calls, and everything that calls in turn, and makes
machine code of it, before it does the same again inside the kernel. A `Part` stops where its
instructions are written down: what calls it takes them over, and they are optimised there, once.
A part can therefore be called from compiled code alone.
"""

from numba._dynfunc import make_function
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase
from numba.core.compiler_machinery import LoweringPass, PassManager, register_pass
from numba.core.typed_passes import (
    AnnotateTypes,
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.untyped_passes import (
    DeadBranchPrune,
    FixupArgs,
    GenericRewrites,
    IRProcessing,
    ReconstructSSA,
    TranslateByteCode,
)

_TYPED = (
    TranslateByteCode,
    FixupArgs,
    IRProcessing,
    DeadBranchPrune,
    GenericRewrites,
    ReconstructSSA,
    NopythonTypeInference,
    PreLowerStripPhis,
    IRLegalization,
    AnnotateTypes,
)


class Kernel(CompilerBase):
    """The passes of a function that Python calls."""

    def define_pipelines(self):
        """Optimise the instructions in one go, all parts among them."""
        return [_pipeline(_BeginKernel, NativeLowering)]


class Part(CompilerBase):
    """The passes of a function that only compiled code calls."""

    def define_pipelines(self):
        """Name a place for the instructions, and take them as they are."""
        return [_pipeline(_BeginPart, NativeLowering, _EndPart)]


def _pipeline(*lowering) -> PassManager:
    passes = PassManager("setwise")
    for one in (*_TYPED, *lowering, NoPythonBackend):
        passes.add_pass(one, one.__name__)
    passes.finalize()
    return passes


class _Whole(JITCodeLibrary):
    """Instructions that are optimised when all are there, not function by function before."""

    def _optimize_functions(self, ll_module) -> None:
        ll_module.data_layout = self._codegen._data_layout


class _Instructions(_Whole):
    """Instructions to be taken over by others, neither optimised nor made machine code."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True


@register_pass(mutates_CFG=False, analysis_only=False)
class _BeginKernel(LoweringPass):
    _name = "setwise_kernel_begins"

    def __init__(self):
        super().__init__()

    def run_pass(self, state) -> bool:
        state.library = _Whole(state.targetctx.codegen(), state.func_id.func_qualname)
        # (To be kept on disk.)
        state.library.enable_object_caching()
        return True


@register_pass(mutates_CFG=False, analysis_only=False)
class _BeginPart(LoweringPass):
    _name = "setwise_part_begins"

    def __init__(self):
        super().__init__()

    def run_pass(self, state) -> bool:
        state.library = _Instructions(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        return True


@register_pass(mutates_CFG=False, analysis_only=False)
class _EndPart(LoweringPass):
    _name = "setwise_part_ends"

    def __init__(self):
        super().__init__()

    def run_pass(self, state) -> bool:
        lowered = state["cr"]
        # What callers know the part by: a function without an address.
        where, name = lowered.fndesc.lookup_module(), lowered.fndesc.qualname
        function = make_function(where, name, "", 0, lowered.env, (state.library,))
        state.targetctx.insert_user_function(function, lowered.fndesc, [state.library])
        state["cr"] = lowered._replace(cfunc=function)
        return True

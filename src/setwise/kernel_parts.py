"""Parts of kernels: compiled into the kernels that call them, and only there.

Numba optimises every function that a kernel calls, and everything that calls in turn, and makes
machine code of it, before it does the same again inside the kernel. A `Part` stops where its
instructions are written down: what calls it takes them over, and they are optimised there, once.
A part can therefore be called from compiled code alone.
"""

from numba._dynfunc import make_function
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import LoweringPass, register_pass
from numba.core.typed_passes import IRLegalization, NativeLowering


class Part(CompilerBase):
    """The passes of a function that only compiled code calls: as always, but for the last."""

    def define_pipelines(self):
        """Name a place for the instructions, and take them as they are."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_Begin, IRLegalization)
        passes.add_pass_after(_End, NativeLowering)
        passes.finalize()
        return [passes]


class _Instructions(JITCodeLibrary):
    """Instructions to be taken over by others, neither optimised nor made machine code."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True


@register_pass(mutates_CFG=False, analysis_only=False)
class _Begin(LoweringPass):
    _name = "setwise_part_begins"

    def __init__(self):
        super().__init__()

    def run_pass(self, state) -> bool:
        codegen = state.targetctx.codegen()
        state.library = _Instructions(codegen, state.func_id.func_qualname)
        state.flags.no_compile = True
        return True


@register_pass(mutates_CFG=False, analysis_only=False)
class _End(LoweringPass):
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

"""Which front end an object is of, told by its class: no front end is imported to find out."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol, cast

from analysis.errors import UnsupportedError
from toolkit.frontends.prepared import FrontEndRequest, PreparedLaunch

_TRITON = "toolkit.frontends.triton_kernels"
_NUMBA = "toolkit.frontends.numba_kernels"
_CUPY = "toolkit.frontends.cupy_kernels"
_CUTE = "toolkit.frontends.cute_kernels"
_TEXT = "toolkit.frontends.cuda_text"

# By the first package and the name of the class.
_MODULES = {
    ("triton", "JITFunction"): _TRITON,
    ("triton", "Autotuner"): _TRITON,
    ("triton", "Heuristics"): _TRITON,
    ("triton", "CompiledKernel"): _TRITON,
    ("numba", "CUDADispatcher"): _NUMBA,
    ("cupy", "RawKernel"): _CUPY,
    ("cupy", "RawModule"): _CUPY,
    ("cupy", "ElementwiseKernel"): _CUPY,
    ("cupy", "ReductionKernel"): _CUPY,
    ("cutlass", "CudaDialectJitCompiledFunction"): _CUTE,
    ("toolkit", "CudaText"): _TEXT,
}

# What looks like a kernel and is none that can be had without a GPU, with the remedy.
_REFUSED = {
    ("triton", "InterpretedFunction"): "unset TRITON_INTERPRET, so that Triton compiles",
    ("numba", "FakeCUDAKernel"): "unset NUMBA_ENABLE_CUDASIM, so that Numba compiles",
    ("numba", "_Kernel"): "give the function that @cuda.jit decorates",
    ("numba", "_LaunchConfiguration"): "give the function that @cuda.jit decorates",
    ("numba", "DeclareDeviceFunction"): "it is a function of the device: give a kernel",
    ("cupy", "ufunc"): "it is many kernels: write the one that you mean as cupy.ElementwiseKernel",
    (
        "cupy",
        "_SimpleReductionKernel",
    ): "it is many kernels: write the one that you mean as cupy.ReductionKernel",
    ("cupy", "Function"): "a driver has loaded it: give the cupy.RawKernel",
    ("cupyx", "_JitRawKernel"): "cupyx.jit compiles for the GPU that is here: give a RawKernel",
    ("pycuda", "SourceModule"): "a driver has loaded it: give toolkit.CudaText(its text)",
    ("pycuda", "Function"): "a driver has loaded it: give toolkit.CudaText(the module's text)",
}


class FrontEnd(Protocol):
    """A module of a front end."""

    def prepared(self, compiled: Any, request: FrontEndRequest) -> PreparedLaunch:
        """The launch in terms of machine code."""
        ...


def front_end_of(source: object) -> FrontEnd | None:
    """The module for an object of a front end, None for any other object.

    Raises UnsupportedError for an object of a front end that holds no code for this.
    """
    keys = [(one.__module__.partition(".")[0], one.__name__) for one in type(source).__mro__]
    for key in keys:
        if module := _MODULES.get(key):
            return cast(FrontEnd, import_module(module))
    for key in keys:
        if remedy := _REFUSED.get(key):
            raise UnsupportedError(f"{'.'.join(key)} cannot be simulated: {remedy}")
    return None

"""Options that CuPy gives to the compiler for each of its kernels."""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.frontends.front_end import FrontEndRequest
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.kernel_source import compile_kernel

# Beside folders of headers and the version of C++. Denormals are flushed to zero.
_ALWAYS = ("-ftz=true", "--device-as-default-execution-space")


def cupy_options(own: Sequence[str]) -> tuple[list[str], list[str]]:
    """Options of a kernel with those that CuPy adds, and the folders of CuPy's headers."""
    from cupy._core.core import assemble_cupy_compiler_options

    options, headers = [], []
    for one in assemble_cupy_compiler_options(tuple(own)):
        if one.startswith("-I") and one not in own:
            headers.append(one.removeprefix("-I"))
        else:
            options.append(one)
    return [*options, *_ALWAYS], headers


def written_kernel(text: str, name: str, request: FrontEndRequest, own: Sequence[str]) -> Kernel:
    """Machine code of a kernel whose text CuPy wrote, with the kernel's own options."""
    options, headers = cupy_options(own)
    return compile_kernel(
        text,
        name,
        target=request.arch,
        name=f"{name}.cu",
        options=[*request.options, *options],
        headers=headers,
    )

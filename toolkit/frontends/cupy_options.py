"""Options that CuPy gives to the compiler for each of its kernels."""

from __future__ import annotations

from collections.abc import Sequence

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

"""Machine code of a kernel whose source a test has."""

from toolkit.machine_code.compile import compile_cubin


def cubin_of(source, kernel, arch="sm_90", **how):
    return compile_cubin(source, name=f"{kernel}.cu", kernel=kernel, arch=arch, **how)

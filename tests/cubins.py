"""Machine code of a kernel whose source a test has."""

import re
from functools import cache

from toolkit.machine_code.compile import compile_cubin
from toolkit.machine_code.kernel import Kernel

KERNEL = re.compile(r"__global__ void (\w+)")


def cubin_of(source, kernel, arch="sm_90", **how):
    return compile_cubin(source, name=f"{kernel}.cu", kernel=kernel, arch=arch, **how)


def kernel_of(source, kernel, arch="sm_90"):
    """The same of a source with several kernels, which are compiled once, together."""
    return Kernel.from_image(_image_of(source, arch), kernel)


@cache
def _image_of(source, arch):
    return cubin_of(source, KERNEL.search(source)[1], arch).image

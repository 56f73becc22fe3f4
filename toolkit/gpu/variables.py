"""Variables and the heap of a kernel on a GPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from toolkit.gpu.context import Gpu, LoadedKernel
from toolkit.gpu.gpu_launch import GpuLaunch
from toolkit.launch.heap import HEAP_BYTES
from toolkit.machine_code.variable_names import is_of_user
from toolkit.sass.module_variables import outputs_of, symbols_of


class Variables:
    """`__constant__` and `__device__` variables of a kernel, set as its launch asks for it.

    Raises InputError for a setting that does not fit them.
    """

    def __init__(self, kernel: LoadedKernel, launch: GpuLaunch) -> None:
        source = launch.source if isinstance(launch.source, str) else launch.text
        self._module, self._given = kernel.module, launch.setup.symbols
        self._cubin = replace(kernel.cubin, source=source)
        for symbol, content in symbols_of(self._cubin, self._given).items():
            self._module.write(symbol, content)

    def outputs(self) -> dict[str, NDArray[np.generic]]:
        """The `__device__` variables as they are, by their names in the source."""
        content = {
            x.name: np.frombuffer(self._module.read(x.name, x.size), np.uint8)
            for x in self._cubin.variables
            if is_of_user(x.name)
        }
        return outputs_of(self._cubin, content, self._given)


def set_heap(gpu: Gpu, size_bytes: int) -> None:
    """Give malloc in kernels a heap of another size, before any is launched."""
    if size_bytes != HEAP_BYTES:
        with gpu.launch_errors(f"a heap of {size_bytes:,} bytes"):
            gpu.driver.Context.set_limit(gpu.driver.limit.MALLOC_HEAP_SIZE, size_bytes)

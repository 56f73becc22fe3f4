"""The reference to beat: cuBLAS sgemm through nvmath-python's bindings, on PyCUDA's buffers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from analysis.errors import LaunchError, UnavailableError, first_line
from analysis.problem import Gemm
from analysis.records.profile import CountedKernel

# ..._tilesize128x64x8_..., or the first of ..._128x64_8x5_... and ..._128x64_sliced1x4_...
_TILE = re.compile(r"tilesize(\d+)x(\d+)|(?:gemm|nvjet)\w*?_(\d+)x(\d+)(?=_|x\d+_|$)")


class Cublas:
    """A cuBLAS handle in the current CUDA context; a context manager.

    Raises UnavailableError where nvmath-python or the library is missing.
    """

    def __enter__(self) -> Cublas:
        try:
            from nvmath.bindings import cublas

            self._library: Any = cublas
            self._handle = cublas.create()
        except Exception as error:  # the bindings raise their own types for a missing library
            raise UnavailableError(
                f"cuBLAS cannot be used ({first_line(error)}): pip install 'nvmath-python[cu13]'"
            ) from None
        return self

    def __exit__(self, *exception: object) -> None:
        with suppress(Exception):  # a context that a failed launch has broken is gone
            self._library.destroy(self._handle)

    @property
    def version(self) -> str:
        """Such as "13.1.0"."""
        number = int(self._library.get_version(self._handle))
        # cuBLAS counts 10000·major + 100·minor + patch since version 11
        return f"{number // 10_000}.{number // 100 % 100}.{number % 100}"

    def use_stream(self, stream: int) -> None:
        """Launch on a stream, by the driver's handle of it."""
        self._library.set_stream(self._handle, stream)

    def sgemm(self, problem: Gemm, a: Any, b: Any, c: Any) -> Callable[[], None]:
        """A function that launches C = A·B on row-major buffers, in float32 arithmetic.

        cuBLAS is column-major and sees the transposes: Cᵀ = Bᵀ·Aᵀ. The function raises
        LaunchError.
        """
        library, handle = self._library, self._handle
        one, zero = np.ones(1, dtype=np.float32), np.zeros(1, dtype=np.float32)
        plain = int(library.Operation.N)
        m, n, k = problem.m, problem.n, problem.k
        a_pointer, b_pointer, c_pointer = int(a), int(b), int(c)

        def launch() -> None:
            try:
                library.sgemm(
                    handle, plain, plain, n, m, k, one.ctypes.data, b_pointer, n, a_pointer, k,
                    zero.ctypes.data, c_pointer, n,
                )  # fmt: skip
            except Exception as error:
                raise LaunchError(f"cuBLAS: {first_line(error)}") from None

        return launch


@contextmanager
def cublas_product(arguments: Sequence[Any]) -> Iterator[Callable[[], None]]:
    """A function that launches C = A·B. `arguments` are addresses of A, B, C, then M, N and K."""
    a, b, c = arguments[:3]
    m, n, k = map(int, arguments[3:6])
    with Cublas() as cublas:
        yield cublas.sgemm(Gemm(m=m, n=n, k=k), a, b, c)


def tile_of(kernel: str) -> tuple[int, int] | None:
    """Rows and columns of the row-major C that a block computes, where the kernel's name says it.

    NVIDIA's libraries name a tile m×n of the product that they see. That is the column-major
    Cᵀ = Bᵀ·Aᵀ, whose rows are the columns of C: the name's first number counts columns.

    >>> tile_of("ampere_sgemm_128x64_nn")
    (64, 128)
    """
    match = _TILE.search(kernel)
    if match is None:
        return None
    m, n = (int(number) for number in match.groups() if number)
    return n, m


def sentence_on(kernels: Sequence[CountedKernel]) -> str:
    """Sentence that names the kernels that cuBLAS launched."""
    return f"cuBLAS launched {', then '.join(map(_described, kernels))}"


def _described(kernel: CountedKernel) -> str:
    shared_bytes = kernel.static_shared_bytes + kernel.dynamic_shared_bytes
    facts = [
        f"grid {_by(kernel.grid)}",
        f"blocks of {_by(kernel.block)} threads",
        f"{kernel.registers_per_thread} registers per thread",
        f"{shared_bytes:,} bytes of shared memory",
    ]
    if kernel.tile is not None:
        facts.insert(0, f"{kernel.tile[0]} rows × {kernel.tile[1]} columns of C per block")
    return f"{kernel.name} ({', '.join(facts)})"


def _by(size: tuple[int, int, int]) -> str:
    return " × ".join(map(str, size))

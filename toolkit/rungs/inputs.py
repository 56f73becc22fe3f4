"""A and B of one shape, and of the same with another K: made once, as far as there is memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from threading import Lock

from analysis.errors import ShapeError
from analysis.problem import FLOAT_BYTES, Gemm
from toolkit.launch.host_resources import shortage
from toolkit.rungs.matrices import Matrix, Tile, TileReference, Workload

ANCHOR_BYTES = 2**29  # of A and B at K itself: up to 8192³ they are made for the CPU reference too


class LadderInputs:
    """Inputs and references of one shape, at any K, that rungs share; and how they are executed."""

    advance: Callable[[int, int], None]  # hears how many blocks of a rung are done, of how many
    workers: int | None = None  # all cores

    def __init__(self, workload: Workload, max_instructions: int | None = None) -> None:
        self.workload, self.max_instructions = workload, max_instructions
        self.advance = lambda done, of: None
        self._workloads = {workload.problem.k: workload}
        self._matrices: dict[tuple[int, Gemm], Future[tuple[Matrix, Matrix]]] = {}  # K, executed
        self._bytes_to_come = 0  # of those that are being made
        self._pool, self._lock = ThreadPoolExecutor(2), Lock()
        self._references: dict[int, dict[Tile, TileReference]] = {}  # by K
        self._used: set[int] = set()  # every K since the last rung began

    def begin_rung(self) -> None:
        """Drop the matrices that the last rung did not use."""
        with self._lock:
            kept = self._used | {self.workload.problem.k}
            self._workloads = {k: one for k, one in self._workloads.items() if k in kept}
            self._references = {k: one for k, one in self._references.items() if k in kept}
            self._matrices = {at: one for at, one in self._matrices.items() if at[0] in kept}
            self._used = set()

    def at(self, k: int) -> Workload:
        """The workload with another K, the same but for it; kept for the next rung."""
        self._used.add(k)
        if k not in self._workloads:
            problem = replace(self.workload.problem, k=k)
            self._workloads[k] = Workload(problem, self.workload.seed)
        return self._workloads[k]

    def prepare(self, workload: Workload, executed: Gemm) -> Future[tuple[Matrix, Matrix]]:
        """Start making A and B in the background; again if there was no room before."""
        at = workload.problem.k, executed
        with self._lock:
            begun = self._matrices.get(at)
            if begun is None or (begun.done() and begun.exception()):
                begun = self._pool.submit(self._read_only, workload, executed)
                self._matrices[at] = begun
            return begun

    def prepare_at_k(self, executed: Gemm) -> list[Future[tuple[Matrix, Matrix]]]:
        """Begin to make A and B at K itself, unless they take more than ANCHOR_BYTES."""
        is_small = input_bytes(executed) <= ANCHOR_BYTES
        return [self.prepare(self.workload, executed)] if is_small else []

    def matrices(self, workload: Workload, executed: Gemm) -> tuple[Matrix, Matrix]:
        """A and B, read-only, padded up to the executed shape; kept for the next rung.

        Raises ShapeError where they do not fit into memory.
        """
        return self.prepare(workload, executed).result()

    def _read_only(self, workload: Workload, executed: Gemm) -> tuple[Matrix, Matrix]:
        with self._lock:
            if shortage(input_bytes(executed) + self._bytes_to_come):
                raise ShapeError(
                    f"A and B take {input_bytes(executed) / 1e9:.1f} GB at {executed}, which are "
                    "not free: take a smaller shape"
                )
            self._bytes_to_come += input_bytes(executed)
        try:
            a, b = (matrix.view() for matrix in workload.padded(executed))
        finally:
            with self._lock:
                self._bytes_to_come -= input_bytes(executed)
        a.flags.writeable = b.flags.writeable = False
        return a, b

    def has_room(self, executed: Gemm) -> bool:
        """True if A and B at K itself exist already, or fit into memory."""
        begun = self._matrices.get((self.workload.problem.k, executed))
        return not shortage(input_bytes(executed)) if begun is None or begun.exception() else True

    def references(self, workload: Workload, tiles: Iterable[Tile]) -> dict[Tile, TileReference]:
        """The float64 products on some tiles of C; kept for the next rung."""
        known = self._references.setdefault(workload.problem.k, {})
        missing = [tile for tile in tiles if tile not in known]
        if missing:
            known |= workload.tile_references(missing)
        return known


def input_bytes(shape: Gemm) -> int:
    return FLOAT_BYTES * (shape.a_elements + shape.b_elements)

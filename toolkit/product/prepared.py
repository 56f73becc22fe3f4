"""A recipe in a context, ready to launch: what is left to do in a call is to set addresses.

A `Prepared` belongs to one thread: its arguments are in memory that each call changes.
"""

from __future__ import annotations

import ctypes
from ctypes import (
    addressof,
    c_float,
    c_uint64,
    c_void_p,
    create_string_buffer,
)
from typing import Any

import numpy as np

from toolkit.gpu.driver import EarlyLaunch, StoredMap, driver
from toolkit.launch.tensor_map import MapTiling
from toolkit.product.device import (
    MOST_KEPT_BYTES,
    Context,
    borrowed,
    function_of,
    is_capturing,
    workspace_of,
    zero,
)
from toolkit.product.recipe import COPIES, BufferPlace, Map, Recipe, RecipeStep, Scalar, Value

Addresses = dict[str, int]


class Prepared:
    """The launches of a recipe. Its context must be current when it is made, and in `launch`."""

    def __init__(self, recipe: Recipe, context: Context) -> None:
        self._recipe, self._context = recipe, context
        self._steps = [_PreparedStep(step, context) for step in recipe.steps]
        self._has_copies = any(recipe.copies_bytes)
        is_simple = len(recipe.steps) == 1 and not recipe.workspace_bytes and not self._has_copies
        self._only = self._steps[0] if is_simple else None

    def launch(self, a: int, b: int, c: int, alpha: float, beta: float, stream: int) -> None:
        """Launch all steps on a stream; `a`, `b` and `c` are addresses.

        Raises LaunchError or OutOfMemoryError.
        """
        addresses = {"A": a, "B": b, "C": c, "workspace": 0}
        if self._only is not None:
            self._only.launch(addresses, alpha, beta, stream)
        elif not self._has_copies:
            self._with_workspace(addresses, alpha, beta, stream)
        else:
            with borrowed(self._context, stream, self._recipe.copies_bytes) as copies:
                addresses.update(zip(COPIES, copies, strict=True))
                self._with_workspace(addresses, alpha, beta, stream)

    def _launch(self, addresses: Addresses, alpha: float, beta: float, stream: int) -> None:
        for step in self._steps:
            step.launch(addresses, alpha, beta, stream)

    def _with_workspace(self, addresses: Addresses, alpha: float, beta: float, stream: int) -> None:
        size_bytes = self._recipe.workspace_bytes
        if not size_bytes:
            self._launch(addresses, alpha, beta, stream)
        elif size_bytes > MOST_KEPT_BYTES or is_capturing(stream):
            with borrowed(self._context, stream, [size_bytes]) as (address,):
                zero(address, self._recipe.zeroed_bytes, stream)
                addresses["workspace"] = address
                self._launch(addresses, alpha, beta, stream)
        else:
            self._with_kept_workspace(addresses, alpha, beta, stream)

    def _with_kept_workspace(
        self, addresses: Addresses, alpha: float, beta: float, stream: int
    ) -> None:
        size_bytes, zeroed_bytes = self._recipe.workspace_bytes, self._recipe.zeroed_bytes
        while True:
            workspace = workspace_of(self._context, stream, size_bytes)
            with workspace.lock:
                if workspace.size_bytes < size_bytes:  # another thread took it away
                    continue
                known_bytes, workspace.zeroed_bytes = workspace.zeroed_bytes, 0
                if known_bytes < zeroed_bytes:  # launches of another recipe used them
                    zero(workspace.address, zeroed_bytes, stream)
                addresses["workspace"] = workspace.address
                self._launch(addresses, alpha, beta, stream)
                workspace.zeroed_bytes = zeroed_bytes  # not if a launch failed
                return


class _PreparedStep:
    """One kernel with the memory of its arguments."""

    def __init__(self, step: RecipeStep, context: Context) -> None:
        function = function_of(context, step.image, step.entry, step.shared_bytes)
        self._kept: list[Any] = []
        self._pointers: list[tuple[c_uint64, str, int]] = []
        self._maps: list[tuple[StoredMap, str, int]] = []
        self._factors: list[tuple[c_float, bool]] = []
        places = (c_void_p * len(step.arguments))(*map(self._place, step.arguments))
        self._kept.append(places)
        geometry = (*step.grid, *step.block, step.shared_bytes)
        self._fixed = (c_void_p(function), *map(ctypes.c_uint, geometry))
        self._places = c_void_p(addressof(places))
        self._name, self._call = "cuLaunchKernel", driver().cuLaunchKernel
        if step.waits_itself:
            self._name, self._call = "cuLaunchKernelEx", EarlyLaunch(geometry)

    def _place(self, argument: BufferPlace | Map | Scalar | Value) -> int:
        """Address of the memory from which the driver takes an argument."""
        place: Any
        if isinstance(argument, BufferPlace):
            place = c_uint64()
            self._pointers.append((place, argument.buffer, argument.offset_bytes))
        elif isinstance(argument, Scalar):
            place = c_float()
            self._factors.append((place, argument.name == "alpha"))
        elif isinstance(argument, Map):
            one = StoredMap(_tiling(argument))
            self._maps.append((one, argument.pointer.buffer, argument.pointer.offset_bytes))
            return one.place
        else:
            place = create_string_buffer(argument.content, len(argument.content))
        self._kept.append(place)
        return addressof(place)

    def launch(self, addresses: Addresses, alpha: float, beta: float, stream: int) -> None:
        for factor, is_alpha in self._factors:
            factor.value = alpha if is_alpha else beta
        for place, buffer, offset_bytes in self._pointers:
            place.value = addresses[buffer] + offset_bytes
        for one, buffer, offset_bytes in self._maps:
            one.encode(addresses[buffer] + offset_bytes)
        if status := self._call(*self._fixed, stream, self._places, None):
            raise driver().error(self._name, status)


def _tiling(one: Map) -> MapTiling:
    return MapTiling(
        shape=one.shape,
        dtype=np.dtype(one.dtype),
        box=one.box,
        swizzle=one.swizzle,
        l2_promotion=one.l2_promotion,
        pitches=one.pitches,
    )

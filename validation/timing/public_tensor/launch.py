"""A launch of a public kernel: machine code of a folder, which must be that of the list."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from analysis.errors import InputError
from toolkit.machine_code.kernel import Kernel
from validation.timing.public_tensor.operands import Expected, Value, made
from validation.timing.tensor_launches import Arguments, Extent, Size, TensorLaunch

PART = "public"
RECORDED = Path(__file__).parents[1] / "recorded"
CODE = RECORDED / "public_tensor_code.json"  # sha256 of each cubin, and what Triton says of it


@dataclass(frozen=True, kw_only=True)
class PublicTensorLaunch(TensorLaunch):
    """A launch of a public kernel. `output`: position of the argument that holds its result."""

    cubins: Path
    output: int
    numbers: Callable[[Arguments], Expected]

    @property
    def half(self) -> str:
        return PART

    @cached_property
    def code(self) -> Kernel:
        """Raises InputError if the folder has other machine code than the list."""
        image = (self.cubins / f"{self.image}.cubin").read_bytes()
        if sha256(image).hexdigest() != described()[self.image]["sha256"]:
            raise InputError(f"{self.cubins}: {self.image}.cubin is not that of the list")
        return Kernel.from_image(image, self.symbol)

    def output_of(self, arguments: Arguments) -> int:
        return self.output

    def checks(self, arguments: Arguments) -> Expected:
        return self.numbers(arguments)


@cache
def described() -> Mapping[str, Any]:
    """Each cubin by name: its sha256 and, of Triton, kernel, threads and shared memory."""
    if not CODE.exists():  # before the first build
        return {}
    found: Mapping[str, Any] = json.loads(CODE.read_text(encoding="utf-8"))["cubins"]
    return found


def public_launch(
    kernel: str,
    family: str,
    size: Size,
    values: Sequence[Value],
    numbers: Callable[[Arguments], Expected],
    *,
    grid: tuple[int, ...],
    block: tuple[int, ...],
    image: str = "",
    symbol: str = "",
    shared: int = 0,
    output: int = 2,
) -> PublicTensorLaunch:
    """A launch whose cubin is in no folder yet. `image`: its cubin, if it is not named `kernel`."""
    return PublicTensorLaunch(
        kernel=kernel,
        family=family,
        size=size,
        image=image or kernel,
        symbol=symbol,
        grid=_extent(grid),
        block=_extent(block),
        dynamic_shared_bytes=shared,
        make=lambda: made(values),
        expected=lambda arguments: None,
        cubins=Path(),
        output=output,
        numbers=numbers,
    )


def _extent(sizes: tuple[int, ...]) -> Extent:
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z

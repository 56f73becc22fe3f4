"""Does leaving host code out change machine code? nvcc compiles both, and the code is compared.

Each kernel of a file is compared in two cubins of nvcc: of the untouched file, and of what NVRTC
would be given (`device_side`). Templates are instantiated by the untouched file only, so that the
names of those instantiations are appended to the other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from analysis.errors import CompileError
from toolkit.machine_code.compile import MOST_ROUNDS
from toolkit.machine_code.complaints import complaints_of
from toolkit.machine_code.device_side import DeviceSide
from toolkit.machine_code.elf import cubin_file
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.nvcc import compile_with_nvcc
from validation.public_sources.names import readable

_DEEP = "a/b/c/d/e"  # below it stand headers whose paths begin with ../


def differences(
    untouched: bytes, side: DeviceSide, *, arch: str, options: Sequence[str]
) -> dict[str, str]:
    """For each kernel of the untouched cubin: "equal", "differs", or "absent". Raises as nvcc."""
    symbols = cubin_file(untouched).kernels
    names = instantiations(symbols)
    for _ in range(MOST_ROUNDS):
        try:
            image = compiled_side(side, arch=arch, options=options, names=names)
            break
        except CompileError as error:
            smaller = side.without(complaints_of(error))
            if smaller is None:
                raise
            side = smaller
    else:
        raise CompileError(f"{side.file} does not compile within {MOST_ROUNDS} rounds")
    there = cubin_file(image).kernels
    return {
        symbol: _compared(untouched, image, symbol) if symbol in there else "absent"
        for symbol in symbols
    }


def compiled_side(
    side: DeviceSide, *, arch: str, options: Sequence[str], names: Sequence[str] = ()
) -> bytes:
    """The cubin that nvcc makes of a device side; `names` of templates are instantiated."""
    with TemporaryDirectory() as made:
        folder = Path(made, _DEEP)
        folder.mkdir(parents=True)
        for name in side.contents:
            if name != side.file:
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(side.headers[name], encoding="utf-8")
        uses = "".join(
            f"void *use_{number}() {{ return (void *)({name}); }}\n"
            for number, name in enumerate(names)
        )
        image, _ = compile_with_nvcc(
            f"{side.source}\n{uses}", name=side.file, folder=folder, arch=arch, options=options
        )
        return image


def instantiations(symbols: Sequence[str]) -> list[str]:
    """Names such as "scale<float, 4>" of those symbols that are templates."""
    found = []
    for text in readable(symbols):
        name = text.removeprefix("void ").rpartition("(")[0] if text.endswith(")") else text
        match = re.match(r"(?:void )?([\w:]+<.*>)\(", text)
        if match and "<" in name:
            found.append(re.sub(r"\((?:\w+ ?)+\)(-?\d)", r"\1", match[1]))
    return found


def _compared(first: bytes, second: bytes, symbol: str) -> str:
    codes = [Kernel.from_image(image, symbol).code for image in (first, second)]
    return "equal" if codes[0] == codes[1] else "differs"

"""Record results of the multi-function unit of a GPU: all mantissas of some octaves, and words.

    python -m validation.census.special cubin FILE        # once, with NVRTC: what the GPU runs
    python -m validation.census.special record FILE OUT   # on a GPU of that architecture
    python -m validation.census.special tangents OUT      # and checksums of all tangents

The last two need NumPy and PyCUDA. They write OUT/special.npz and OUT/tanh_sm_90.json.
"""

from __future__ import annotations

import lzma
import re
import sys
import time
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from validation import recordings
from validation.census.compact import Words, packed

ARCHITECTURE = "sm_90"
OCTAVE = 1 << 23
FUNCTION_AT, FUNCTION_BITS = 72, 8  # of the word of MUFU: function and format
FUNCTIONS = {
    "COS": 0x00, "SIN": 0x04, "EX2": 0x08, "LG2": 0x0C, "RCP": 0x10, "RSQ": 0x14, "RCP64H": 0x18,
    "RSQ64H": 0x1C, "SQRT": 0x20, "TANH": 0x24, "EX2.F16": 0x09, "TANH.F16": 0x25,
    "EX2.BF16": 0x0A, "TANH.BF16": 0x26,
}  # fmt: skip
# First words of runs of 2^23 words, one after the other: octaves, by their exponents.
OCTAVES = {
    "RCP": (0,),
    "RSQ": (0, 1),
    "SQRT": (0, 1),
    "EX2": (-14, -3, -2, -1, 0, 3, 6),
    "LG2": (-3, -1, 0, 1, 5),
    "SIN": (-14, -6, -4, -3, -2, -1, 0, 3),
    "COS": (-14, -6, -4, -3, -2, -1, 0, 3),
    "TANH": (-12, -6, -4, -3, -2, -1, 0, 1, 2, 3),
}
NEGATIVE_OCTAVES = {"EX2": (-2, -1, 0), "SIN": (-3,), "COS": (-3,), "TANH": (-1,)}
RECORDED = Path(__file__).parent / "recorded"
CUBIN, TANGENTS = RECORDED / "special_sm_90.cubin", RECORDED / "tanh_sm_90.json"
SAMPLED = 1 << 10  # of the mantissas of an octave, one of so many
ANY = 1 << 17  # random words for each function
FCHK_EACH = 16  # pairs of operands for each pair of exponents


def any_words(name: str) -> Words:
    """Random words, the same for each call."""
    rng = np.random.default_rng(list(name.encode()))
    return rng.integers(0, 1 << 32, ANY, dtype=np.uint32)


def operands_of_fchk() -> Words:
    """Pairs (a, b) of all pairs of exponents, [256, 256, FCHK_EACH, 2]; a third have round ends."""
    rng = np.random.default_rng(0)
    words = rng.integers(0, 1 << 32, (256, 256, FCHK_EACH, 2), dtype=np.uint32)
    words &= np.uint32(0x807FFFFF)
    words[:, :, 0] &= np.uint32(0x80000000)
    words[:, :, 1] |= np.uint32(0x007FFFFF)
    words[:, :, 2, 0] &= np.uint32(0x80000000)
    words[:, :, 3, 1] &= np.uint32(0x80000000)
    exponents = np.arange(256, dtype=np.uint32) << np.uint32(23)
    words[..., 0] |= exponents[:, None, None]
    words[..., 1] |= exponents[None, :, None]
    return words


def octaves(name: str) -> list[int]:
    """The first word of each run that is recorded."""
    positive = [(127 + k) << 23 for k in OCTAVES.get(name, ())]
    return positive + [1 << 31 | (127 + k) << 23 for k in NEGATIVE_OCTAVES.get(name, ())]


def write_cubin(path: Path) -> None:
    from toolkit.machine_code.compile import compile_cubin

    source = Path(__file__).with_suffix(".cu")
    kernel = compile_cubin(
        source.read_text(encoding="utf-8"), name=source.name, kernel="special", arch=ARCHITECTURE
    )
    path.write_bytes(kernel.image)


class Gpu:
    """The kernels of special.cu on the GPU, each patched to another function of the unit."""

    def __init__(self, image: bytes) -> None:
        import pycuda.autoprimaryctx  # noqa: F401
        from pycuda import driver

        self.driver, self.image = driver, image

    def run(self, kernel: str, patch: Any, out: Words, *arguments: Any) -> None:
        from toolkit.machine_code.patching import rewritten

        driver = self.driver
        module = driver.module_from_buffer(rewritten(self.image, {kernel: patch}))
        memory = driver.mem_alloc(out.nbytes)
        given = [driver.In(x) if isinstance(x, np.ndarray) else np.uint32(x) for x in arguments]
        grid = (-(-len(out) // 256), 1)
        module.get_function(kernel)(
            memory, *given, np.uint32(len(out)), block=(256, 1, 1), grid=grid
        )
        driver.memcpy_dtoh(out, memory)
        memory.free()


def with_function(name: str) -> Any:
    """A patch that makes each MUFU.RCP another function."""

    def patch(code: list[int]) -> list[int]:
        mask = (1 << FUNCTION_BITS) - 1 << FUNCTION_AT
        found = [k for k, word in enumerate(code) if word & 0xFFF == 0x308]
        assert found, "no MUFU"
        for k in found:
            code[k] = code[k] & ~mask | FUNCTIONS[name] << FUNCTION_AT
        return code

    return patch


def only_fchk(code: list[int]) -> list[int]:
    """A patch of a division: it yields 1 where it takes the slow path, else 0."""
    move = next(k for k, word in enumerate(code) if word & 0xFFF == 0x802)  # of the return address
    call = next(k for k, word in enumerate(code) if word & 0xFFF == 0x944)
    back = next(k for k in range(call + 1, len(code)) if code[k] & 0xFFF == 0x224)
    fast = max(k for k in range(move) if code[k] & 0xFFF == 0x223)
    register = code[back] >> 16 & 0xFF
    assert code[fast] >> 16 & 0xFF == register
    plain = code[move] & (1 << 105) - (1 << 64)
    for place, value in ((fast, 0), (move, 1)):
        code[place] = code[place] >> 105 << 105 | plain | value << 32 | register << 16 | 0x7802
    for place in (call, back):
        code[place] = code[place] >> 105 << 105 | 0x7918  # NOP
    return code


def record(path: Path, out: Path) -> None:
    started = time.perf_counter()
    gpu = Gpu(path.read_bytes())
    found: dict[str, NDArray[Any]] = {}
    rows = []
    for name in FUNCTIONS:
        words = np.empty(OCTAVE, np.uint32)
        for first in octaves(name):
            gpu.run("special", with_function(name), words, first, 1)
            found[f"{name} {first:08x}"] = np.frombuffer(packed(words), np.uint8)
        if name.endswith("F16"):
            words = np.empty(1 << 16, np.uint32)
            gpu.run("special", with_function(name), words, 0, 1)
            found[f"{name} all"] = _raw(words)
        elif name.endswith("64H"):
            words = np.empty(1 << 21, np.uint32)
            gpu.run("special", with_function(name), words, 1023 << 20, 1)
            found[f"{name} {1023 << 20:08x}"] = np.frombuffer(packed(words), np.uint8)
        given = any_words(name)
        words = np.empty_like(given)
        gpu.run("special_of", with_function(name), words, given)
        found[f"{name} any"] = _raw(words)
        size = sum(x.nbytes for key, x in found.items() if key.split()[0] == name)
        rows.append(f"{name:10} {size:>9,} bytes  {time.perf_counter() - started:5.1f} s")
        print(rows[-1], flush=True)
    operands = operands_of_fchk().reshape(-1, 2)
    slow = np.empty(len(operands), np.uint32)
    gpu.run("slow_path", only_fchk, slow, operands)
    assert set(np.unique(slow)) <= {0, 1}
    found["FCHK"] = _raw(np.packbits(slow.astype(bool)))
    print(f"FCHK: {slow.mean():.3f} of the pairs take the slow path")
    np.savez(out / "special.npz", **found)  # type: ignore[arg-type]
    print(f"{(out / 'special.npz').stat().st_size:,} bytes")


def record_tangents(out: Path) -> None:
    """CRC-32 of the tangents of octaves, and of all halves."""
    gpu = Gpu(CUBIN.read_bytes())
    octaves = {}
    for exponent in range(-10, 5):
        words = np.empty(OCTAVE, np.uint32)
        gpu.run("special", with_function("TANH"), words, 127 + exponent << 23, 1)
        octaves[str(exponent)] = {
            "all": crc32(words.tobytes()),
            "sampled": crc32(words[::SAMPLED].tobytes()),
        }
    found: dict[str, Any] = {"device": "NVIDIA H200", "octaves": octaves}
    for name in ("F16", "BF16"):
        words = np.empty(1 << 16, np.uint32)
        gpu.run("special", with_function(f"TANH.{name}"), words, 0, 1)
        found[name] = crc32(words.astype(np.uint16).tobytes())
    recordings.write(out / TANGENTS.name, found)


def _raw(words: NDArray[Any]) -> NDArray[np.uint8]:
    return np.frombuffer(lzma.compress(words.tobytes(), preset=1), np.uint8)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["cubin", file]:
            write_cubin(Path(file))
        case ["record", file, folder]:
            record(Path(file), Path(folder))
        case ["tangents", folder]:
            record_tangents(Path(folder))
        case _:
            sys.exit(re.sub(r"^.*?\n\n", "", __doc__, flags=re.S))

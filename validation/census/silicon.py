"""The same random data through the silicon of a GPU and through the simulator's meaning of opcodes.

    python -m validation.census.silicon forms FOLDER OUT   # from cubins of sm_90: what shall run
    python -m validation.census.silicon record OUT         # on a GPU; needs NumPy and PyCUDA
    python -m validation.census.silicon compare            # the recording with the simulator

Each form is one instruction that reads registers, numbers and predicates, and writes registers and
predicates. It runs in the middle of a kernel that fills registers from memory before and stores
them behind it; nothing else is known of it than its 128 bits.
"""

from __future__ import annotations

import json
import lzma
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]

HERE = Path(__file__).parent / "recorded"
FORMS, RECORDED = HERE / "forms_sm_90.json", HERE / "silicon_sm_90.npz"
ARCHITECTURE, FAMILIES = "sm_90", ("integer", "floating", "half", "double", "convert")
ALSO = {"MUFU", "FCHK", "SHFL", "VOTE", "MATCH", "REDUX"}
LANES, ROWS = 32, 256
# Registers of the kernel: three sources and the result, four words each; R2P reads the last word
# of the third, P2R writes the last of the result.
SLOTS = 24
_KERNEL = """extern "C" __global__ void form(const uint4 *in, uint4 *out) {
    int t = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    uint4 a = in[t], b = in[t + 1], c = in[t + 2], d = in[t + 3];
    SLOTS
    out[t] = a; out[t + 1] = b; out[t + 2] = c; out[t + 3] = d;
}
"""
_SLOT = 'asm volatile("pmevent 1;" ::: "memory");'
_PMTRIG, _NOP, _R2P, _P2R, _RRR = 0x801, 0x918, 0x804, 0x803, 1
_DESTINATION, _A, _B, _C, _FORM, _GUARD, _CONTROL = 16, 24, 32, 64, 9, 12, 105
_ALL_PREDICATES = 0x7F
_WAIT_FOR_ALL, _STALL = 0x3F << 11, 15


def _control(word: int) -> int:
    """Control bits with which an instruction waits for all before it, and is waited for."""
    bits = word >> _CONTROL
    written, read = bits >> 5 & 7, bits >> 8 & 7
    written, read = (7 if written == 7 else 0), (7 if read == 7 else 1)
    return _WAIT_FOR_ALL | read << 8 | written << 5 | _STALL


def _timed(word: int) -> int:
    """The instruction with such control bits."""
    return word & (1 << _CONTROL) - 1 | _control(word) << _CONTROL


def _with(word: int, at: int, value: int) -> int:
    return word & ~(0xFF << at) | value << at


class Template:
    """The kernel: its image, where it waits for instructions, and the registers around them."""

    def __init__(self, image: bytes) -> None:
        from toolkit.machine_code.elf import cubin_file

        self.image = image
        start, size = cubin_file(image).place(".text.form")
        code = image[start : start + size]
        words = [int.from_bytes(code[k : k + 16], "little") for k in range(0, size, 16)]
        self.start = start
        self.slots = [k for k, word in enumerate(words) if word & 0xFFF == _PMTRIG]
        loads = [word >> 16 & 0xFF for word in words if word & 0xFFF == 0x981]
        stores = [word >> 32 & 0xFF for word in words if word & 0xFFF == 0x986]
        assert loads == stores, "the kernel keeps no register in its place"
        assert len(loads) == 4
        self.a, self.b, self.c, self.d = loads
        self.controls = [words[k] >> _CONTROL for k in self.slots]

    def holding(self, word: int) -> bytes:
        """The image with an instruction in the middle."""
        nop = _timed(0x7918 | 0x7 << 110 | 0x7 << 113)
        r2p = _timed(0x7F << 32 | (self.c + 3) << 24 | 0x7804 | 0x3F << 110)
        p2r = _timed(0x7F << 32 | 0xFF << 24 | (self.d + 3) << 16 | 0x7803 | 0x3F << 110)
        inner = [nop, r2p, nop, nop, nop, _timed(word), nop, nop, nop, nop, p2r]
        image = bytearray(self.image)
        for place, new in zip(self.slots, [*inner, *[nop] * len(self.slots)], strict=False):
            at = self.start + 16 * place
            image[at : at + 16] = new.to_bytes(16, "little")
        return bytes(image)


def template() -> Template:
    from toolkit.machine_code.compile import compile_cubin

    source = _KERNEL.replace("SLOTS", _SLOT * SLOTS)
    return Template(compile_cubin(source, name="form.cu", kernel="form", arch=ARCHITECTURE).image)


# The forms.


def words_of(image: bytes) -> Iterator[tuple[str, str, int]]:
    """(opcode with modifiers, operands, word) of each instruction of a cubin."""
    from toolkit.machine_code.disassemble import disassemble
    from toolkit.machine_code.elf import cubin_file

    file, kernel = cubin_file(image), ""
    kernels = set(file.kernels)
    for function in json.loads(disassemble(image))[1]:
        if function["function-name"] in kernels:
            kernel = function["function-name"]
        code, at = file.content(f".text.{kernel}"), function["start"]
        for record in function["sass-instructions"]:
            word = int.from_bytes(code[at : at + 16], "little")
            yield record["opcode"], record.get("operands", ""), word
            at += 16


def is_wanted(words: str, operands: str) -> bool:
    from toolkit.sass.isa.registry import REGISTRY

    opcode = words.partition(".")[0]
    known = REGISTRY.get(opcode)
    family = known.lower.__module__.rpartition(".")[2] if known else ""
    return (
        (family in FAMILIES or opcode in ALSO)
        and not re.search(r"\bc\[|\bcx\[|U[RP]\d|\[|\bPR\b|SR_", operands)
        and opcode not in ("R2P", "P2R", "HFMA2.MMA")
        and not opcode.startswith("U")
    )


def forms(folder: Path) -> dict[str, str]:
    """Text and word (hexadecimal) of an example of each form in the cubins of a folder."""
    from validation.census.count import Form, form_of

    found: dict[Form, int] = {}
    for path in sorted(folder.rglob(f"*.{ARCHITECTURE}.cubin")):
        for words, operands, word in words_of(path.read_bytes()):
            if is_wanted(words, operands):
                found.setdefault(form_of(words, operands), word)
    kernel = template()
    sentinels = {_DESTINATION: kernel.d, _A: kernel.a, _B: kernel.b, _C: kernel.c}
    placed = []
    for found_word in found.values():
        word = found_word & ~(0xF << _GUARD) | 7 << _GUARD
        for at, register in sentinels.items():
            if word >> at & 0xFF != 0xFF and (at != _B or word >> _FORM & 7 == _RRR):
                word = _with(word, at, register)
        placed.append(word)
    texts = _texts(kernel, placed)
    final = []
    for original, renamed, text in zip(found.values(), placed, texts, strict=True):
        word = renamed
        for at, register in sentinels.items():
            if not re.search(rf"\bR{register}\b", text):  # the field is no register
                word = _with(word, at, original >> at & 0xFF)
        final.append(word)
    allowed = {f"R{register + k}" for register in sentinels.values() for k in range(4)}
    return {
        text: f"{word:032x}"
        for text, word in zip(_texts(kernel, final), final, strict=True)
        if set(re.findall(r"\bR\d+\b", text)) <= allowed and "??" not in text
    }


def _texts(kernel: Template, words: Sequence[int]) -> list[str]:
    """Text of instructions, as nvdisasm prints them."""
    from toolkit.machine_code.decode import split_operands
    from toolkit.machine_code.disassemble import disassemble

    found = []
    for start in range(0, len(words), len(kernel.slots)):
        image = bytearray(kernel.image)
        some = words[start : start + len(kernel.slots)]
        for place, word in zip(kernel.slots, some, strict=False):
            at = kernel.start + 16 * place
            image[at : at + 16] = word.to_bytes(16, "little")
        records = json.loads(disassemble(bytes(image)))[1][0]["sass-instructions"]
        for place, _ in zip(kernel.slots, some, strict=False):
            record = records[place]
            operands = ", ".join(split_operands(record.get("operands", "")))
            found.append(f"{record['opcode']} {operands}".replace(".reuse", ""))
    return found


# The data.


def kind_of(words: str) -> str:
    """Type of the numbers of a form: "int", "F32", "F64", "F16" or "BF16"."""
    opcode, *modifiers = words.split(".")
    named = [x for x in modifiers if x in ("F16", "BF16", "BF16_V2", "F32", "F64")]
    if opcode[0] == "D":
        return "F64"
    if opcode[0] == "H":
        return "BF16" if "BF16_V2" in named else "F16"
    if opcode == "MUFU" and modifiers[0].endswith("64H"):
        return "int"
    if opcode == "F2FP":
        return (
            {"F16": "F16"}.get(named[-1], "F32")
            if "E4M3" not in words and "E5M2" not in words
            else ("F32" if "F32" in named else "F16" if "UNPACK_B_MERGE_C" in words else "int")
        )
    if opcode[0] == "F" or opcode == "MUFU":
        return named[-1].removesuffix("_V2") if named else "F32"
    return "int"


def _numbers(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> NDArray[np.uint64]:
    """Bits of numbers: a third at edges, a third near 1, a third anything."""
    exponent, fraction = {"F32": (8, 23), "F64": (11, 52), "F16": (5, 10), "BF16": (8, 7)}[kind]
    bits = 1 + exponent + fraction
    one, unit = ((1 << exponent - 1) - 1) << fraction, 1 << fraction
    infinity = ((1 << exponent) - 1) << fraction
    edges = np.array(
        [0, 1, unit - 1, unit, unit + 1, one - 1, one, one + 1, one + unit // 2, one + unit,
         infinity - 1, infinity, infinity + 1, infinity + unit // 2, infinity + unit - 1,
         one - fraction * unit, one + fraction * unit, one - unit, 2 * unit, 3 * unit + 1],
        np.uint64,
    )  # fmt: skip
    sign = rng.integers(0, 2, shape, dtype=np.uint64) << np.uint64(bits - 1)
    anything = rng.integers(0, 1 << bits - 1, shape, dtype=np.uint64)
    near = rng.integers(one - 6 * unit, one + 7 * unit, shape, dtype=np.uint64)
    few = near & ~np.uint64(unit - 1 >> 3)
    which = rng.integers(0, 4, shape)
    chosen: NDArray[np.uint64] = np.choose(which, [rng.choice(edges, shape), near, few, anything])
    return chosen | sign


def _integers(rng: np.random.Generator, shape: tuple[int, ...]) -> Words:
    drawn = rng.integers(0, 1 << 32, shape, dtype=np.uint32)
    small = drawn >> rng.integers(0, 32, shape).astype(np.uint32)
    small = np.where(rng.random(shape) < 0.4, ~small, small)
    edges = np.array(
        [0, 1, 2, 31, 32, 33, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000,
         0xFFFFFFFF, 0x80008000, 0x7FFF7FFF, 0x80808080, 0x7F7F7F7F, 0x0001FFFF], np.uint32
    )  # fmt: skip
    return np.choose(rng.integers(0, 3, shape), [drawn, small, rng.choice(edges, shape)])


def data(words: str) -> Words:
    """Registers of each lane before a form of these words runs: [ROWS, 16]."""
    kind = kind_of(words)
    rng = np.random.default_rng(list(words.encode()))
    found = _integers(rng, (ROWS, 16))
    rows = slice(0, 3 * ROWS // 4) if kind != "int" else slice(0, 0)
    count = rows.stop
    if kind == "F64":
        wide = _numbers(rng, kind, (count, 8))
        found[rows, 0::2], found[rows, 1::2] = wide & np.uint64(0xFFFFFFFF), wide >> np.uint64(32)
    elif kind == "F32":
        found[rows] = _numbers(rng, kind, (count, 16))
    elif kind in ("F16", "BF16"):
        pair = _numbers(rng, kind, (count, 16, 2))
        found[rows] = pair[..., 0] | pair[..., 1] << np.uint64(16)
    found[:, 11] = rng.integers(0, 1 << 32, ROWS, dtype=np.uint32)  # the predicates
    return found


def written(before: Words, after: Words) -> Words:
    """The words that a form may have written: two of the result, and the predicates: [3, ROWS]."""
    predicates = after[:, 15] & np.uint32(_ALL_PREDICATES)
    return np.stack([after[:, 12], after[:, 13], predicates])


# On a GPU.


def run_on_gpu(texts: Mapping[str, str], image: bytes, out: Path) -> None:
    """Run the forms, each in a context that outlives it or in the next process."""
    names = list(texts)
    skipped, start = [], 0
    while start < len(names):
        command = [sys.executable, "-m", "validation.census.silicon", "some", str(out), str(start)]
        subprocess.run(command, check=False, stdout=sys.stdout)
        done = sorted(out.glob("part_*.npz"), key=lambda x: int(x.stem.split("_")[1]))
        end = int(done[-1].stem.split("_")[2]) if done else 0
        if end < len(names):
            skipped.append(names[end])
            end += 1
        start = end
    found: dict[str, Any] = {}
    for part in out.glob("part_*.npz"):
        with np.load(part) as content:
            found.update(content)
        part.unlink()
    keys = [name for name in names if name in found]
    words = np.stack([found[name] for name in keys])
    np.savez(
        out / RECORDED.name,
        forms=np.frombuffer(lzma.compress(json.dumps(keys).encode()), np.uint8),
        words=np.frombuffer(lzma.compress(words.astype("<u4").tobytes()), np.uint8),
    )
    print(f"{len(keys)} forms ran; not run: {skipped}")


def run_some(texts: Mapping[str, str], image: bytes, out: Path, start: int) -> None:
    import pycuda.autoprimaryctx  # noqa: F401
    from pycuda import driver

    kernel, found = Template(image), {}
    names = list(texts)[start:]
    end = start
    try:
        for name in names:
            before = data(name.partition(" ")[0])
            after = np.empty_like(before)
            module = driver.module_from_buffer(kernel.holding(int(texts[name], 16)))
            function = module.get_function("form")
            function(driver.In(before), driver.Out(after), block=(32, 1, 1), grid=(ROWS // 32, 1))
            found[name] = written(before, after)
            end += 1
    except driver.Error as error:
        print(f"{names[end - start]}: {error}", flush=True)
    finally:
        np.savez(out / f"part_{start}_{end}.npz", **found)  # type: ignore[arg-type]


# Against the simulator.


def recorded(path: Path = RECORDED) -> dict[str, Words]:
    """Results of each form: two words of the result, and the predicates: [3, ROWS]."""
    with np.load(path) as content:
        keys = json.loads(lzma.decompress(content["forms"].tobytes()))
        words = np.frombuffer(lzma.decompress(content["words"].tobytes()), "<u4")
    return dict(zip(keys, words.reshape(len(keys), 3, ROWS), strict=True))


def simulated(text: str, kernel: Sequence[int], word: str) -> Words:
    """The same of the simulator; `kernel` has the first registers of a, b, c and d.

    `word` is that of the instruction, whose immediates may be NaNs with any payload.
    """
    from tests.probe import State, instructions, probe
    from toolkit.machine_code.instruction import Immediate

    bits = int(word, 16) >> 32 & 0xFFFFFFFF
    (instruction,) = instructions(text)  # type: ignore[no-untyped-call]
    operands = tuple(
        replace(x, bits=bits) if isinstance(x, Immediate) and "NAN" in x.text else x
        for x in instruction.operands
    )
    body = (replace(instruction, operands=operands),)
    before = data(text.partition(" ")[0])
    after = before.copy()
    for start in range(0, ROWS, LANES):
        state = State()
        rows = before[start : start + LANES]
        for k, register in enumerate(kernel):
            for offset in range(4):
                state.r[register + offset] = rows[:, 4 * k + offset]
        for p in range(7):
            state.p[p] = sum(int(x >> p & 1) << lane for lane, x in enumerate(rows[:, 11]))
        end = probe(body, state)  # type: ignore[no-untyped-call]
        for k, register in enumerate(kernel):
            for offset in range(4):
                after[start : start + LANES, 4 * k + offset] = end.r[register + offset]
        predicates = sum(
            np.array([int(end.p[p]) >> lane & 1 for lane in range(LANES)], np.uint32) << p
            for p in range(7)
        )
        after[start : start + LANES, 15] = predicates
    return written(before, after)


def main(argv: Sequence[str]) -> None:
    match argv:
        case ["forms", folder]:
            kernel = template()
            content = {
                "registers": [kernel.a, kernel.b, kernel.c, kernel.d],
                "image": kernel.image.hex(),
                "forms": forms(Path(folder)),
            }
            FORMS.write_bytes(json.dumps(content, indent=0).encode())
            print(f"{len(content['forms'])} forms")
        case ["record" | "some" as what, out, *start]:
            content = json.loads(FORMS.read_text(encoding="utf-8"))
            image = bytes.fromhex(content["image"])
            if what == "record":
                run_on_gpu(content["forms"], image, Path(out))
            else:
                run_some(content["forms"], image, Path(out), int(start[0]))
        case ["compare", *path]:
            _compare(Path(path[0]) if path else RECORDED)
        case _:
            sys.exit(re.sub(r"^.*?\n\n", "", __doc__ or "", flags=re.S))


def _compare(path: Path) -> None:
    from analysis.errors import ToolkitError

    content = json.loads(FORMS.read_text(encoding="utf-8"))
    same, unknown = 0, 0
    for text, want in recorded(path).items():
        try:
            got = simulated(text, content["registers"], content["forms"][text])
        except ToolkitError as error:
            unknown += 1
            print(f"{text}: {error}")
            continue
        different = np.flatnonzero((got != want).any(0))
        same += not different.size
        if different.size:
            row = different[0]
            given = data(text.partition(" ")[0])[row]
            operands = " ".join(f"{x:08x}" for x in given[[0, 1, 4, 5, 8, 9]])
            print(
                f"{text}: {different.size} rows; {operands}: "
                f"{[f'{x:x}' for x in got[:, row]]}, silicon {[f'{x:x}' for x in want[:, row]]}"
            )
    print(f"{same} forms alike, {unknown} unknown")


if __name__ == "__main__":
    main(sys.argv[1:])

"""Compiled kernels as programs: where jumps lead, which lines they come from, what they link to."""

import json
import re
import struct
from dataclasses import replace
from functools import cache
from itertools import pairwise, product
from pathlib import PurePath

import pytest

from analysis.errors import ToolkitError, UnknownNameError
from kernels import LADDER
from tests.processes import said
from tests.sampling import chosen_of, exhaustive
from toolkit.machine_code import program as module
from toolkit.machine_code.compile import compile_cubin
from toolkit.machine_code.disassemble import disassemble, disassembler
from toolkit.machine_code.kernel import Kernel, Relocation, Variable, read_kernel
from toolkit.machine_code.program import link
from toolkit.sass.space import known_offsets

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
FEW = ("sm_75", "sm_90", "sm_120")
MOST = chosen_of(ARCHITECTURES, lambda arch: arch in (*FEW, "sm_100"))
USUAL = chosen_of(FEW, lambda arch: arch == "sm_90")

SOURCE = """
__device__ int visits[4];
__device__ int* second = visits + 1;
__constant__ float weights[16];
__constant__ int* third = visits + 2;

__device__ __noinline__ float twice(float x) {
    return x + x;
}

extern "C" __global__ void __launch_bounds__(128) calls(float* x, float y) {
    __shared__ float tile[32];
    tile[threadIdx.x] = sqrtf(x[threadIdx.x]);
    __syncthreads();
    float root = tile[threadIdx.x ^ 1];
    x[threadIdx.x] = twice(root > y ? root : __int_as_float(0x7fffffff)) + weights[0];
    atomicAdd(second, atomicAdd(third, visits[3]));
}

extern "C" __global__ void jumps(int* x, int which) {
    switch (which) {
        case 0: x[0] = x[3] / x[4]; break;
        case 1: x[1] = __popc(x[2]) + x[9]; break;
        case 2: x[2] = x[4] % x[6]; break;
        case 3: x[4] = x[5] ^ x[6] * x[7]; break;
        case 4: x[6] = __brev(x[1]) - x[x[3]]; break;
        case 5: x[7] = __clz(x[2]) / 5 * x[x[1]]; break;
    }
}
"""


def compiled(kernel, arch, *options, source=SOURCE):
    return compile_cubin(
        source, name="my.cu", kernel=kernel, arch=arch, options=("-lineinfo", *options)
    )


@cache
def loaded(kernel, arch):
    return read_kernel(compiled("calls", arch).image, kernel)


def of_opcode(program, *opcodes):
    return [i for i in program.instructions if i.opcode in opcodes]


# Instructions.


@pytest.mark.parametrize("arch", MOST)
def test_instructions_are_in_order_without_a_gap(arch):
    for kernel in ("calls", "jumps"):
        program = loaded(kernel, arch)
        count = len(program.instructions)
        assert [i.address for i in program.instructions] == list(range(0, 16 * count, 16))
        assert set(program.functions.values()) <= {i.address for i in program.instructions}


def test_code_in_pieces_is_put_together(monkeypatch):
    """nvdisasm before 13.5 prints each function of a section on its own."""
    cubin = compiled("calls", "sm_90")
    whole = cubin
    text = disassemble(cubin.image)
    header, functions = json.loads(text)
    (function,) = (f for f in functions if f["function-name"] == "calls")
    bounds = [*whole.functions.values(), 16 * len(whole.instructions)]
    pieces = [
        {
            "function-name": name,
            "start": start,
            "sass-instructions": function["sass-instructions"][start // 16 : end // 16],
        }
        for (name, start), end in zip(whole.functions.items(), bounds[1:], strict=True)
    ]
    assert len(pieces) > 2
    monkeypatch.setattr(module, "disassemble", lambda image: json.dumps([header, pieces[::-1]]))
    assert replace(cubin).instructions == whole.instructions
    monkeypatch.setattr(module, "disassemble", lambda image: json.dumps([header, pieces[1:]]))
    with pytest.raises(
        ToolkitError, match=r"^nvdisasm left out the instruction at 0x0000 of calls$"
    ):
        replace(cubin).instructions  # noqa: B018


# Sources.


def listed_sources(cubin, folder):
    """The file and line above each instruction of the kernel in what `nvdisasm -g` prints."""
    path = folder / "k.cubin"
    path.write_bytes(cubin.image)
    listing = said([disassembler().path, "-c", "-g", path])
    found = {}
    section, current = "", None
    for line in listing.splitlines():
        if match := re.match(r"\s*\.section\s+\.text\.(\w+)", line):
            section, current = match[1], None
        elif match := re.search(r'//## File "(.*?)", line (\d+)', line):
            current = PurePath(match[1]).name, int(match[2])
        elif section == cubin.symbol and (match := re.match(r"\s*/\*([0-9a-f]{4,})\*/", line)):
            found[int(match[1], 16)] = current
    return found


@pytest.mark.parametrize(
    ("rung", "arch"),
    chosen_of(
        product(["tiled", "vectorized"], FEW),
        lambda x: x in (("tiled", "sm_75"), ("tiled", "sm_120")),
    ),
)
def test_the_lines_of_the_ladder_are_those_that_nvdisasm_lists(rung, arch, tmp_path):
    (variant,) = (rung_ for rung_ in LADDER if rung_.name == rung)
    cubin = compile_cubin(
        variant.source,
        name=variant.file,
        kernel=variant.entry,
        arch=arch,
        defines=variant.macros(variant.defaults),
    )
    sources = {i.address: i.source and (i.source.file, i.source.line) for i in cubin.instructions}
    assert sources == listed_sources(cubin, tmp_path)
    assert None not in sources.values()


@pytest.mark.parametrize("arch", USUAL)
def test_lines_of_functions_are_their_own(arch, tmp_path):
    cubin = compiled("calls", arch)
    program = cubin
    lines = {i.address: i.source and i.source.line for i in program.instructions}
    bounds = [*program.functions.items(), ("", 16 * len(program.instructions))]
    for (name, start), (_, end) in pairwise(bounds):
        inside = {lines[at] for at in range(start, end, 16)}
        if name.startswith("$__internal_"):  # nvdisasm lists the last line before them
            assert inside == {None}
        elif name == "$calls$_Z5twicef":
            assert inside <= {7, 8, 9}
        else:
            assert inside <= set(range(11, 20))
    listed = listed_sources(cubin, tmp_path)
    assert all(listed[at] == ("my.cu", line) for at, line in lines.items() if line)


@pytest.mark.parametrize("arch", USUAL)
def test_an_inlined_line_is_that_of_the_function(arch):
    source = """
__device__ __forceinline__ float square(float x) {
    return x * x;
}
extern "C" __global__ void k(float* x) {
    x[0] = square(x[1]);
}
"""
    program = compiled("k", arch, source=source)
    (product,) = of_opcode(program, "FMUL")
    assert (product.source.file, product.source.line) == ("my.cu", 3)


NESTED = """#include <cuda_fp16.h>
__device__ __forceinline__ float third(const float* p) {
    return *p * 3;
}
__device__ __forceinline__ float both(const float* p) {
    return third(p) +
           third(p + 1);
}
extern "C" __global__ void k(float* y, const float* x, const __half2* h, int* n) {
    float v = both(x);
    v += both(x + 64);
    y[0] = v;
    *(__half2*)(y + 1) = __hmul2(h[0], h[1]);
    atomicAdd(n, 2);
}
"""


def nested(arch):
    return compile_cubin(NESTED, name="my.cu", kernel="k", arch=arch)


@pytest.mark.parametrize("arch", [exhaustive("sm_80"), "sm_90"])
def test_a_nested_call_is_found_from_the_innermost_line_on(arch):
    loads = [i.source for i in of_opcode(nested(arch), "LDG") if i.source.line == 3]
    assert len(loads) == 4
    inner, outer = zip(*([line for _, line in source.callers] for source in loads), strict=True)
    # ptxas writes no row where only the calls differ, so one load may have those of another
    assert set(inner) == {6, 7}
    assert set(outer) == {10, 11}


def test_a_function_of_a_header_has_the_line_that_calls_it():
    program = nested("sm_90")
    halves = [i.source for i in program.instructions if i.source.file == "cuda_fp16.h"]
    assert {source.callers for source in halves} == {(("my.cu", 13),)}
    (addition,) = of_opcode(program, "REDG")
    assert (addition.source.callers or ((addition.source.file, addition.source.line),))[-1] == (
        "my.cu",
        14,
    )


def test_without_line_info_there_are_no_sources():
    cubin = compile_cubin(
        'extern "C" __global__ void k(float* x) { *x = 1; }',
        name="my.cu",
        kernel="k",
        arch="sm_90",
        options=(),
    )
    assert {i.source for i in cubin.instructions} == {None}


# Links.


@pytest.mark.parametrize("arch", FEW)
def test_linking_fills_in_the_addresses(arch):
    program = loaded("calls", arch)
    place = {"visits": 0x7F00_1000_0000, "second": 0x7F00_2000_0000}
    linked = link(program, place)
    assert linked.instructions is program.instructions
    assert linked.variables["visits"] == bytes(16)
    assert linked.variables["second"] == struct.pack("<Q", place["visits"] + 4)  # one int further
    (third,) = (c for c in program.constants if c.name == "third")
    bank = linked.constant_banks[3]
    assert struct.unpack_from("<Q", bank, third.offset) == (place["visits"] + 8,)
    loaded_addresses = {a for (a,) in struct.iter_unpack("<Q", linked.constant_banks[4])}
    assert loaded_addresses == set(place.values())
    assert linked.constant_banks[0] == program.constant_banks[0]


def test_what_has_no_address_is_told():
    with pytest.raises(KeyError, match="visits"):
        link(loaded("calls", "sm_90"), {"second": 0x1000})


def test_an_address_before_the_target_and_one_of_four_bytes_are_filled_in():
    program = replace(
        loaded("jumps", "sm_90"),
        variables=(Variable(name="v", size=12, content=b"abcd"),),
        relocations=(
            Relocation(place="v", offset=8, size=4, target="v", addend=-16),
            Relocation(place="v", offset=4, size=4, target="f", addend=1 << 32),
        ),
    )
    linked = link(program, {"v": 0x7F00_0000_0040, "f": 5})
    assert linked.variables["v"] == b"abcd" + struct.pack("<2I", 5, 0x30)


@pytest.mark.parametrize("arch", [exhaustive("sm_80"), "sm_90"])
def test_linking_fills_in_halves_of_addresses_in_debuggable_code(arch):
    source = """
__device__ int before[2];
__device__ int counter[4];
extern "C" __global__ void k(int* x) { *x = counter[*x + 1] + before[*x]; }
"""
    program = compiled("k", arch, "-G", source=source)
    halves = [i for i in program.instructions if "32@" in i.text]
    assert len(halves) == 4
    linked = link(program, {"before": 0x1234_0000_5678, "counter": 0x4321_0000_8765})
    changed = [linked.instructions[i.address // 16] for i in halves]
    values = {operand.integer for i in changed for operand in i.operands[1:]}
    assert values == {0x1234, 0x5678, 0x4321, 0x8765}
    assert len(linked.instructions) == len(program.instructions)


# What cannot be loaded.


def test_a_kernel_that_is_not_in_the_image_is_told():
    with pytest.raises(UnknownNameError, match="gone"):
        Kernel.from_image(compiled("jumps", "sm_86").image, "gone")


def test_a_window_is_two_words_of_the_constants():
    known = known_offsets(100)  # compiled code of sm_100 reads its local window at 0x2f8
    assert [offset in known for offset in (0x2F4, 0x2F8, 0x2FC, 0x300)] == [
        False,
        True,
        True,
        False,
    ]


def test_each_kernel_of_an_image_names_the_callers_of_its_inlined_functions():
    source = "".join(
        f"""__device__ __forceinline__ float twice_{n}(float x) {{ return x * x; }}
        extern "C" __global__ void k_{n}(float* x) {{
            x[threadIdx.x] = twice_{n}(x[threadIdx.x]);
        }}
        """
        for n in range(3)
    )
    image = compile_cubin(source, name="k.cu", kernel="k_0", arch="sm_90").image
    for n in range(3):
        program = Kernel.from_image(image, f"k_{n}")
        sources = [i.source for i in program.instructions if i.source and i.source.caller]
        first = 1 + 4 * n
        assert {(x.line, x.caller.line) for x in sources if x.caller} == {(first, first + 2)}

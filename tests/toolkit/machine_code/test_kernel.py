"""Facts read from a cubin, against what ptxas prints when it makes one."""

import re
import struct
from dataclasses import replace

import pytest

from analysis.errors import UnsupportedError
from tests.cubins import cubin_of
from toolkit.machine_code import compile as compilation
from toolkit.machine_code import kernel as cubin
from toolkit.machine_code.attributes import KernelParameter
from toolkit.machine_code.compiler_process import compile_apart
from toolkit.machine_code.elf import CubinFile, cubin_file
from toolkit.machine_code.kernel import (
    ConstantVariable,
    Relocation,
    Variable,
    read_kernel,
)

# Uses little; uses static shared memory; keeps 64 values alive in at most 64 registers;
# indexes an array by a value that only the launch knows, which needs local memory.
SOURCE = """
extern "C" __global__ void plain(float* x) { x[threadIdx.x] = 1.0f; }

extern "C" __global__ void shared(float* x) {
    __shared__ float tile[100];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = tile[99 - threadIdx.x];
}

extern "C" __global__ void __launch_bounds__(1024, 1) spilling(float* x) {
    float value[64];
    #pragma unroll
    for (int i = 0; i < 64; i++) value[i] = x[i * 1024 + threadIdx.x];
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < 64; i++) x[(63 - i) * 1024 + threadIdx.x] = value[i] * value[(i + 7) % 64];
}

extern "C" __global__ void indexed(float* x, int n) {
    float value[40];
    for (int i = 0; i < 40; i++) value[i] = x[i];
    for (int i = 0; i < n; i++) value[i * n % 40] += 1.0f;
    x[n] = value[n];
}
"""
KERNELS = ["indexed", "plain", "shared", "spilling"]
Sizes = tuple[int, int, int]  # registers per thread, shared bytes per block, local per thread
CAPABILITIES = [75, 80, 86, 90, 100, 120]


def printed_sizes(log):
    """Registers and bytes of each kernel from the output of `ptxas -v`."""
    sizes = {}
    for part in log.split("Compiling entry function '")[1:]:

        def number(pattern, part=part):
            match = re.search(pattern, part)
            return int(match[1]) if match else 0

        sizes[part.split("'")[0]] = (
            number(r"Used (\d+) registers"),
            number(r"(\d+) bytes smem"),
            number(r"(\d+) bytes stack frame"),
        )
    return sizes


def read_sizes(image):
    found = {symbol: read_kernel(image, symbol).resources for symbol in cubin_file(image).kernels}
    return {
        symbol: (x.registers_per_thread, x.static_shared_bytes, x.local_bytes)
        for symbol, x in found.items()
    }


every_capability = pytest.mark.parametrize("capability", CAPABILITIES)


@every_capability
def test_sizes_are_those_that_ptxas_prints_inside_nvrtc(capability):
    answer = compile_apart(
        SOURCE,
        name="my.cu",
        headers={},
        options=(f"--gpu-architecture=sm_{capability}", "--ptxas-options=-v"),
        expression=None,
    )
    printed = printed_sizes(answer.log)
    assert sorted(printed) == KERNELS
    assert read_sizes(answer.image) == printed
    assert printed["shared"][1] == 400  # 100 floats
    assert printed["indexed"][2] == 160  # 40 floats


def test_a_device_function_is_no_kernel():
    source = SOURCE + "__device__ __noinline__ void function(float* x) { *x = 1.0f; }\n"
    options = ("-rdc=true",)  # keeps functions that no kernel calls
    cubin = compilation.compile_cubin(
        source, name="my.cu", kernel="plain", arch="sm_86", options=options
    )
    assert b".text._Z8functionPf" in cubin.image
    assert sorted(cubin_file(cubin.image).kernels) == KERNELS


# Data: what a kernel's memory holds before it runs.

DATA = """
__device__ int counter;
__device__ float table[4] = {1, 2, 3, 4};
__device__ int* place = &counter;
__device__ float* middle = table + 2;
__constant__ float weights[8];
__constant__ int digits[3] = {7, 8, 9};
__constant__ float* fourth = table + 3;
extern "C" __device__ int printf(const char*, ...);

__device__ __noinline__ int add(int a, int b) { return a + b + counter; }
__device__ __noinline__ int subtract(int a, int b) { return a - b; }
__device__ int (*operations[2])(int, int) = {add, subtract};

extern "C" __global__ void __launch_bounds__(64) reads(float* x, int i) {
    *place += i;
    x[i] = table[i & 3] + weights[i & 7] + digits[i % 3] + *fourth + *middle;
    if (i < 0) printf("%d", i);
}

extern "C" __global__ void calls(int* x, int i) { *x = operations[i & 1](i, 3); }
"""
POINTER = 8


def compiled(source, kernel, arch, *options):
    return compilation.compile_cubin(
        source, name="my.cu", kernel=kernel, arch=arch, options=("-lineinfo", *options)
    ).image


def read(kernel, capability):
    return read_kernel(compiled(DATA, kernel, f"sm_{capability}"), kernel)


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


@pytest.mark.parametrize(
    ("capability", "base"), [(75, 0x160), (80, 0x160), (90, 0x210), (100, 0x380), (120, 0x380)]
)
def test_parameters_stand_where_c_lays_them_out(capability, base):
    source = """
    struct Triple { float x, y, z; };
    extern "C" __global__ void k(char a, double b, Triple c, short d, float* e) {
        *e = a + b + c.z + d;
    }
    """
    image = compiled(source, "k", f"sm_{capability}")
    expected = tuple(
        KernelParameter(ordinal=ordinal, offset=offset, size=size)
        for ordinal, (offset, size) in enumerate([(0, 1), (8, 8), (16, 12), (28, 2), (32, 8)])
    )
    kernel = read_kernel(image, "k")
    assert (kernel.parameter_base, kernel.parameters) == (base, expected)
    assert len(kernel.constant_banks[0]) == base + 40


@pytest.mark.parametrize("capability", [75, 90, 120])
def test_parameters_of_many_bytes_are_read(capability):
    """Their size has more bits than the older attribute has room for."""
    source = """
    struct Large { float x[5000]; };
    extern "C" __global__ void k(Large large, float* y, int i) { y[i] = large.x[i]; }
    """
    image = compiled(source, "k", f"sm_{capability}")
    kernel = read_kernel(image, "k")
    offsets = [(p.offset, p.size) for p in kernel.parameters]
    assert offsets == [(0, 20_000), (20_000, 8), (20_008, 4)]
    assert len(kernel.constant_banks[0]) >= kernel.parameter_base + 20_012


def test_a_kernel_without_parameters_has_none():
    image = compiled('extern "C" __global__ void k() { __syncthreads(); }', "k", "sm_90")
    kernel = read_kernel(image, "k")
    assert kernel.parameters == ()


@every_capability
def test_variables_have_their_first_values(capability):
    kernel = read("reads", capability)
    named = {variable.name: variable for variable in kernel.variables}
    assert named["counter"] == Variable(name="counter", size=4, content=b"")
    assert named["table"] == Variable(name="table", size=16, content=floats(1, 2, 3, 4))
    assert named["place"].size == POINTER
    (string,) = (v for name, v in named.items() if name.startswith("$str"))
    assert string.content == b"%d\0"
    assert named.keys() - {string.name} == {"counter", "table", "place", "middle", "operations"}


@every_capability
def test_constants_have_their_first_values(capability):
    kernel = read("reads", capability)
    named = {constant.name: constant for constant in kernel.constants}
    assert named.keys() == {"weights", "digits", "fourth"}
    weights, digits = named["weights"], named["digits"]
    assert weights == ConstantVariable(name="weights", offset=weights.offset, size=32)
    bank = kernel.constant_banks[3]
    assert bank[weights.offset : weights.offset + 32] == bytes(32)
    assert bank[digits.offset : digits.offset + 12] == struct.pack("<3i", 7, 8, 9)


@every_capability
def test_addresses_are_told_wherever_they_stand(capability):
    kernel = read("reads", capability)
    found = {(r.place, r.target, r.addend) for r in kernel.relocations}
    # the initial values of variables and constants: `table + 2` is 8 bytes behind `table`
    assert {("place", "counter", 0), ("middle", "table", 8), (3, "table", 12)} <= found
    # what the code of both kernels takes from bank 4
    loaded = {target for place, target, _ in found if place == 4}
    assert {"counter", "table", "place", "middle", "operations", "vprintf"} >= loaded - {"$str"}
    assert {"table", "place", "vprintf"} <= loaded
    assert {r.size for r in kernel.relocations} == {POINTER}
    offsets = sorted(r.offset for r in kernel.relocations if r.place == 4)
    assert offsets == list(range(0, len(kernel.constant_banks[4]), POINTER))
    (fourth,) = (c for c in kernel.constants if c.name == "fourth")
    assert (
        Relocation(place=3, offset=fourth.offset, size=8, target="table", addend=12)
        in kernel.relocations
    )


def test_a_second_name_of_a_variable_is_no_second_variable(monkeypatch):
    """As linkers may make them; the address is that of the variable, further in."""
    symbols = CubinFile.symbols.func

    def more(file):
        found = symbols(file)
        renamed = [
            replace(x, name="x", value=x.value + 4, size=4) for x in found if x.name == "table"
        ]
        return [*renamed, *found]

    image = compiled(DATA, "reads", "sm_90")
    monkeypatch.setattr(CubinFile, "symbols", property(more))
    file = CubinFile(image)
    variables = cubin._variables(file)
    assert "x" not in {x.name for kept in variables.values() for x in kept}
    assert cubin._target(file.symbols[0], 8, variables) == ("table", 12)  # 4 + 8
    section = replace(file.symbols[0], kind=3, value=0)  # STT_SECTION
    inside = file.symbols[0].value
    assert cubin._target(section, inside, variables) == ("table", 4)


@every_capability
def test_launch_bounds_are_read(capability):
    assert read("reads", capability).max_threads == 64
    image = compiled(SOURCE, "shared", f"sm_{capability}")
    assert read_kernel(image, "shared").max_threads is None


@pytest.mark.parametrize("capability", [80, 90])
def test_calls_between_sections_are_refused(capability):
    image = compiled(DATA, "calls", f"sm_{capability}", "-G")
    kernel = read_kernel(image, "reads")
    assert kernel.unsupported.endswith("compile the kernel without -G")
    with pytest.raises(UnsupportedError, match=r"compile the kernel without -G$"):
        kernel.instructions  # noqa: B018


def test_relocatable_code_is_refused():
    image = compiled(SOURCE, "plain", "sm_86", "-rdc=true")
    with pytest.raises(UnsupportedError, match=r"^plain is .*: compile it without -rdc$"):
        read_kernel(image, "plain").instructions  # noqa: B018


def test_a_kernel_that_is_not_there_is_an_error():
    with pytest.raises(KeyError):
        read_kernel(compiled(SOURCE, "plain", "sm_86"), "absent")


@pytest.mark.parametrize(
    ("at", "put", "why"),
    [
        (4, b"\1", "it is not a 64-bit cubin"),
        (40, b"\xff" * 8, "it is damaged"),  # where the table of sections begins
    ],
)
def test_headers_of_no_cubin_of_ours_are_refused(at, put, why):
    image = bytearray(cubin_of(SOURCE, "plain").image)
    image[at : at + len(put)] = put
    with pytest.raises(ValueError, match=why):
        CubinFile(bytes(image))

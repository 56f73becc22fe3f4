"""Inputs of the timing model, against the output of nvdisasm for the same code."""

import re
from functools import cache

import numpy as np
import pytest

from analysis.devices import DEVICES
from analysis.sm import BARRIER_ARRIVES, BARRIER_WARPS_SHIFT, NO_SCOREBOARD, Kind, Unit
from kernels import LADDER, Variant, parse_selection
from tests.cubins import cubin_of
from tests.sampling import exhaustive
from tests.toolkit.sass.machine_code_snapshots import ARCHITECTURES, RECORDED, told
from toolkit.machine_code.instruction import Register
from toolkit.rungs.launch import compile_for
from toolkit.sass.timing_table import machine_code
from validation import recordings
from validation.corpus.sample import in_small_sample

BY_ARCHITECTURE = {device.sm_arch: device for device in DEVICES.values()}
VARIANTS = [variant for variant in LADDER if isinstance(variant, Variant)]

ODD = r"""
extern "C" __global__ void odd(
    float *out, double *wide, int *bins, const float *in, long long n, unsigned flags)
{
    extern __shared__ int shared[];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    int at = atomicAdd(&bins[i & 7], 1);
    atomicAdd(&bins[8], 1);
    atomicAdd(&shared[i & 31], at);
    __syncthreads();
    wide[i] = wide[i] * double(in[i]) + double(__popc(flags + i));
    out[i] = sqrtf(in[i]) + float(n + i) + __shfl_sync(~0u, in[i + 1], at & 31);
    if (flags & 1u << i % 32) out[i + 1] = float((unsigned long long)n * i >> 32);
}
"""


ALL = "every rung for "
TRIED = ("sm_75", "sm_90", "sm_120")  # the oldest, the usual and the last
CODE = [
    *TRIED,
    *(exhaustive(arch) for arch in ARCHITECTURES if arch not in TRIED),
    *(exhaustive(ALL + arch) for arch in ARCHITECTURES),
]


@cache
def ladder(code):
    """The rungs of the small sample for an architecture, or all of them."""
    found = []
    arch = code.removeprefix(ALL)
    for variant in (v for v in VARIANTS if v.runs_on(int(arch.removeprefix("sm_")))):
        if code == arch and not in_small_sample(variant.file, arch):
            continue
        program = compile_for(BY_ARCHITECTURE[arch], parse_selection(variant.name))
        found.append((program, machine_code(program)))
    return tuple(found)


def rows(arch):
    for program, table in ladder(arch):
        yield from zip(program.instructions, table, strict=True)


def odd(arch):
    arch = arch.removeprefix(ALL)
    program = cubin_of(ODD, "odd", arch)
    return list(zip(program.instructions, machine_code(program), strict=True))


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_small_kernel_reads_as_recorded(arch):
    assert told(arch) == recordings.read(RECORDED)[arch]


every_architecture = pytest.mark.parametrize("arch", CODE)


@every_architecture
def test_reuse_flags_are_the_suffixes_that_nvdisasm_prints(arch):
    """For every instruction of every rung, the flagged slots are those of the registers kept."""
    seen = 0
    for instruction, row in [*rows(arch), *odd(arch)]:
        printed = [int(r) for r in re.findall(r"\bR(\d+)(?:\.64)?\.reuse", instruction.text)]
        registers = sources(instruction, row)
        kept = [registers[slot] for slot in range(3) if row["reuse"] >> slot & 1]
        assert kept == printed, instruction.text
        seen += len(printed)
    assert seen > 100


def sources(instruction, row):
    """The first register of each operand slot; the table has none of tensor cores' operands."""
    if row["unit"] not in (Unit.TENSOR, Unit.TENSOR_SHORT, Unit.TENSOR_DOUBLE):
        return row["source"].tolist()
    assert set(row["source"].tolist()) == {-1}, instruction.text
    return [getattr(operand, "index", None) for operand in instruction.operands[1:4]]


@every_architecture
def test_results_of_variable_latency_are_waited_for(arch):
    """An instruction that names a guarded register waits for its scoreboard, or one before did."""
    guarded_in_all = 0
    for program, table in ladder(arch):
        guarded = {}  # register: its scoreboard, who does not wait
        for instruction, row in zip(program.instructions, table, strict=True):
            guarded = {r: (b, o) for r, (b, o) in guarded.items() if not row["wait"] >> b & 1}
            named = {int(r) for r in re.findall(r"\bR(\d+)\b", instruction.text)}
            waited_for = {r for r, (_, others) in guarded.items() if others != guard(instruction)}
            assert not named & waited_for, instruction.text
            if row["write_barrier"] != NO_SCOREBOARD:
                entry = int(row["write_barrier"]), opposite(guard(instruction))
                written = dict.fromkeys(results(instruction, row), entry)
                guarded |= written
                guarded_in_all += len(written)
            if row["kind"] in (Kind.EXIT, Kind.BRANCH):  # what follows may come from elsewhere
                guarded = {}
    assert guarded_in_all > 100


def guard(instruction):
    """The predicate under which it is executed: "@!P3", or nothing."""
    found = re.match(r"@!?U?P\w+", instruction.text)
    return found[0] if found else ""


def opposite(guard):
    """Guard of the lanes that do without the result; "never" for no guard."""
    if not guard:
        return "never"
    return guard.replace("@!", "@") if "!" in guard else guard.replace("@", "@!")


def results(instruction, row):
    files = ("R", "UR")
    first = next(
        (o for o in instruction.operands if isinstance(o, Register) and o.file in files), None
    )
    if first is None or first.file == "UR":
        return range(0)
    return range(first.index, first.index + max(1, int(row["registers"])))


@every_architecture
def test_stall_counts_cover_dependent_multiply_adds(arch):
    """An FFMA whose sum the next one reads is followed after 4 clocks or more."""
    for program, table in ladder(arch):
        pairs = zip(program.instructions, program.instructions[1:], table, strict=False)
        for one, next_one, row in pairs:
            if one.opcode == next_one.opcode == "FFMA" and one.operands[0] in next_one.operands[1:]:
                assert row["stall"] >= 4, one.text


UNITS = {
    "FFMA": Unit.FMA,
    "FADD": Unit.FMA,
    "FMUL": Unit.FMA,
    "IMAD": Unit.FMA_HEAVY,
    "DFMA": Unit.FP64,
    "MUFU": Unit.XU,
    "POPC": Unit.XU,
    "S2R": Unit.XU,
    "IADD3": Unit.ALU,
    "LOP3": Unit.ALU,
    "ISETP": Unit.ALU,
    "LEA": Unit.ALU,
    "LDG": Unit.LSU,
    "LDS": Unit.LSU,
    "STG": Unit.LSU,
    "SHFL": Unit.LSU,
    "BAR": Unit.CONTROL,
    "EXIT": Unit.CONTROL,
    "ULDC": Unit.UNIFORM,
    "UMOV": Unit.UNIFORM,
}
QUOTIENTS = """
extern "C" __global__ void quotients(float *a, double *b)
{
    const int i = threadIdx.x;
    a[i] /= a[i + 32];
    b[i] = fma(b[i], b[i + 32], b[i + 64]);
}
"""


def test_divisions_and_doubles_are_told_by_their_pipe_and_pairs():
    program = cubin_of(QUOTIENTS, "quotients", "sm_90")
    rows_of = {
        instruction.opcode: row
        for instruction, row in zip(program.instructions, machine_code(program), strict=True)
    }
    assert rows_of["FCHK"]["unit"] == Unit.XU
    pairs = rows_of["DFMA"]["source"].tolist()
    assert len(set(pairs)) == 3
    assert all(register >= 0 and register % 2 == 0 for register in pairs)


def test_an_integer_that_is_rounded_up_to_a_float_takes_the_pipe_of_special_functions():
    """As each division of integers has it; the nearest float of one is integer arithmetic."""
    source = """extern "C" __global__ void divide(unsigned *out, unsigned a, unsigned b)
    { out[threadIdx.x] = (threadIdx.x + a) / b; out[a] = __float_as_uint((float)a); }"""
    program = cubin_of(source, "divide", "sm_90")
    units = {
        one.opcode: row["unit"]
        for one, row in zip(program.instructions, machine_code(program), strict=True)
    }
    assert units["I2F"] == units["F2I"] == Unit.XU
    assert units["I2FP"] == Unit.ALU


@pytest.mark.parametrize(
    ("how", "expected"), [("relaxed.gpu", 1), ("relaxed.sys", 1), ("relaxed.cta", 0), ("ca", 0)]
)
def test_coherent_loads_pass_l1_by(how, expected):
    source = f"""extern "C" __global__ void load(unsigned *out)
    {{ unsigned x; asm volatile("ld.{how}.u32 %0, [%1];" : "=r"(x) : "l"(out)); out[x] = x; }}"""
    program = cubin_of(source, "load", "sm_90")
    found = [
        row["argument"]
        for one, row in zip(program.instructions, machine_code(program), strict=True)
        if one.opcode in ("LD", "LDG")
    ]
    assert found == [expected]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("bar.sync 0;", [0]),
        ("bar.sync 10, 256;", [10 | 8 << BARRIER_WARPS_SHIFT]),
        ("bar.arrive 1, 64;", [1 | 2 << BARRIER_WARPS_SHIFT | BARRIER_ARRIVES]),
    ],
)
def test_a_barrier_says_its_number_and_its_warps(how, expected):
    source = f"""extern "C" __global__ void meet(unsigned *out)
    {{ out[threadIdx.x] = 1; asm volatile("{how}" ::: "memory"); out[threadIdx.x + 1] = 2; }}"""
    program = cubin_of(source, "meet", "sm_90")
    table = machine_code(program)
    assert [*table["argument"][table["kind"] == Kind.BARRIER]] == expected


def test_barriers_beside_one_with_its_number_in_a_register_wait_for_all_warps():
    source = """extern "C" __global__ void meet(unsigned *out, unsigned number)
    { out[threadIdx.x] = 1;
      if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;" ::: "memory");
      else asm volatile("bar.sync %0, 64;" ::"r"(number) : "memory");
      asm volatile("bar.arrive 2, 64;" ::: "memory");
      out[threadIdx.x + 1] = 2; }"""
    table = machine_code(cubin_of(source, "meet", "sm_90"))
    assert [*table["argument"][table["kind"] == Kind.BARRIER]] == [0, 0]


KINDS = {
    "LDG": Kind.LOAD,
    "STG": Kind.STORE,
    "LDS": Kind.SHARED_LOAD,
    "STS": Kind.SHARED_STORE,
    "BAR": Kind.BARRIER,
    "BRA": Kind.BRANCH,
    "EXIT": Kind.EXIT,
    "RED": Kind.ATOMIC,
    "ATOMG": Kind.ATOMIC,
    "ATOMS": Kind.ATOMIC,
}


def test_instructions_have_their_units_and_kinds():
    seen = set()
    for arch in TRIED:
        for instruction, row in [*rows(arch), *odd(arch)]:
            opcode = instruction.opcode
            if opcode in UNITS:
                is_wide = opcode == "IMAD" and {"WIDE", "HI"} & set(instruction.modifiers)
                assert row["unit"] == (Unit.FMA_WIDE if is_wide else UNITS[opcode])
            assert row["kind"] == KINDS.get(opcode, row["kind"])
            assert (
                (row["kind"] == Kind.PLAIN)
                or opcode not in UNITS
                or opcode in KINDS
                or (opcode == "SHFL")
            )
            seen.add(opcode)
    assert set(UNITS) | set(KINDS) <= seen | {"RED"}


@pytest.mark.parametrize(
    ("pattern", "registers", "operands"),
    [
        (r"LDG\.E desc\[|LDG\.E R\d+, desc\[UR\d+\]\[R\d+\.64\]$", 1, 2),  # a 64-bit address
        (r"LDG\.E\.64", 2, 2),
        (r"STG\.E desc\[UR\d+\]\[R\d+\.64\], R\d+$", 0, 3),  # and what is stored
        (r"STG\.E\.64", 0, 4),
        (r"ATOMG.*PT, R\d+, desc\[UR\d+\]\[R\d+\.64\], R\d+$", 1, 3),  # not its result
        (r"SHFL\.IDX PT, R\d+, R\d+, R\d+, 0x1f$", 1, 2),
    ],
)
def test_requests_hand_over_their_operands(pattern, registers, operands):
    found = [row for instruction, row in odd("sm_90") if re.search(pattern, instruction.text)]
    assert found, [instruction.text for instruction, _ in odd("sm_90")]
    for row in found:
        assert (row["registers"], row["operands"]) == (registers, operands)


@every_architecture
def test_the_banks_of_what_is_handed_over_are_those_of_the_text(arch):
    """The order is: both halves of an address, then every register of the stored data."""
    seen = 0
    for instruction, row in [*rows(arch), *odd(arch)]:
        text = instruction.text
        if not (store := re.search(r"STG\S* .*?\[R(\d+)(\.64)?\S*\], R(\d+)", text)):
            continue
        width = int((re.findall(r"\.(64|128)\b", text.split("[")[0]) or ["32"])[0])
        address, data = int(store[1]), int(store[3])
        handed = [*range(address, address + (2 if store[2] else 1))]
        handed += range(data, data + width // 32)
        assert row["operands"] == len(handed), text
        assert row["banks"] == sum(register % 2 << k for k, register in enumerate(handed)), text
        narrow = re.search(r"\.[US](8|16)\b", text)
        assert row["argument"] == (int(narrow[1]) if narrow else width) // 8, text
        seen += 1
    assert seen > 20


def test_a_table_has_no_scoreboards_that_do_not_exist():
    for arch in TRIED:
        for _, table in ladder(arch):
            for name in ("write_barrier", "read_barrier"):
                assert set(np.unique(table[name])) <= {*range(6), NO_SCOREBOARD}
            assert (table["stall"] <= 15).all()
            assert (table["wait"] < 64).all()
